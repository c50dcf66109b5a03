//! Where a process keeps what is known of its tables' progress, and wakes who reads it.

use super::{Floor, Progress, Reader, known::Known};
use crate::{Error, Kind, Result};
use parking_lot::Mutex;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};
use tokio::sync::watch;
use wh_types::{Table, Tenant};

/// Tables that are remembered though nobody reads them.
const MOST: usize = 20_000;

/// What is known of every table.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    tables: HashMap<(Tenant, Table), Slot>,
    closed: bool,
}

#[derive(Debug)]
struct Slot {
    known: Option<Known>,
    readers: watch::Sender<Option<Arc<Progress>>>,
}

impl Slot {
    fn tell(&self) {
        if let Some(known) = &self.known {
            self.readers.send_replace(Some(Arc::new(known.now.clone())));
        }
    }
}

impl State {
    fn slot(&mut self, tenant: &Tenant, table: &Table) -> &mut Slot {
        if self.tables.len() >= MOST {
            // they come again with their next mark, or are asked for
            self.tables.retain(|_, slot| slot.readers.receiver_count() > 0);
        }
        match self.tables.entry((tenant.clone(), table.clone())) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(free) => free.insert(Slot { known: None, readers: watch::Sender::new(None) }),
        }
    }
}

impl Board {
    /// Takes a mark.
    pub(crate) fn post(&self, mark: Progress) {
        let mut state = self.0.lock();
        if state.closed {
            return;
        }
        let slot = state.slot(&mark.tenant, &mark.table);
        let news = match &mut slot.known {
            Some(known) => known.hear(mark),
            none => {
                *none = Some(Known::new(mark));
                true
            }
        };
        if news {
            slot.tell();
        }
    }

    /// Takes what the queue itself knows of a table.
    pub(crate) fn post_floor(&self, tenant: &Tenant, table: &Table, floor: Floor) {
        let mut state = self.0.lock();
        if state.closed {
            return;
        }
        let slot = state.slot(tenant, table);
        let news = match &mut slot.known {
            Some(known) => known.take_floor(floor),
            none => {
                *none = Some(Known::of_floor(tenant, table, floor));
                true
            }
        };
        if news {
            slot.tell();
        }
    }

    /// Follows a table.
    pub(crate) fn watch(&self, tenant: &Tenant, table: &Table) -> Result<Reader> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(Error::new("watch progress", Kind::Stopping));
        }
        Ok(Reader::new(state.slot(tenant, table).readers.subscribe()))
    }

    /// Ends every reader.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        state.tables.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use wh_types::Epoch;

    fn mark(table: &str, number: u64) -> Progress {
        Progress {
            tenant: Tenant::default(),
            table: Table::new(table).unwrap(),
            epoch: Epoch(1),
            committed: number,
            inserting: number,
            parked: Vec::new(),
            named_after: 0,
            owner: 1,
            number,
        }
    }

    #[test]
    fn tables_nobody_reads_are_bounded_and_read_ones_stay() {
        let board = Board::default();
        let mut reader = board.watch(&Tenant::default(), &Table::new("read").unwrap()).unwrap();
        assert!(reader.next().now_or_never().is_none(), "nothing is known");
        for n in 0..=MOST {
            board.post(mark(&format!("t{n}"), 1));
        }
        assert!(board.0.lock().tables.len() <= MOST);
        board.post(mark("read", 3));
        assert_eq!(reader.next().now_or_never().flatten().unwrap().committed, 3);
        assert!(reader.next().now_or_never().is_none(), "nothing is new");
        board.close();
        assert_eq!(reader.next().now_or_never(), Some(None));
        assert!(board.watch(&Tenant::default(), &Table::new("read").unwrap()).is_err());
    }
}
