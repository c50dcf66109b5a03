//! Tables whose events are to be told apart by a column that they have not: said in the log, each once, and by
//! `wavehouse doctor`.

use crate::counted::Counted;
use std::collections::{BTreeMap, BTreeSet};
use tracing::warn;
use wh_api::{DedupeRules, IdRule};
use wh_clickhouse::{Schema, SchemaHandle};
use wh_types::{Stop, Tasks};

/// Most tables that one text names.
const NAMED: usize = 10;

/// Looks whenever the schema has changed.
pub(crate) fn watch(rules: DedupeRules, schema: &SchemaHandle, tasks: &Tasks, stop: Stop) {
    let mut seen = schema.watch();
    tasks.spawn("app/id_columns", async move {
        let mut told = BTreeSet::new();
        loop {
            let now = seen.borrow_and_update().clone();
            for text in now.iter().flat_map(|schema| texts(&rules, schema, |table| told.insert(table.to_owned()))) {
                warn!("{text}");
            }
            tokio::select! {
                () = stop.wait() => return,
                changed = seen.changed() => if changed.is_err() { return },
            }
        }
    });
}

/// What is to be said: a text for each column and what follows from it. `wanted`: whether a table is to be named.
pub(crate) fn texts(rules: &DedupeRules, schema: &Schema, mut wanted: impl FnMut(&str) -> bool) -> Vec<String> {
    let mut lacking: BTreeMap<(&str, bool), Vec<&str>> = BTreeMap::new();
    for (table, IdRule { column, required, .. }) in rules.without_column(schema) {
        if wanted(table) {
            lacking.entry((column, *required)).or_default().push(table);
        }
    }
    lacking.iter().map(|((column, required), tables)| text(column, *required, tables)).collect()
}

fn text(column: &str, required: bool, tables: &[&str]) -> String {
    let follows = match required {
        true => "every event is refused (require_id)",
        false => "their events are not told apart, and may double",
    };
    let (count, more) = (Counted(tables.len() as u64, "table"), if tables.len() > NAMED { ", …" } else { "" });
    let names = tables[..tables.len().min(NAMED)].join(", ");
    let (have, they) = if tables.len() == 1 { ("has", "it") } else { ("have", "them") };
    format!(
        "dedupe: {count} {have} no column {column:?} that events can give: {follows}; name another id_field for {they} or \
         switch dedupe off there ({names}{more})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wh_clickhouse::{Column, ColumnKind, TableSchema, types::Type};
    use wh_dedupe::Retention;
    use wh_types::Timestamp;

    fn schema() -> Schema {
        let table = |name: &str, engine: &str, columns: &[(&str, ColumnKind)]| {
            let column = |(position, (name, kind)): (u64, &(&str, ColumnKind))| Column {
                name: (*name).to_owned(),
                type_text: "String".into(),
                ty: Type::parse("String"),
                kind: *kind,
                default_expression: String::new(),
                position,
            };
            let columns = (1..).zip(columns).map(column).collect();
            (name.to_owned(), Arc::new(TableSchema::new(name, engine, columns)))
        };
        let tables = [
            table("good", "MergeTree", &[("event_id", ColumnKind::Ordinary)]),
            table("bare", "MergeTree", &[("id", ColumnKind::Ordinary)]),
            table("other", "MergeTree", &[("id", ColumnKind::Ordinary)]),
            table("computed", "MergeTree", &[("event_id", ColumnKind::Alias)]),
            table("view", "View", &[("id", ColumnKind::Ordinary)]),
            table("off", "MergeTree", &[("id", ColumnKind::Ordinary)]),
            table("strict", "MergeTree", &[("event_id", ColumnKind::Ordinary)]),
        ];
        Schema {
            version: "26.7".into(),
            timezone: "UTC".into(),
            settings: Arc::default(),
            tables: tables.into(),
            taken_at: Timestamp::default(),
        }
    }

    #[test]
    fn tables_without_their_column_are_named_with_what_follows() {
        let rule =
            |column: &str, required| Some(IdRule { column: column.into(), required, retention: Retention::Forever });
        let rules = DedupeRules {
            others: rule("event_id", false),
            tables: [
                ("off".to_owned(), None),
                ("strict".to_owned(), rule("order_id", true)),
                ("other".to_owned(), rule("id", true)),
                ("nowhere".to_owned(), rule("x", true)),
            ]
            .into(),
        };
        let said = texts(&rules, &schema(), |_| true);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("2 tables have no column \"event_id\"") && said[0].ends_with("(bare, computed)"));
        assert!(said[1].contains("1 table has no column \"order_id\"") && said[1].contains("is refused"), "{said:?}");
        assert!(said[1].ends_with("(strict)"), "{said:?}");
        assert_eq!(texts(&rules, &schema(), |table| table == "bare").len(), 1);
        assert!(texts(&DedupeRules::default(), &schema(), |_| true).is_empty());
    }
}
