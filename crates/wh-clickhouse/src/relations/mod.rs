//! Which tables stand behind others: what a statement reads in the end, and what an insert changes besides its table.
//!
//! ClickHouse is asked: `EXPLAIN QUERY TREE` names what a statement reads, `system.tables` says what each of these is
//! made of, and so on until nothing is new. No statement is taken apart here. What was found holds for one view of the
//! schema. Nothing here knows a cache, or tenants.

mod ask;
mod catalogue;
mod definition;
mod resolve;
mod state;
mod token;
mod tree;

pub use resolve::Relations;

use std::{collections::BTreeSet, fmt};

/// A table by its full name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableRef {
    /// Its database.
    pub database: String,
    /// Its name there.
    pub name: String,
}

impl TableRef {
    /// Of both parts.
    #[must_use]
    pub fn new(database: impl Into<String>, name: impl Into<String>) -> Self {
        Self { database: database.into(), name: name.into() }
    }
}

impl fmt::Display for TableRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.name)
    }
}

/// What a statement reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// Every table that is known to be read, views and what is behind them alike.
    pub tables: BTreeSet<TableRef>,
    /// Whether that is all of it, and all of it changes only by writes to these tables. Else something is read that
    /// changes by itself or that could not be found out: another server's table, a dictionary, a table function, a
    /// buffer's table.
    pub tracked: bool,
    /// Whether the answer follows from what is read alone. Else it has a function like `now()` or `rand()`.
    pub steady: bool,
}

impl Reads {
    /// Nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self { tables: BTreeSet::new(), tracked: false, steady: false }
    }
}
