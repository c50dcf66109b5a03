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
WHERE c.database = currentDatabase()
UNION ALL
SELECT 'window', toValidUTF8(name), engine,
    extract(engine_full, '[ ,]non_replicated_deduplication_window = ([0-9]+)'),
    extract(engine_full, '[ ,]replicated_deduplication_window = ([0-9]+)'), '', '', ''
FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'";

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
    let mut windows = Windows::default();
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
            "window" => windows.table(a.into_owned(), &b, &c, &d),
            other => return Err(format!("line {} of the schema has the unknown part {other:?}", at + 1)),
        }
    }
    let (version, timezone) = server.ok_or("the schema has no server line")?;
    if settings.is_empty() {
        return Err("the schema has no settings".into());
    }
    let tables = tables
        .into_iter()
        .map(|(name, (engine, columns))| {
            let table = TableSchema::new(name.clone(), engine, columns);
            let table = table.with_deduplication_window(windows.of(&name));
            (name, Arc::new(table))
        })
        .collect();
    Ok(Schema { version, timezone, settings: Arc::new(settings.into_iter().collect()), tables, taken_at })
}

/// How many inserts' tokens a table remembers, as its definition says. One that says nothing remembers none if it has no
/// replicas; else the server's default, which a strict user may not read. Nor is it known whether a server's own default
/// for tables without replicas is another than none.
#[derive(Debug, Default)]
struct Windows(BTreeMap<String, Option<u64>>);

impl Windows {
    fn table(&mut self, name: String, engine: &str, plain: &str, replicated: &str) {
        let copies = engine.starts_with("Replicated") || engine.starts_with("Shared");
        let window = if copies { replicated.parse().ok() } else { plain.parse().ok().or(Some(0)) };
        self.0.insert(name, window);
    }

    fn of(&self, table: &str) -> Option<u64> {
        self.0.get(table).copied().flatten()
    }
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
["column","w","MergeTree","x","String","","","1"]
["column","r","ReplicatedMergeTree","x","String","","","1"]
["window","t","MergeTree","100","","","",""]
["window","w","MergeTree","","","","",""]
["window","r","ReplicatedMergeTree","","","","",""]
"#;

    #[test]
    fn parts_may_come_in_any_order_and_columns_end_in_theirs() {
        let schema = parse(WHOLE.as_bytes(), Timestamp::default()).unwrap();
        assert_eq!((&*schema.version, &*schema.timezone), ("26.7.2.1", "Etc/UTC"));
        assert_eq!(schema.settings.value("async_insert"), Some("1"));
        assert_eq!(schema.tables.keys().collect::<Vec<_>>(), ["r", "t", "v", "w"]);
        let window = |table: &str| schema.table(table).unwrap().deduplication_window;
        assert_eq!(["r", "t", "v", "w"].map(window), [None, Some(100), None, Some(0)]);
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
            (WHOLE[..WHOLE.len() - 5].to_owned(), "line 10"),
            (WHOLE.replace("DEFAULT", "NEW"), "default kind"),
            (String::new(), "server"),
        ] {
            let error = parse(broken.as_bytes(), Timestamp::default()).unwrap_err();
            assert!(error.contains(named), "{named}: {error}");
        }
    }
}
