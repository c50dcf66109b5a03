//! A unit whose inserts fail: when it takes no more, how much a failing table may hold beside others, when it may stand
//! still. Whether an insert may be tried is `gate.rs`'s.

use super::{Slot, UnitLoop, ending::Phase};
use crate::{
    Failure, SinkError,
    metrics::{self, Raised},
    table::Load,
    work::Key,
};
use std::{sync::Arc, time::Duration};
use tracing::{debug, info, warn};
use wh_mq::{Budget, Verdict};
use wh_types::Mono;

/// What is given back is not asked for sooner.
const LEAST_DELAY: Duration = Duration::from_millis(100);

/// A unit that takes nothing, and since when.
#[derive(Debug)]
pub(super) struct Paused {
    pool: String,
    since: Mono,
    _raised: Raised,
}

impl UnitLoop {
    /// An insert is not tried now. The unit stops taking where all its tables fail with this pool; it stays ours, and
    /// what was taken stays held (decision D8). Else the table is bounded, so that the others flow.
    pub(super) fn waits(&mut self, key: Key, pool: Option<&str>, until: Mono) {
        if pool.is_none_or(|pool| !self.pause(pool)) {
            self.set_failing(key, Some(until));
            self.bound_failing(key);
        }
    }

    /// Takes no more while the pool fails, if nothing else could come. Gives whether that is so.
    fn pause(&mut self, pool: &str) -> bool {
        if self.paused.as_ref().is_some_and(|paused| paused.pool == pool) || self.phase != Phase::Working {
            return true;
        }
        if self.paused.is_some() || !self.is_of(pool) {
            return false;
        }
        debug!(unit = %self.unit, pool, "unit {} takes nothing while {pool} fails", self.unit);
        self.paused = Some(Paused { pool: pool.to_owned(), since: self.now(), _raised: Raised::new(metrics::PAUSED) });
        // a feed that holds something takes no more then; one that holds nothing may get one block, which is the probe
        self.feed.set_budget(Budget { rows: 0, bytes: 0 });
        true
    }

    /// Whether every table that could come to this unit is of the pool.
    fn is_of(&self, pool: &str) -> bool {
        let parts = &self.shared.parts;
        let Some(others) = parts.sinks.beside(pool) else { return false };
        others.iter().all(|(tenant, sink)| {
            sink.tables()
                .is_some_and(|tables| tables.iter().all(|table| parts.broker.unit_of(tenant, table) != self.unit))
        })
    }

    /// Takes blocks again once the pool it waited for works.
    pub(super) fn resume(&mut self) {
        let Some(paused) = &self.paused else { return };
        if self.phase == Phase::Working && self.shared.gates.is_shut(&paused.pool) {
            return;
        }
        let paused_ms = self.now().saturating_duration_since(paused.since).as_millis();
        debug!(unit = %self.unit, pool = paused.pool, paused_ms, "unit {} takes blocks again", self.unit);
        self.paused = None;
        self.feed.set_budget(self.budget);
    }

    pub(super) fn set_failing(&mut self, key: Key, until: Option<Mono>) {
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        match (slot.failing_until.is_some(), until.is_some()) {
            (false, true) => self.failing += 1,
            (true, false) => self.failing = self.failing.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
        slot.failing_until = until;
    }

    /// A failing table beside others may hold a quarter of the unit's share, and all failing ones together a half; what
    /// is beyond goes back until its back-off is over, so that the others' blocks can come (decision D8). Its own order
    /// is then not promised.
    pub(super) fn bound_failing(&mut self, key: Key) {
        let (now, parts) = (self.now(), (2 * self.failing).max(4));
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        let Some(until) = slot.failing_until else { return };
        let bound = Load {
            rows: self.budget.rows / parts,
            bytes: self.budget.bytes / parts,
            blocks: self.max_unsettled.unwrap_or(usize::MAX) / parts,
        };
        let before = slot.rows.held();
        let tokens = slot.rows.give_back(bound);
        let mut given = before;
        given.sub(slot.rows.held());
        self.held.sub(given);
        slot.marking.gave_back(tokens.iter().map(|token| token.sequence));
        if self.max_unsettled.is_some() {
            self.away.extend(tokens.iter().map(|token| token.sequence));
        }
        let delay = until.saturating_duration_since(now).max(LEAST_DELAY);
        self.settle_later(tokens, Verdict::Nak { delay });
    }

    /// Says when four fifths of what the queue allows unsettled are so: at all of it the unit gets nothing more, whatever
    /// its budget. What was given back until later counts.
    pub(super) fn tell_stall(&mut self) {
        let unsettled = self.held.blocks + self.away.len();
        let near = self.max_unsettled.is_some_and(|most| is_near(unsettled, most));
        if near && self.near_stall.is_none() {
            warn!(unit = %self.unit, unsettled, most = self.max_unsettled, "unit {} may stand still: {unsettled} blocks \
                are unsettled", self.unit);
            self.near_stall = Some(Raised::new(metrics::NEAR_STALL));
        } else if !near && self.near_stall.is_some() {
            self.near_stall = None;
        }
    }

    /// An insert failed and is to be tried again.
    pub(super) fn backs_off(&mut self, key: Key, pool: &str, rows: u64, error: &SinkError) {
        let (now, shared) = (self.now(), Arc::clone(&self.shared));
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        let (tenant, table) = (slot.rows.tenant.clone(), slot.rows.table.clone());
        metrics::retried(&table, rows, error.failure.name());
        // one row that is too much for memory is this table's trouble, as far as we know: the others may do well
        let alone = error.table_scoped || error.failure == Failure::NoTable || error.splittable;
        let delay = |n| shared.options.backoff.delay(n, &*shared.parts.entropy);
        let (shut, opened) = shared.gates.failed(pool, &table, alone, now, delay);
        if let Some(away) = opened.pool {
            info!(pool, away_ms = away.as_millis(), "{pool} takes inserts again");
        }
        let missing = slot.rows.missing_for(now);
        if missing.is_some() && slot.missing.is_none() {
            slot.missing = Some(Raised::new(metrics::MISSING));
        }
        // the first failure, and then about every half minute once the delays have grown
        if shut.failures == 1 || shut.failures >= 5 {
            let (failures, since_ms) = (shut.failures, shut.away.as_millis());
            if let Some(missing) = missing {
                let parked_in_ms = shared.options.missing_table_hold.saturating_sub(missing).as_millis();
                warn!(%tenant, %table, rows, failures, since_ms, parked_in_ms, %error,
                    "{table} does not exist, its rows are held");
            } else {
                warn!(%tenant, %table, rows, failures, since_ms, %error, "insert into {table} failed, retrying");
            }
        }
        self.waits(key, (!alone).then_some(pool), shut.until);
    }

    /// The sink answered: all who waited for that go on.
    pub(super) fn recovers(&mut self, key: Key, pool: &str, stored: bool) {
        let (now, shared) = (self.now(), Arc::clone(&self.shared));
        let Some(Slot { rows, missing, .. }) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        let (tenant, table) = (&rows.tenant, &rows.table);
        let opened = shared.gates.answered(pool, table, stored, now);
        if let Some(away) = opened.pool {
            info!(pool, away_ms = away.as_millis(), "{pool} takes inserts again");
        }
        if let Some(away) = opened.table {
            info!(%tenant, %table, away_ms = away.as_millis(), "inserts into {table} work again");
        }
        if rows.missing_for(now).is_none() {
            *missing = None;
        }
        if stored {
            self.set_failing(key, None);
        }
    }
}

fn is_near(unsettled: usize, most: usize) -> bool {
    unsettled.saturating_mul(5) >= most.saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_near_its_stall_at_four_fifths() {
        assert!(!is_near(79_999, 100_000) && is_near(80_000, 100_000) && is_near(100_000, 100_000));
        assert!(!is_near(usize::MAX / 8, usize::MAX / 4));
    }
}
