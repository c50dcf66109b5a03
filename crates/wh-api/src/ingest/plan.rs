//! A table's schema, laid out for judging records: what each column takes, and how a key finds its column.

use crate::{dedupe::IdRule, tenant::Mode};
use metrics::Counter;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};
use wh_clickhouse::{ColumnKind, TableSchema, types::Type};

/// How records of one table are judged. Made once for a schema and kept while it stays.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) mode: Mode,
    pub(crate) columns: Vec<ColumnPlan>,
    by_name: HashMap<Box<[u8]>, usize>,
    /// How many columns a strict record must give a value.
    pub(crate) required: usize,
    /// Array columns that ClickHouse holds to one length, by their name up to the first dot: parts of a `Nested`.
    pub(crate) nested: Vec<Vec<usize>>,
    /// How records are told apart, where they are.
    pub(crate) id: Option<IdPlan>,
}

/// By what a record is told apart.
#[derive(Debug)]
pub(crate) struct IdPlan {
    /// The column; `None`: the table has none of that name.
    pub(crate) column: Option<usize>,
    pub(crate) name: Box<str>,
    /// Whether a record without an id is refused.
    pub(crate) required: bool,
}

/// What one column takes.
#[derive(Debug)]
pub(crate) struct ColumnPlan {
    pub(crate) name: Box<str>,
    pub(crate) type_text: Box<str>,
    /// `MATERIALIZED` or `ALIAS`: no record may give it a value.
    pub(crate) computed: Option<&'static str>,
    /// A strict record must give it a value that is not null.
    pub(crate) required: bool,
    pub(crate) ty: Type,
    /// Counts values whose kind does not decide.
    pub(crate) undecided: OnceLock<Counter>,
}

impl Plan {
    pub(crate) fn new(schema: Arc<TableSchema>, mode: Mode) -> Self {
        let columns: Vec<_> = schema
            .columns()
            .iter()
            .map(|column| ColumnPlan {
                name: column.name.as_str().into(),
                type_text: column.type_text.as_str().into(),
                computed: match column.kind {
                    ColumnKind::Materialized => Some("MATERIALIZED"),
                    ColumnKind::Alias => Some("ALIAS"),
                    ColumnKind::Ordinary | ColumnKind::Default | ColumnKind::Ephemeral => None,
                },
                required: mode == Mode::Strict && column.required(),
                ty: column.ty.clone(),
                undecided: OnceLock::new(),
            })
            .collect();
        let by_name = columns.iter().enumerate().map(|(at, c)| (c.name.as_bytes().into(), at)).collect();
        let required = columns.iter().filter(|column| column.required).count();
        let nested = nested(&schema);
        Self { schema, mode, columns, by_name, required, nested, id: None }
    }

    /// With records told apart by such a rule.
    pub(crate) fn with_id(mut self, rule: Option<&IdRule>) -> Self {
        self.id = rule.map(|rule| IdPlan {
            column: self.column(rule.column.as_bytes()),
            name: rule.column.as_str().into(),
            required: rule.required,
        });
        self
    }

    pub(crate) fn column(&self, key: &[u8]) -> Option<usize> {
        self.by_name.get(key).copied()
    }
}

fn nested(schema: &TableSchema) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, column) in schema.columns().iter().enumerate() {
        if let (Some((prefix, _)), Type::Array(_), true) = (column.name.split_once('.'), &column.ty, column.writable())
        {
            groups.entry(prefix).or_default().push(at);
        }
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_clickhouse::Column;

    #[test]
    fn arrays_with_one_prefix_belong_together() {
        let column = |(at, (name, ty, kind)): (usize, (&str, &str, ColumnKind))| Column {
            name: name.into(),
            type_text: ty.into(),
            ty: Type::parse(ty),
            kind,
            default_expression: String::new(),
            position: at as u64,
        };
        let columns = [
            ("n.a", "Array(Int8)", ColumnKind::Ordinary),
            ("n.b.c", "Array(String)", ColumnKind::Default),
            ("n.c", "Array(String)", ColumnKind::Alias),
            ("n.d", "String", ColumnKind::Ordinary),
            ("m.a", "Array(Int8)", ColumnKind::Ordinary),
            ("na", "Array(Int8)", ColumnKind::Ordinary),
        ];
        let schema = TableSchema::new("t", "MergeTree", columns.into_iter().enumerate().map(column).collect());
        assert_eq!(Plan::new(Arc::new(schema), Mode::Strict).nested, [[0, 1]]);
    }
}
