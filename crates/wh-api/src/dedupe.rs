//! What the API takes to store each event once: a store of keys, and by which column a table's events are told apart.

use std::{collections::HashMap, sync::Arc, time::Duration};
use wh_clickhouse::{Schema, TableSchema};
use wh_dedupe::{Dedupe, Retention};

/// Where keys are kept, and how claims on them are used.
#[derive(Clone, Debug)]
pub struct DedupeStore {
    /// The store. Whoever opened it closes it, once the API has finished.
    pub store: Arc<dyn Dedupe>,
    /// How long a claim holds. At least three `publish_timeout`s and 10.5 s (decision D4).
    pub lease: Duration,
    /// What becomes of events while the store is away.
    pub on_outage: OnOutage,
    /// How long every stream of the queue remembers a block's id at least. A claim that lapsed is looked into for half of
    /// that after its block can last have been published.
    pub duplicate_window: Duration,
    /// How long the records of a request with an `Idempotency-Key` are known.
    pub idempotency_window: Duration,
}

/// What becomes of events while the store is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOutage {
    /// They are refused with 503.
    #[default]
    Refuse,
    /// They are stored without being looked up: they may double.
    Accept,
}

/// How the events of one table are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdRule {
    /// The column that holds an event's id.
    pub column: String,
    /// Whether an event without one is refused; else it is stored without being looked up.
    pub required: bool,
    /// How long an id is known.
    pub retention: Retention,
}

/// The same for a tenant's tables.
#[derive(Clone, Debug, Default)]
pub struct DedupeRules {
    /// For every table that is not named. `None`: its events are not told apart.
    pub others: Option<IdRule>,
    /// For single tables, by name.
    pub tables: HashMap<String, Option<IdRule>>,
}

impl DedupeRules {
    /// How the events of a table are told apart.
    #[must_use]
    pub fn of(&self, table: &str) -> Option<&IdRule> {
        self.tables.get(table).unwrap_or(&self.others).as_ref()
    }

    /// The tables that take rows and have no column of the name by which their rows are to be told apart, or one that no
    /// row can give a value; by name, in order, with their rules.
    #[must_use]
    pub fn without_column<'a>(&'a self, schema: &'a Schema) -> Vec<(&'a str, &'a IdRule)> {
        let lacks = |table: &TableSchema, rule: &IdRule| {
            !table.columns().iter().any(|column| column.name == rule.column && column.writable())
        };
        let tables = schema.tables.iter().filter(|(_, table)| table.takes_rows());
        let mut found: Vec<_> = tables
            .filter_map(|(name, table)| Some((name.as_str(), self.of(name).filter(|rule| lacks(table, rule))?)))
            .collect();
        found.sort_unstable_by_key(|(name, _)| *name);
        found
    }
}
