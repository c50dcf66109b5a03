//! One view of the database at one moment. Immutable.

use crate::types::Type;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use wh_types::Timestamp;

/// Everything discovery reads, at one moment.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The server's version, as it writes it (`26.7.2.1`).
    pub version: String,
    /// The server's time zone.
    pub timezone: String,
    /// Which settings the server knows.
    pub settings: Arc<ServerSettings>,
    /// The tables of the configured database, by name. One whose definition did not change is the same `Arc`.
    pub tables: BTreeMap<String, Arc<TableSchema>>,
    /// When this was read.
    pub taken_at: Timestamp,
}

impl Schema {
    /// A table by its name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Arc<TableSchema>> {
        self.tables.get(name)
    }

    /// What keeps our user from the work, whatever its grants: its setting `readonly`. `None` where nothing does.
    #[must_use]
    pub fn user_fault(&self) -> Option<&'static str> {
        let read_only = self.settings.value("readonly").is_some_and(|value| value != "0");
        read_only.then_some(crate::READ_ONLY_USER)
    }
}

/// The names of the server's settings with the values our user has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings(HashMap<String, String>);

impl ServerSettings {
    /// Whether the server knows a setting.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The value our user has where the request gives none.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for ServerSettings {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// One table, view or dictionary.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSchema {
    /// Its name in the database.
    pub name: String,
    /// Its engine (`MergeTree`, `View`, ...).
    pub engine: String,
    /// How many inserts' tokens it remembers by its own definition, so that a repeated one is stored once; 0: none.
    /// `None` where its engine has no such thing, or replicas have the server's default.
    pub deduplication_window: Option<u64>,
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
}

impl TableSchema {
    /// Puts columns into the order of their positions.
    #[must_use]
    pub fn new(name: impl Into<String>, engine: impl Into<String>, mut columns: Vec<Column>) -> Self {
        columns.sort_by_key(|column| column.position);
        let by_name = columns.iter().enumerate().map(|(at, column)| (column.name.clone(), at)).collect();
        Self { name: name.into(), engine: engine.into(), deduplication_window: None, columns, by_name }
    }

    /// The same with another window.
    #[must_use]
    pub fn with_deduplication_window(mut self, window: Option<u64>) -> Self {
        self.deduplication_window = window;
        self
    }

    /// Whether rows can be inserted into it at all, by its engine.
    #[must_use]
    pub fn takes_rows(&self) -> bool {
        !matches!(self.engine.as_str(), "View" | "Dictionary")
    }

    /// The columns in the order of their positions.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// A column by its exact name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.by_name.get(name).map(|at| &self.columns[*at])
    }
}

/// How a column gets its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// From the row, else its type's zero (or NULL).
    Ordinary,
    /// From the row, else an expression.
    Default,
    /// Always an expression, stored. Not writable.
    Materialized,
    /// Always an expression, never stored. Not writable.
    Alias,
    /// From the row, never stored: only for other columns' expressions.
    Ephemeral,
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, unescaped. A part of a `Nested` has a dot in it.
    pub name: String,
    /// Its type as ClickHouse writes it.
    pub type_text: String,
    /// Its type, parsed.
    pub ty: Type,
    /// How it gets its value.
    pub kind: ColumnKind,
    /// The expression of a kind that has one, as ClickHouse writes it. Not for clients.
    pub default_expression: String,
    /// Its place in the table, from 1.
    pub position: u64,
}

impl Column {
    /// Whether NULL can be stored in it.
    #[must_use]
    pub fn nullable(&self) -> bool {
        self.ty.nullable()
    }

    /// Whether a row may give it a value.
    #[must_use]
    pub fn writable(&self) -> bool {
        matches!(self.kind, ColumnKind::Ordinary | ColumnKind::Default | ColumnKind::Ephemeral)
    }

    /// Whether a row that leaves it out would have its type's zero stored: strict mode asks for it.
    #[must_use]
    pub fn required(&self) -> bool {
        self.kind == ColumnKind::Ordinary && !self.nullable()
    }
}
