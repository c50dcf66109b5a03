//! Building the state anew from what a log kept, and saying what a log cannot be asked for once segments are dropped.
//!
//! Everything restored is idempotent and free of order but for the blocks themselves, which come by growing sequence.

use super::{
    Core, Known, TableIndex,
    table::{Entry, State},
    tick::Tick,
};
use crate::Allowance;
use wh_types::{BlockId, Table, Tenant, Timestamp};

/// A block found in the log.
#[derive(Clone, Debug)]
pub(crate) struct Restored<B> {
    pub(crate) table: TableIndex,
    pub(crate) sequence: u64,
    pub(crate) id: BlockId,
    pub(crate) received: Timestamp,
    pub(crate) stored: Tick,
    pub(crate) bytes: u32,
    pub(crate) rows: u32,
    pub(crate) body: B,
}

/// What must outlive the segments it was learned from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) next_sequence: u64,
    pub(crate) tables: Vec<TableSnapshot>,
    pub(crate) tenants: Vec<TenantSnapshot>,
}

/// One table's part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableSnapshot {
    pub(crate) tenant: Tenant,
    pub(crate) table: Table,
    /// Nothing up to here is kept: the sequence, and the latest time of receipt.
    pub(crate) floor: (u64, Timestamp),
    /// The last of each run of blocks that is gone between kept ones.
    pub(crate) removed: Vec<(u64, Timestamp)>,
    /// Settled: ranges of sequences, whole within this table.
    pub(crate) settled: Vec<(u64, u64)>,
}

/// One tenant's part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TenantSnapshot {
    pub(crate) tenant: Tenant,
    /// Where one was set, with its revision.
    pub(crate) allowance: Option<(u64, Allowance)>,
    pub(crate) letters_dropped: u64,
    /// The numbers of the letters that are kept.
    pub(crate) letters: Vec<u64>,
}

impl<B: Clone> Core<B> {
    /// Takes a block back. Sequences grow from call to call; one that is there already is refused, its body given back.
    pub(crate) fn restore(&mut self, block: Restored<B>, now: Tick) -> Result<(), B> {
        self.next_sequence = self.next_sequence.max(block.sequence + 1);
        let rows = block.rows;
        if block.stored.after(self.settings.duplicate_window) > now {
            self.recent.insert(block.id, Known { sequence: block.sequence, rows }, block.stored);
        }
        let table = &self.tables[block.table.0 as usize];
        let last = table.entries.back().map_or(table.floor, |entry| entry.sequence);
        if rows == 0 || block.sequence <= last {
            return Err(block.body);
        }
        let entry = Entry {
            sequence: block.sequence,
            received: block.received,
            stored: block.stored,
            bytes: block.bytes,
            attempts: 0,
            rows: u16::try_from(rows).unwrap_or(u16::MAX),
            state: State::Fresh,
            body: Some(block.body),
        };
        self.push(block.table, entry);
        let table = &mut self.tables[block.table.0 as usize];
        let unit = &mut self.units[table.unit as usize];
        unit.unsettled += 1;
        if !table.queued {
            table.queued = true;
            unit.ring.push_back(block.table);
        }
        Ok(())
    }

    /// Takes back an id whose block is gone.
    pub(crate) fn restore_id(&mut self, id: BlockId, known: Known, stored: Tick, now: Tick) {
        if stored.after(self.settings.duplicate_window) > now {
            self.recent.insert(id, known, stored);
        }
    }

    /// Makes room for so many blocks of a table, so that they are not moved while they are added.
    pub(crate) fn expect(&mut self, at: TableIndex, blocks: usize) {
        self.tables[at.0 as usize].entries.reserve(blocks);
    }

    /// Makes room for ids stored about then.
    pub(crate) fn expect_ids(&mut self, stored: Tick, ids: usize) {
        self.recent.reserve(stored, ids);
    }

    /// Nothing of a table is kept up to here. Before its blocks.
    pub(crate) fn restore_floor(&mut self, at: TableIndex, floor: u64, received: Timestamp) {
        self.next_sequence = self.next_sequence.max(floor + 1);
        let table = &mut self.tables[at.0 as usize];
        if floor > 0 {
            table.floor = table.floor.max(floor);
            table.floor_received = table.floor_received.max(Some(received));
        }
    }

    /// Notes that blocks are gone up to here since the last kept one. Comes in the order of the blocks.
    pub(crate) fn restore_removed(&mut self, at: TableIndex, sequence: u64, received: Timestamp) {
        let table = &mut self.tables[at.0 as usize];
        match table.entries.back().map(|entry| entry.sequence) {
            None => self.restore_floor(at, sequence, received),
            Some(last) if last < sequence => {
                self.next_sequence = self.next_sequence.max(sequence + 1);
                table.entries.push_back(Entry {
                    sequence,
                    received,
                    stored: Tick(i64::MIN),
                    bytes: 0,
                    attempts: 0,
                    rows: 0,
                    state: State::Gone,
                    body: None,
                });
                table.restore_tombstone();
            }
            Some(_) => {}
        }
    }

    /// Settles what is left of a range. After all blocks. What is old besides goes with the next sweep.
    pub(crate) fn restore_settled(&mut self, at: TableIndex, first: u64, last: u64) {
        self.next_sequence = self.next_sequence.max(last + 1);
        let mut index = self.tables[at.0 as usize].first_after(first.saturating_sub(1));
        while let Some(entry) = self.tables[at.0 as usize].entries.get(index).filter(|entry| entry.sequence <= last) {
            if entry.unsettled() {
                self.mark_settled(at, index);
            }
            index += 1;
        }
        let table = &mut self.tables[at.0 as usize];
        if table.retained > 0 && !table.sweeping {
            table.sweeping = true;
            self.sweeping.push_back(at);
        }
    }

    pub(crate) fn restore_next(&mut self, next: u64) {
        self.next_sequence = self.next_sequence.max(next);
    }

    /// Everything was restored: what was found is stored.
    pub(crate) fn restored(&mut self) {
        self.confirmed = self.next_sequence - 1;
    }

    /// What a log must carry forward before it drops segments.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let tables = self.tables.iter().map(|table| TableSnapshot {
            tenant: self.tenants[table.tenant.0 as usize].name.clone(),
            table: table.name.clone(),
            floor: (table.floor, table.floor_received.unwrap_or_default()),
            removed: table.removed_runs(),
            settled: table.settled_ranges(),
        });
        let tenants = self.tenants.iter().map(|tenant| TenantSnapshot {
            tenant: tenant.name.clone(),
            allowance: (tenant.revision > 0).then_some((tenant.revision, tenant.allowance)),
            letters_dropped: tenant.letters.dropped(),
            letters: tenant.letters.live(),
        });
        Snapshot { next_sequence: self.next_sequence, tables: tables.collect(), tenants: tenants.collect() }
    }

    /// Changes where a kept block's body is; gives back the place that is free now: the old one, or the new one when
    /// the block is gone.
    pub(crate) fn moved(&mut self, at: TableIndex, sequence: u64, to: B) -> B {
        let table = &mut self.tables[at.0 as usize];
        match table.find(sequence).and_then(|index| table.entries[index].body.as_mut()) {
            Some(body) => std::mem::replace(body, to),
            None => to,
        }
    }

    pub(crate) fn letter_moved(&mut self, tenant: &Tenant, number: u64, to: B) -> B {
        match self.letters(tenant).moved(number, to) {
            Ok(old) => old,
            Err(new) => new,
        }
    }
}
