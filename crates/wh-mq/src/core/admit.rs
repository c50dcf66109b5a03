//! Taking blocks in: budgets, duplicates, places. A block is admitted, then written by the backend, then confirmed or
//! voided, in the order of admission.

use super::{
    Core, Known,
    table::{Entry, State, TableIndex, TenantIndex},
    tick::Tick,
};
use crate::Kind;
use std::time::Duration;
use wh_types::{Block, BlockId};

/// When a refused publisher shall come again.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// How many settled blocks are forgotten early, at once, when too many blocks are remembered.
const EARLY_AT_ONCE: usize = 1_000;
/// How often a full tenant's refused publishes may look for space.
const SWEEP_AT_MOST: Duration = Duration::from_millis(50);

/// An admitted block's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) table: TableIndex,
    pub(crate) sequence: u64,
    pub(crate) id: BlockId,
    pub(crate) rows: u32,
}

/// What becomes of a block that is offered.
#[derive(Debug)]
pub(crate) enum Admission {
    /// To be written, then confirmed or voided.
    New(Ticket),
    /// Its id is known. While it is not `stored`, the first of the name is still being written.
    Known { known: Known, stored: bool },
    /// Not taken.
    Refused(Kind),
}

impl<B: Clone> Core<B> {
    pub(crate) fn admit(&mut self, block: &Block, now: Tick) -> Admission {
        self.recent.expire(now);
        if let Some(known) = self.recent.get(block.id) {
            return Admission::Known { known, stored: known.sequence <= self.confirmed };
        }
        let table = self.table(&block.tenant, &block.table);
        if block.rows > 0
            && let Some(refused) = self.over_budget(table, block.charge() as u64, now)
        {
            return Admission::Refused(refused);
        }
        let ticket = Ticket { table, sequence: self.draw_sequence(), id: block.id, rows: block.rows };
        self.recent.insert(block.id, Known { sequence: ticket.sequence, rows: block.rows }, now);
        if block.rows > 0 {
            self.push(
                table,
                Entry {
                    sequence: ticket.sequence,
                    received: block.received,
                    stored: now,
                    bytes: u32::try_from(block.body.len()).unwrap_or(u32::MAX),
                    attempts: 0,
                    rows: u16::try_from(block.rows).unwrap_or(u16::MAX),
                    state: State::Pending,
                    body: None,
                },
            );
        }
        Admission::New(ticket)
    }

    /// Whether a ticket's or duplicate's place was confirmed.
    pub(crate) fn is_confirmed(&self, sequence: u64) -> bool {
        sequence <= self.confirmed
    }

    /// The block is stored at `body`. Gives the shard that has something to deliver now.
    pub(crate) fn confirm(&mut self, ticket: Ticket, body: B) -> Option<u32> {
        self.confirmed = self.confirmed.max(ticket.sequence);
        if ticket.rows == 0 {
            self.freed.push(body);
            return None;
        }
        let table = &mut self.tables[ticket.table.0 as usize];
        let index = table.find(ticket.sequence)?;
        table.entries[index].state = State::Fresh;
        table.entries[index].body = Some(body);
        let unit = &mut self.units[table.unit as usize];
        unit.unsettled += 1;
        if !table.queued {
            table.queued = true;
            unit.ring.push_back(ticket.table);
        }
        Some(table.unit)
    }

    /// The block was not stored: its id is free again, its place stays empty.
    pub(crate) fn void(&mut self, ticket: Ticket) {
        self.confirmed = self.confirmed.max(ticket.sequence);
        self.recent.remove(ticket.id);
        let table = &mut self.tables[ticket.table.0 as usize];
        let Some(index) = table.find(ticket.sequence) else { return };
        let entry = &table.entries[index];
        let (charge, rows) = (entry.charge(), u64::from(entry.rows));
        self.blocks -= 1;
        table.unsettled_blocks -= 1;
        table.unsettled_bytes -= charge;
        table.bury(index, State::Void);
        table.tidy();
        let tenant = &mut self.tenants[table.tenant.0 as usize];
        tenant.bytes -= charge;
        tenant.unsettled_blocks -= 1;
        tenant.unsettled_rows -= rows;
    }

    pub(super) fn push(&mut self, at: TableIndex, entry: Entry<B>) {
        let table = &mut self.tables[at.0 as usize];
        let tenant = &mut self.tenants[table.tenant.0 as usize];
        let charge = entry.charge();
        self.blocks += 1;
        tenant.bytes += charge;
        tenant.unsettled_blocks += 1;
        tenant.unsettled_rows += u64::from(entry.rows);
        table.unsettled_blocks += 1;
        table.unsettled_bytes += charge;
        table.entries.push_back(entry);
    }

    fn over_budget(&mut self, at: TableIndex, charge: u64, now: Tick) -> Option<Kind> {
        if self.blocks >= self.settings.max_blocks {
            // history is kept while there is room for it; a reader is told of the gap
            self.forget_history(EARLY_AT_ONCE);
            if self.blocks >= self.settings.max_blocks {
                return Some(Kind::Full { what: "all tenants".to_owned(), retry_after: RETRY_AFTER });
            }
        }
        let table = &self.tables[at.0 as usize];
        let tenant_at = table.tenant;
        let allowance = self.tenants[tenant_at.0 as usize].allowance;
        if table.unsettled_bytes + charge > allowance.table_bytes {
            let (tenant, table) = self.names(at);
            return Some(Kind::Full { what: format!("table {tenant}.{table}"), retry_after: RETRY_AFTER });
        }
        if self.has_room(tenant_at, charge) {
            return None;
        }
        // the sweep goes by in its own time; a publisher that is refused for want of it looks for itself
        let tenant = &mut self.tenants[tenant_at.0 as usize];
        if tenant.swept.is_none_or(|swept| swept.after(SWEEP_AT_MOST) <= now) {
            tenant.swept = Some(now);
            self.sweep_tenant(tenant_at, now);
            if self.has_room(tenant_at, charge) {
                return None;
            }
        }
        let tenant = &self.tenants[tenant_at.0 as usize].name;
        Some(Kind::Full { what: format!("tenant {tenant}"), retry_after: RETRY_AFTER })
    }

    fn has_room(&self, at: TenantIndex, charge: u64) -> bool {
        let tenant = &self.tenants[at.0 as usize];
        tenant.bytes + charge <= tenant.allowance.bytes
    }
}
