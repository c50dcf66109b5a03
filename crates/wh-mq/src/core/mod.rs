//! The queue's state machine: admission, order, delivery, settling, history, reclaim. Pure: no I/O, no clock, no
//! randomness. Both local backends (`sim`, `embedded`) are this and a place to put bodies.
//!
//! A body is a handle `B`: the block itself in memory, or its place in the log.

mod admit;
mod deliver;
mod floor;
mod held;
mod history;
mod letters;
mod recent;
mod restore;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
mod tick;
mod unit;

pub(crate) use admit::{Admission, Ticket};
pub(crate) use deliver::{Next, Out};
pub(crate) use history::{Read, Reader, Shown};
pub(crate) use recent::Known;
pub(crate) use restore::{Restored, Snapshot, TableSnapshot, TenantSnapshot};
pub(crate) use table::TableIndex;
pub(crate) use tick::Tick;

use crate::{Allowance, TenantStatus, Unit};
use letters::Letters;
pub(crate) use letters::{LetterNote, Stretch};
use recent::Recent;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};
use table::{TableState, TenantIndex};
use unit::UnitState;
use wh_types::{Cursor, Epoch, Table, Tenant};

/// What the state machine is told once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) shards: u32,
    pub(crate) ack_wait: Duration,
    pub(crate) duplicate_window: Duration,
    pub(crate) allowance: Allowance,
    /// Dead letters have an nth of the tenant's bytes.
    pub(crate) dead_letter_share: u64,
    /// Most blocks remembered, settled or not: what bounds memory.
    pub(crate) max_blocks: usize,
}

#[derive(Debug)]
struct TenantState<B> {
    name: Tenant,
    allowance: Allowance,
    /// Which setting of the allowance counts; 0: it is the default.
    revision: u64,
    tables: HashMap<Table, TableIndex>,
    /// Charged: unsettled, and settled within the history window.
    bytes: u64,
    unsettled_rows: u64,
    unsettled_blocks: u64,
    letters: Letters<B>,
    /// When it was last swept because it was full.
    swept: Option<Tick>,
}

/// What one table holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldByTable {
    pub(crate) blocks: u64,
    pub(crate) rows: u64,
    pub(crate) unsettled_blocks: u64,
    pub(crate) unsettled_rows: u64,
    pub(crate) first: Option<u64>,
    pub(crate) last: Option<u64>,
}

/// The state of one queue.
#[derive(Debug)]
pub(crate) struct Core<B> {
    settings: Settings,
    epoch: Epoch,
    tables: Vec<TableState<B>>,
    tenants: Vec<TenantState<B>>,
    names: HashMap<Tenant, TenantIndex>,
    units: Vec<UnitState>,
    recent: Recent,
    next_sequence: u64,
    /// Everything up to here is stored, or failed.
    confirmed: u64,
    /// Bodies nothing refers to any more.
    freed: Vec<B>,
    /// Tables with settled ranges nobody has taken yet.
    settled: Vec<TableIndex>,
    /// Tables with settled blocks kept for the history.
    sweeping: VecDeque<TableIndex>,
    /// Blocks remembered with their bodies.
    blocks: usize,
    /// Blocks settled since this was made.
    settled_ever: u64,
}

impl<B: Clone> Core<B> {
    pub(crate) fn new(settings: Settings, epoch: Epoch) -> Self {
        let settings = Settings { shards: settings.shards.max(1), ..settings };
        Self {
            settings,
            epoch,
            tables: Vec::new(),
            tenants: Vec::new(),
            names: HashMap::new(),
            units: (0..settings.shards).map(|_| UnitState::default()).collect(),
            recent: Recent::new(settings.duplicate_window),
            next_sequence: 1,
            confirmed: 0,
            freed: Vec::new(),
            settled: Vec::new(),
            sweeping: VecDeque::new(),
            blocks: 0,
            settled_ever: 0,
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn cursor(&self, sequence: u64) -> Cursor {
        Cursor { epoch: self.epoch, sequence }
    }

    pub(crate) fn units(&self) -> Vec<Unit> {
        (0..self.settings.shards).map(|shard| Unit { partition: 0, shard }).collect()
    }

    pub(crate) fn unit_of(&self, tenant: &Tenant, table: &Table) -> Unit {
        let route = wh_topology::route(tenant, table, 1, self.settings.shards);
        Unit { partition: route.partition, shard: route.shard }
    }

    /// The bodies nothing refers to any more, since the last call.
    pub(crate) fn take_freed(&mut self) -> Vec<B> {
        std::mem::take(&mut self.freed)
    }

    /// The settled ranges of every table since the last call.
    pub(crate) fn take_settled(&mut self) -> Vec<(TableIndex, Vec<(u64, u64)>)> {
        let tables = std::mem::take(&mut self.settled);
        tables.into_iter().map(|at| (at, std::mem::take(&mut self.tables[at.0 as usize].settled))).collect()
    }

    /// Takes back what could not be handed on.
    pub(crate) fn return_settled(&mut self, at: TableIndex, ranges: Vec<(u64, u64)>) {
        let table = &mut self.tables[at.0 as usize];
        if table.settled.is_empty() {
            self.settled.push(at);
        }
        table.settled.splice(0..0, ranges);
    }

    /// How many blocks were settled since this was made.
    pub(crate) fn settled_ever(&self) -> u64 {
        self.settled_ever
    }

    pub(crate) fn has_settled(&self) -> bool {
        !self.settled.is_empty()
    }

    /// Where a block's body is now, if it is kept.
    pub(crate) fn body(&mut self, at: TableIndex, sequence: u64) -> Option<B> {
        let table = &mut self.tables[at.0 as usize];
        let index = table.find(sequence)?;
        table.entries[index].body.clone()
    }

    /// A tenant's and a table's names.
    pub(crate) fn names(&self, at: TableIndex) -> (&Tenant, &Table) {
        let table = &self.tables[at.0 as usize];
        (&self.tenants[table.tenant.0 as usize].name, &table.name)
    }

    /// The next number of the queue's one counter.
    pub(crate) fn draw_sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence - 1
    }

    /// Remembers a table, so that its index can be used.
    pub(crate) fn table(&mut self, tenant: &Tenant, table: &Table) -> TableIndex {
        let tenant_at = self.tenant(tenant);
        if let Some(at) = self.tenants[tenant_at.0 as usize].tables.get(table) {
            return *at;
        }
        let at = TableIndex(u32::try_from(self.tables.len()).unwrap_or(u32::MAX));
        let unit = self.unit_of(tenant, table).shard;
        self.tables.push(TableState::new(tenant_at, table.clone(), unit));
        self.tenants[tenant_at.0 as usize].tables.insert(table.clone(), at);
        at
    }

    fn tenant(&mut self, name: &Tenant) -> TenantIndex {
        if let Some(at) = self.names.get(name) {
            return *at;
        }
        let at = TenantIndex(u32::try_from(self.tenants.len()).unwrap_or(u32::MAX));
        self.tenants.push(TenantState {
            name: name.clone(),
            allowance: self.settings.allowance,
            revision: 0,
            tables: HashMap::new(),
            bytes: 0,
            unsettled_rows: 0,
            unsettled_blocks: 0,
            letters: Letters::default(),
            swept: None,
        });
        self.names.insert(name.clone(), at);
        at
    }

    /// Sets what a tenant may keep. Blocks stay as they are; dead letters too, until the next is parked.
    /// Of two settings the one with the higher revision counts.
    pub(crate) fn set_allowance(&mut self, tenant: &Tenant, allowance: Allowance, revision: u64) {
        let at = self.tenant(tenant);
        let state = &mut self.tenants[at.0 as usize];
        if revision > state.revision {
            state.allowance = allowance;
            state.revision = revision;
            state.swept = None;
        }
    }

    /// A tenant's allowance, where it was given one.
    pub(crate) fn allowance_set(&self, tenant: &Tenant) -> Option<Allowance> {
        let tenant = &self.tenants[self.names.get(tenant)?.0 as usize];
        (tenant.revision > 0).then_some(tenant.allowance)
    }

    pub(crate) fn letters(&mut self, tenant: &Tenant) -> &mut Letters<B> {
        let at = self.tenant(tenant);
        &mut self.tenants[at.0 as usize].letters
    }

    /// How many bytes of dead letters a tenant may keep.
    pub(crate) fn letters_share(&mut self, tenant: &Tenant) -> u64 {
        let at = self.tenant(tenant);
        self.tenants[at.0 as usize].allowance.bytes / self.settings.dead_letter_share.max(1)
    }

    /// Which bucket of the window an id stored then goes to; `None`: its time is over.
    pub(crate) fn bucket(&self, stored: Tick, now: Tick) -> Option<i64> {
        let within = stored.after(self.settings.duplicate_window) > now;
        within.then(|| stored.0.div_euclid(self.recent.span()))
    }

    pub(crate) fn known(&self, id: wh_types::BlockId) -> Option<Known> {
        self.recent.get(id)
    }

    /// What each table holds.
    pub(crate) fn held(&self) -> impl Iterator<Item = (&Tenant, &Table, HeldByTable)> {
        self.tables.iter().map(|table| {
            let mut held = HeldByTable::default();
            for entry in table.entries.iter().filter(|entry| entry.body.is_some()) {
                held.blocks += 1;
                held.rows += u64::from(entry.rows);
                held.unsettled_blocks += u64::from(entry.unsettled());
                held.unsettled_rows += if entry.unsettled() { u64::from(entry.rows) } else { 0 };
                held.first.get_or_insert(entry.sequence);
                held.last = Some(entry.sequence);
            }
            (&self.tenants[table.tenant.0 as usize].name, &table.name, held)
        })
    }

    pub(crate) fn status(&self) -> BTreeMap<Tenant, TenantStatus> {
        let status = |tenant: &TenantState<B>| TenantStatus {
            bytes: Some(tenant.bytes),
            budget_bytes: Some(tenant.allowance.bytes),
            unsettled_rows: Some(tenant.unsettled_rows),
            unsettled_blocks: tenant.unsettled_blocks,
            dead_letters: tenant.letters.counts().clone(),
            dead_letters_dropped: Some(tenant.letters.dropped()),
        };
        self.tenants.iter().map(|tenant| (tenant.name.clone(), status(tenant))).collect()
    }
}
