//! Which columns an asker may name. Says nothing of who they are.

use std::collections::BTreeSet;
use wh_clickhouse::{Column, ColumnKind, TableSchema};

/// The columns that a query may name, in any place of it. What is outside is as if it were not there (decision D23).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Every one that can be read.
    All,
    /// These, as far as they can be read.
    #[cfg_attr(not(test), expect(dead_code, reason = "policies make such sets"))]
    Only(BTreeSet<String>),
}

impl Allowed {
    fn has(&self, column: &Column) -> bool {
        let named = match self {
            Self::All => true,
            Self::Only(names) => names.contains(&column.name),
        };
        named && column.kind != ColumnKind::Ephemeral
    }

    /// A column by its exact name.
    pub(super) fn column<'a>(&self, table: &'a TableSchema, name: &str) -> Option<&'a Column> {
        table.column(name).filter(|column| self.has(column))
    }

    /// All of them, in the order of the table.
    pub(super) fn columns<'a>(&self, table: &'a TableSchema) -> impl Iterator<Item = &'a Column> {
        table.columns().iter().filter(|column| self.has(column))
    }
}
