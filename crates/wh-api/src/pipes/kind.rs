//! Whether a pipe reads or writes: ClickHouse's own word for its statement, asked for at the first use and again when the
//! schema has changed.
//!
//! `EXPLAIN AST` parses the statement and runs nothing. What it names is looked up in a list of what only reads; anything
//! else writes. A statement that is taken for a read runs under `readonly = 2`, so that a wrong word here is a refusal by
//! ClickHouse and never a write.

use super::pipe::Bound;
use arc_swap::ArcSwapOption;
use futures::StreamExt;
use std::sync::Arc;
use wh_clickhouse::{Client, Error, Query, Schema};

/// What the explanation is asked in: a line a line.
const FORMAT: &str = "TSVRaw";
/// How much of it is looked at, in bytes. All of it is read to the end, where that is not far, so that the connection stays.
const HEAD: usize = 64 << 10;

/// What a statement is to ClickHouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It reads, and answers with rows.
    Read,
    /// It stores rows: in a table of the tenant's database, where that is named.
    Insert(Option<String>),
    /// Anything else: a mutation, a definition, a grant.
    Other,
}

impl Kind {
    /// Its name, as people are told it.
    pub(super) fn name(&self) -> &'static str {
        if self.writes() { "write" } else { "read" }
    }

    pub(super) fn writes(&self) -> bool {
        *self != Self::Read
    }
}

/// What is known of one pipe, and under which schema it was asked.
#[derive(Debug, Default)]
pub(super) struct Known(ArcSwapOption<(Arc<Schema>, Arc<Kind>)>);

impl Known {
    /// Its kind, unless nobody asked yet or the tables are others now.
    pub(super) fn under(&self, schema: &Arc<Schema>) -> Option<Arc<Kind>> {
        let known = self.0.load_full()?;
        let (asked, kind) = &*known;
        if Arc::ptr_eq(asked, schema) {
            return Some(Arc::clone(kind));
        }
        let same = asked.version == schema.version
            && asked.tables.len() == schema.tables.len()
            && asked.tables.values().zip(schema.tables.values()).all(|(old, new)| Arc::ptr_eq(old, new));
        same.then(|| {
            self.set(schema, kind);
            Arc::clone(kind)
        })
    }

    /// Its kind, as it was last asked for.
    pub(super) fn last(&self) -> Option<Arc<Kind>> {
        self.0.load_full().map(|known| Arc::clone(&known.1))
    }

    pub(super) fn set(&self, schema: &Arc<Schema>, kind: &Arc<Kind>) {
        self.0.store(Some(Arc::new((Arc::clone(schema), Arc::clone(kind)))));
    }
}

/// Asks ClickHouse.
pub(super) async fn ask(client: &Client, bound: &Bound) -> Result<Kind, Error> {
    // a line behind it ends a comment that the statement may end with
    let mut query = Query::read(format!("EXPLAIN AST {}\n", bound.sql)).format(FORMAT);
    query.params.clone_from(&bound.params);
    let mut body = client.query(query).await?.stream();
    let mut head = Vec::new();
    while let Some(piece) = body.next().await {
        head.extend_from_slice(&piece?);
        if head.len() > HEAD {
            break;
        }
    }
    Ok(of(&String::from_utf8_lossy(&head), client.database()))
}

/// Of the beginning of an explanation: the first line is the whole statement, those with one space before them are its
/// parts.
fn of(explained: &str, database: &str) -> Kind {
    let mut lines = explained.lines();
    let root = lines.next().and_then(|line| line.split([' ', '(']).next()).unwrap_or_default();
    if READS.contains(&root) || READS_BEGIN.iter().any(|begin| root.starts_with(begin)) {
        return Kind::Read;
    }
    if root != "InsertQuery" {
        return Kind::Other;
    }
    let named: Vec<&str> = lines.map_while(|line| line.strip_prefix(" Identifier ")).collect();
    Kind::Insert(match named.as_slice() {
        [table] => Some((*table).to_owned()),
        [own, table] if *own == database => Some((*table).to_owned()),
        _ => None,
    })
}

/// What only reads, as 26.7 names it.
const READS: &[&str] =
    &["SelectWithUnionQuery", "SelectIntersectExceptQuery", "SelectQuery", "DescribeQuery", "Explain", "CheckQuery"];
/// The same where there is one for each thing that is shown.
const READS_BEGIN: &[&str] = &["Show", "SHOW", "Exists"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_to_read_writes() {
        let insert = |table: Option<&str>| Kind::Insert(table.map(str::to_owned));
        for (explained, kind) in [
            ("SelectWithUnionQuery (children 1)\n ExpressionList (children 1)\n", Kind::Read),
            ("Explain EXPLAIN (children 1)\n InsertQuery   (children 2)\n", Kind::Read),
            ("ShowTables\n", Kind::Read),
            ("SHOW USERS query\n", Kind::Read),
            ("ExistsTableQuery  t (children 1)\n Identifier t\n", Kind::Read),
            ("InsertQuery   (children 2)\n Identifier w w\n SelectWithUnionQuery (children 1)\n", insert(Some("w w"))),
            (
                "InsertQuery   (children 2)\n Identifier w\n ExpressionList (children 1)\n  Identifier id\n",
                insert(Some("w")),
            ),
            ("InsertQuery   (children 3)\n Identifier db\n Identifier w\n SelectWithUnionQuery\n", insert(Some("w"))),
            ("InsertQuery   (children 3)\n Identifier other\n Identifier w\n SelectWithUnionQuery\n", insert(None)),
            ("InsertQuery   (children 2)\n Function null (children 1)\n", insert(None)),
            ("AlterQuery  t (children 2)\n", Kind::Other),
            ("ExecuteAsQuery (children 2)\n SelectWithUnionQuery (children 1)\n", Kind::Other),
            ("SYSTEM query\n", Kind::Other),
            ("Set\n", Kind::Other),
            ("SomethingNew\n", Kind::Other),
            ("", Kind::Other),
        ] {
            assert_eq!(of(explained, "db"), kind, "{explained}");
        }
    }

    #[test]
    fn the_kind_is_asked_for_again_when_the_tables_are_others() {
        let schema = |tables: &[&Arc<wh_clickhouse::TableSchema>]| {
            Arc::new(Schema {
                version: "26.7".into(),
                timezone: "UTC".into(),
                settings: Arc::default(),
                tables: tables.iter().map(|table| (table.name.clone(), Arc::clone(table))).collect(),
                taken_at: wh_types::Timestamp::default(),
            })
        };
        let table = || Arc::new(wh_clickhouse::TableSchema::new("t", "MergeTree", Vec::new()));
        let (one, other) = (table(), table());
        let known = Known::default();
        assert_eq!(known.under(&schema(&[&one])), None);
        known.set(&schema(&[&one]), &Arc::new(Kind::Other));
        assert_eq!(known.under(&schema(&[&one])), Some(Arc::new(Kind::Other)), "read again, and the same");
        assert_eq!(known.under(&schema(&[&other])), None);
        assert_eq!(known.under(&schema(&[])), None);
        assert_eq!(known.last().as_deref(), Some(&Kind::Other));
    }
}
