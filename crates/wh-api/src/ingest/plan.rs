//! A table's schema, laid out for judging records: what each column takes, and how a key finds its column.

use crate::{tenant::Mode, types::bare};
use metrics::Counter;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};
use wh_clickhouse::{
    ColumnKind, TableSchema,
    types::{Accept, JsonKind, Type, accepts},
};

/// How records of one table are judged. Made once for a schema and kept while it stays.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) mode: Mode,
    pub(crate) columns: Vec<ColumnPlan>,
    by_name: HashMap<Box<[u8]>, usize>,
    /// How many columns a strict record must give a value.
    pub(crate) required: usize,
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
    /// A bare number here would mean ticks to one version of ClickHouse and seconds to another (decision D7).
    pub(crate) quote_numbers: bool,
    verdicts: [Accept; 7],
    /// Counts values whose kind does not decide.
    pub(crate) undecided: OnceLock<Counter>,
}

impl ColumnPlan {
    pub(crate) fn verdict(&self, kind: JsonKind) -> Accept {
        self.verdicts[kind as usize]
    }
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
                quote_numbers: matches!(bare(&column.ty), Type::DateTime64 { .. }),
                verdicts: JsonKind::ALL.map(|kind| accepts(&column.ty, kind)),
                undecided: OnceLock::new(),
            })
            .collect();
        let by_name = columns.iter().enumerate().map(|(at, c)| (c.name.as_bytes().into(), at)).collect();
        let required = columns.iter().filter(|column| column.required).count();
        Self { schema, mode, columns, by_name, required }
    }

    pub(crate) fn column(&self, key: &[u8]) -> Option<usize> {
        self.by_name.get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_its_own_index() {
        assert!(JsonKind::ALL.iter().enumerate().all(|(at, kind)| *kind as usize == at));
    }
}
