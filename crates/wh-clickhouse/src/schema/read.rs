//! Reading a schema: one query, one answer, whole or not at all. Keeps nothing.

use super::{Column, ColumnKind, Schema, TableSchema};
use crate::{Client, Error, Kind, Query, Result, error::Purpose, types::Type};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};
use wh_types::Timestamp;

/// Most bytes of an answer: some half a million columns.
const LIMIT: usize = 256 * 1024 * 1024;

/// All parts come in one answer, so that one end says that all of them are whole. A table that is dropped between the
/// two lists is left out by the join. Texts that are not UTF-8 would break the JSON; no name of ours can be one.
const SQL: &str = "\
SELECT 'server' AS part, version() AS a, timezone() AS b, '' AS c, '' AS d, '' AS e, '' AS f, '' AS g
UNION ALL
SELECT 'setting', name, toValidUTF8(value), '', '', '', '', '' FROM system.settings
UNION ALL
SELECT 'column', toValidUTF8(c.table), t.engine, toValidUTF8(c.name), toValidUTF8(c.type), c.default_kind,
    toValidUTF8(c.default_expression), toString(c.position)
FROM system.columns AS c
INNER JOIN (SELECT name, engine FROM system.tables WHERE database = currentDatabase()) AS t ON c.table = t.name
WHERE c.database = currentDatabase()";

/// Reads the client's database. `taken_at` is when the reading began.
pub(super) async fn read(client: &Client, taken_at: Timestamp, timeout: Duration) -> Result<Schema> {
    let purpose = Purpose { op: "discover", effect: false };
    // no setting of ours: a user of the strictest profile may change none. With `wait_end` a failure has its status.
    let query = Query { wait_end: true, timeout: Some(timeout), ..Query::any(SQL) }.format("JSONCompactEachRow");
    let answer = client.ask(purpose, query).await?.bytes(LIMIT).await?;
    parse(&answer, taken_at).map_err(|reason| Error::new(Kind::Malformed, purpose, reason))
}

fn parse(answer: &[u8], taken_at: Timestamp) -> Result<Schema, String> {
    let mut server = None;
    let mut settings = Vec::new();
    let mut tables: BTreeMap<String, (String, Vec<Column>)> = BTreeMap::new();
    for (at, line) in answer.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let [part, a, b, c, d, e, f, g]: [Cow<'_, str>; 8] =
            serde_json::from_slice(line).map_err(|cause| format!("line {} of the schema: {cause}", at + 1))?;
        match &*part {
            "server" => server = Some((a.into_owned(), b.into_owned())),
            "setting" => settings.push((a, b)),
            "column" => {
                let kind =
                    kind(&e).ok_or_else(|| format!("column {c:?} of {a:?} has the unknown default kind {e:?}"))?;
                let position = g.parse().map_err(|_| format!("column {c:?} of {a:?} has the position {g:?}"))?;
                let column = Column {
                    name: c.into_owned(),
                    ty: Type::parse(&d),
                    type_text: d.into_owned(),
                    kind,
                    default_expression: f.into_owned(),
                    position,
                };
                let table = tables.entry(a.into_owned()).or_insert_with(|| (b.into_owned(), Vec::new()));
                table.1.push(column);
            }
            other => return Err(format!("line {} of the schema has the unknown part {other:?}", at + 1)),
        }
    }
    let (version, timezone) = server.ok_or("the schema has no server line")?;
    if settings.is_empty() {
        return Err("the schema has no settings".into());
    }
    let tables = tables
        .into_iter()
        .map(|(name, (engine, columns))| (name.clone(), Arc::new(TableSchema::new(name, engine, columns))))
        .collect();
    Ok(Schema { version, timezone, settings: Arc::new(settings.into_iter().collect()), tables, taken_at })
}

fn kind(text: &str) -> Option<ColumnKind> {
    Some(match text {
        "" => ColumnKind::Ordinary,
        "DEFAULT" => ColumnKind::Default,
        "MATERIALIZED" => ColumnKind::Materialized,
        "ALIAS" => ColumnKind::Alias,
        "EPHEMERAL" => ColumnKind::Ephemeral,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"["column","t","MergeTree","b","Nullable(Int32)","DEFAULT","7","2"]
["setting","async_insert","1","","","","",""]
["column","t","MergeTree","a","UInt64","","","1"]
["server","26.7.2.1","Etc/UTC","","","","",""]
["column","v","View","x","String","","","1"]
"#;

    #[test]
    fn parts_may_come_in_any_order_and_columns_end_in_theirs() {
        let schema = parse(WHOLE.as_bytes(), Timestamp::default()).unwrap();
        assert_eq!((&*schema.version, &*schema.timezone), ("26.7.2.1", "Etc/UTC"));
        assert_eq!(schema.settings.value("async_insert"), Some("1"));
        assert_eq!(schema.tables.keys().collect::<Vec<_>>(), ["t", "v"]);
        let table = schema.table("t").unwrap();
        assert_eq!(table.columns().iter().map(|c| &*c.name).collect::<Vec<_>>(), ["a", "b"]);
        assert!(table.column("a").unwrap().required() && !table.column("b").unwrap().required());
        assert!(table.column("B").is_none(), "names are exact");
    }

    #[test]
    fn what_is_not_whole_is_no_schema() {
        let lines: Vec<&str> = WHOLE.lines().collect();
        let without = |n: usize| [&lines[..n], &lines[n + 1..]].concat().join("\n");
        for (broken, named) in [
            (without(3), "server"),
            (without(1), "settings"),
            (WHOLE[..WHOLE.len() - 5].to_owned(), "line 5"),
            (WHOLE.replace("DEFAULT", "NEW"), "default kind"),
            (String::new(), "server"),
        ] {
            let error = parse(broken.as_bytes(), Timestamp::default()).unwrap_err();
            assert!(error.contains(named), "{named}: {error}");
        }
    }
}
