//! What was found for one view of the schema.

use super::{Reads, TableRef, catalogue::Catalogue};
use crate::Schema;
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};
use tokio::sync::OnceCell;

/// Most statements that are remembered; beyond it all are forgotten.
const MOST: usize = 10_000;

/// A statement with its parameters.
pub(super) type Statement = (String, Vec<(String, String)>);

/// Everything that was found for one view of the schema.
#[derive(Debug)]
pub(super) struct State {
    pub(super) schema: Arc<Schema>,
    pub(super) catalogue: Catalogue,
    /// Tables that rows reach some time after their insert.
    pub(super) late: BTreeSet<TableRef>,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    statements: HashMap<Statement, Arc<OnceCell<Reads>>>,
    changes: HashMap<TableRef, Arc<BTreeSet<TableRef>>>,
    /// Whether a table of another database was looked up: nobody tells when that changes.
    elsewhere: bool,
}

impl State {
    pub(super) fn new(schema: Arc<Schema>, catalogue: Catalogue, late: BTreeSet<TableRef>) -> Self {
        Self { schema, catalogue, late, found: Mutex::default() }
    }

    /// The same for a newer view; what was found stays, if nothing that it followed from has changed.
    pub(super) fn renewed(self: &Arc<Self>, new: Self) -> Self {
        let same = self.catalogue == new.catalogue
            && self.late == new.late
            && self.schema.tables.len() == new.schema.tables.len()
            // what did not change is the same value
            && self.schema.tables.values().zip(new.schema.tables.values()).all(|(one, other)| Arc::ptr_eq(one, other));
        let mut found = self.found.lock();
        if same && !found.elsewhere {
            // queries that still look at the old view find it again
            *new.found.lock() = std::mem::take(&mut *found);
        }
        drop(found);
        new
    }

    /// Where what a statement reads is found, by one who asks while the others wait.
    pub(super) fn reads(&self, statement: Statement) -> Arc<OnceCell<Reads>> {
        let mut found = self.found.lock();
        if found.statements.len() >= MOST {
            found.statements.clear();
        }
        Arc::clone(found.statements.entry(statement).or_default())
    }

    pub(super) fn changes(&self, table: &TableRef) -> Option<Arc<BTreeSet<TableRef>>> {
        self.found.lock().changes.get(table).cloned()
    }

    pub(super) fn keep_changes(&self, table: TableRef, changes: Arc<BTreeSet<TableRef>>) {
        let mut found = self.found.lock();
        if found.changes.len() >= MOST {
            found.changes.clear();
        }
        found.changes.insert(table, changes);
    }

    pub(super) fn went_elsewhere(&self) {
        self.found.lock().elsewhere = true;
    }
}
