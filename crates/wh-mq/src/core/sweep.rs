//! Dropping what is settled and older than its tenant's history window, in small steps.
//!
//! An unsettled block stops nothing: the sweep walks past it, and settling it later drops it at once.

use super::{
    Core,
    table::{State, TableIndex, TenantIndex},
    tick::Tick,
};
use std::time::Duration;

impl<B: Clone> Core<B> {
    /// Visits each table with kept history at most once and drops at most `most` blocks; says whether there may be more.
    pub(crate) fn sweep(&mut self, now: Tick, most: usize) -> bool {
        let mut left = most;
        for _ in 0..self.sweeping.len() {
            if left == 0 {
                return true;
            }
            let Some(at) = self.sweeping.pop_front() else { return false };
            left -= self.sweep_table(at, now, left);
            let table = &mut self.tables[at.0 as usize];
            table.sweeping = table.retained > 0;
            if table.sweeping {
                self.sweeping.push_back(at);
            }
        }
        left == 0
    }

    /// Drops at most so many settled blocks although their time has not come, the oldest of each table first.
    pub(super) fn forget_history(&mut self, most: usize) {
        let mut left = most;
        for _ in 0..self.sweeping.len() {
            let Some(at) = self.sweeping.front().copied() else { return };
            left -= self.drop_oldest(at, None, left);
            self.sweeping.rotate_left(1);
            if left == 0 {
                return;
            }
        }
    }

    /// Drops the settled blocks whose body is picked, although their time has not come; says how many.
    pub(crate) fn forget_settled(&mut self, pick: impl Fn(&B) -> bool) -> u64 {
        let mut forgotten = 0;
        for number in 0..self.tables.len() {
            let at = TableIndex(u32::try_from(number).unwrap_or(u32::MAX));
            if self.tables[number].retained == 0 {
                continue;
            }
            for index in 0..self.tables[number].entries.len() {
                let entry = &self.tables[number].entries[index];
                if entry.state == State::Settled && entry.body.as_ref().is_some_and(&pick) {
                    self.drop_settled(at, index);
                    forgotten += 1;
                }
            }
            self.tables[number].tidy();
        }
        forgotten
    }

    /// The bodies of what is not settled, and of the dead letters.
    pub(crate) fn needed(&self) -> impl Iterator<Item = &B> {
        let entries = self.tables.iter().filter(|table| table.unsettled_blocks > 0).flat_map(|table| &table.entries);
        let blocks = entries.filter(|entry| entry.unsettled()).filter_map(|entry| entry.body.as_ref());
        blocks.chain(self.tenants.iter().flat_map(|tenant| tenant.letters.bodies()))
    }

    pub(super) fn sweep_tenant(&mut self, tenant: TenantIndex, now: Tick) {
        let tables: Vec<TableIndex> = self.tenants[tenant.0 as usize].tables.values().copied().collect();
        for at in tables {
            if self.tables[at.0 as usize].retained > 0 {
                self.sweep_table(at, now, usize::MAX);
            }
        }
    }

    fn sweep_table(&mut self, at: TableIndex, now: Tick, most: usize) -> usize {
        let history = {
            let table = &self.tables[at.0 as usize];
            self.tenants[table.tenant.0 as usize].allowance.history
        };
        self.drop_oldest(at, Some((now, history)), most)
    }

    /// Walks on from where the last walk ended; `age`: only what is that old by now.
    fn drop_oldest(&mut self, at: TableIndex, age: Option<(Tick, Duration)>, most: usize) -> usize {
        let mut dropped = 0;
        while dropped < most {
            let table = &mut self.tables[at.0 as usize];
            let index = table.index(table.swept);
            let Some(entry) = table.entries.get(index) else { break };
            let old = age.is_none_or(|(now, history)| entry.stored.after(history) <= now);
            match entry.state {
                State::Gone | State::Void => table.swept += 1,
                State::Settled if old => {
                    table.swept += 1;
                    self.drop_settled(at, index);
                    dropped += 1;
                }
                State::Fresh | State::Held(_) | State::Delayed | State::Due if old => table.swept += 1,
                State::Pending | State::Fresh | State::Held(_) | State::Delayed | State::Due | State::Settled => break,
            }
        }
        self.tables[at.0 as usize].tidy();
        dropped
    }

    /// Drops a settled entry. The caller tidies the table.
    pub(super) fn drop_settled(&mut self, at: TableIndex, index: usize) {
        let table = &mut self.tables[at.0 as usize];
        let charge = table.entries[index].charge();
        table.retained -= 1;
        let body = table.bury(index, State::Gone);
        self.freed.extend(body);
        self.blocks -= 1;
        self.tenants[table.tenant.0 as usize].bytes -= charge;
    }
}
