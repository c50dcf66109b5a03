//! A unit's tables: what comes goes to its table, tables act when they want to and may, what they did is settled.

use super::{Slot, UnitLoop};
use crate::{
    gate::{Ask, Scope},
    metrics,
    table::{Due, TableRows, Work},
    work::{End, Key, insert, park},
};
use std::{sync::Arc, time::Duration};
use tracing::{debug, error, info, warn};
use wh_mq::{AckToken, Delivery, Verdict};
use wh_types::{Class, MAX_BLOCK_ROWS, Mono, Table, Tenant};

/// Parked rows of one table are logged this often.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// What was not settled is settled again so soon.
const SETTLE_AGAIN: Duration = Duration::from_millis(500);

impl UnitLoop {
    pub(super) fn accept(&mut self, delivery: Delivery) {
        let (rows, bytes) = (delivery.block.rows as usize, delivery.block.body.len());
        let key = self.key(&delivery.block.tenant, &delivery.block.table);
        let now = self.now();
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        if slot.rows.accept(delivery, now) {
            self.held_rows += rows;
            self.held_bytes += bytes;
        }
        let fresh = slot.fresh;
        self.consider(key, fresh);
        self.bound_failing(key);
        if self.at_its_share() {
            // Nothing more will be delivered until something is settled: do not wait for size or time.
            let keys = self.timers.iter().map(|(_, key)| *key).collect::<Vec<_>>();
            keys.into_iter().for_each(|key| self.consider(key, true));
        }
    }

    /// A table that fails while others do not may hold a quarter of the unit's share; what is beyond goes back until its
    /// back-off is over, so that the others' blocks can come (decision D8). Its own order is then not promised.
    fn bound_failing(&mut self, key: Key) {
        let now = self.now();
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        let Some(until) = slot.alone_until else { return };
        let (tokens, rows, bytes) = slot.rows.give_back(self.budget.rows / 4, self.budget.bytes / 4);
        self.held_rows = self.held_rows.saturating_sub(rows);
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
        let delay = until.saturating_duration_since(now).max(Duration::from_millis(100));
        self.settle_later(tokens, Verdict::Nak { delay });
    }

    fn at_its_share(&self) -> bool {
        self.held_rows + MAX_BLOCK_ROWS as usize > self.budget.rows || self.held_bytes * 10 > self.budget.bytes * 9
    }

    fn key(&mut self, tenant: &Tenant, table: &Table) -> Key {
        let name = (tenant.clone(), table.clone());
        if let Some(key) = self.by_name.get(&name) {
            return *key;
        }
        let now = self.now();
        let slot = Slot {
            rows: TableRows::new(name.0.clone(), name.1.clone()),
            timer: None,
            fresh: self.fresh_until.is_some_and(|until| now < until),
            gated: false,
            alone_until: None,
            told: None,
            untold: 0,
        };
        let key = if let Some(key) = self.free.pop() {
            self.tables[key] = Some(slot);
            key
        } else {
            self.tables.push(Some(slot));
            self.tables.len() - 1
        };
        self.by_name.insert(name, key);
        key
    }

    /// Lets a table act if it wants to and may; else notes when to look again.
    pub(super) fn consider(&mut self, key: Key, flush: bool) {
        let now = self.now();
        let flush = flush || self.flushing;
        self.set_timer(key, None);
        let (shared, may_begin) = (self.shared.clone(), self.may_begin(now));
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        slot.gated = false;
        match slot.rows.due(now, flush, &shared.options) {
            Due::Idle => {}
            Due::At(at) => self.set_timer(key, Some(at)),
            Due::Now if !may_begin => {}
            Due::Now => match shared.parts.sinks.sink(&slot.rows.tenant) {
                None if self.flushing => {}
                None => self.set_timer(key, Some(now + Duration::from_secs(1))),
                Some(sink) => match shared.gates.ask(sink.pool(), &slot.rows.table, now) {
                    Ask::Wait(_) if self.flushing && !slot.rows.in_doubt() => {}
                    Ask::Wait(at) => {
                        slot.gated = true;
                        self.set_timer(key, Some(at));
                    }
                    Ask::Go => self.start(key, sink, now),
                },
            },
        }
    }

    fn start(&mut self, key: Key, sink: Arc<dyn crate::Sink>, now: Mono) {
        let shared = self.shared.clone();
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        let Some(work) = slot.rows.start(now, &shared.options) else { return };
        slot.fresh = false;
        let task = match work {
            Work::Insert(chunk) => match slot.rows.frames(&chunk) {
                Ok((encoding, frames)) => insert(&shared, &slot.rows, key, &chunk, sink, encoding, frames),
                Err((sequence, reason)) => return self.unreadable(key, sequence, &reason),
            },
            Work::Park(chunk, refusal) => {
                let wall = shared.parts.clock.wall();
                match slot.rows.letters(&chunk, &refusal, wall) {
                    Ok(letters) => park(&shared, key, letters),
                    Err((sequence, reason)) => return self.unreadable(key, sequence, &reason),
                }
            }
        };
        self.running.push(task);
    }

    fn unreadable(&mut self, key: Key, sequence: u64, reason: &str) {
        if let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) {
            error!(tenant = %slot.rows.tenant, table = %slot.rows.table, sequence, reason, "block {sequence} is unreadable");
            slot.rows.unreadable(sequence, reason);
        }
        self.consider(key, true);
    }

    pub(super) fn finished(&mut self, key: Key, rows: u64, end: End) {
        let (now, shared) = (self.now(), self.shared.clone());
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        let (tenant, table) = (slot.rows.tenant.clone(), slot.rows.table.clone());
        let pool = shared.parts.sinks.sink(&tenant).map(|sink| sink.pool().to_owned()).unwrap_or_default();
        let mut again = true;
        match end {
            End::Stored(took) => {
                metrics::inserted(&table, rows, took);
                if let Some(away) = shared.gates.answered(&pool, &table, true, now) {
                    info!(%tenant, %table, away_ms = away.as_millis(), "inserts into {table} work again");
                }
                slot.alone_until = None;
                metrics::progress(self.unit, rows);
                let before = slot.rows.held();
                let tokens = slot.rows.done();
                self.settled(key, before, tokens);
            }
            End::Parked(first) => {
                slot.untold += rows;
                if slot.told.is_none_or(|told| now.saturating_duration_since(told) >= TOLD_EVERY) {
                    let rows = std::mem::take(&mut slot.untold);
                    slot.told = Some(now);
                    warn!(%tenant, %table, rows, "{rows} rows of {table} were refused and are parked, of late {first}");
                }
                let before = slot.rows.held();
                let tokens = slot.rows.done();
                self.settled(key, before, tokens);
            }
            End::Failed(error, took) => {
                metrics::insert(error.failure.name(), took);
                let wait = slot.rows.failed(&error, now, shared.options.missing_table_hold);
                if wait {
                    metrics::retried(&table, rows, error.failure.name());
                    let alone = error.table_scoped || error.failure == crate::Failure::NoTable;
                    let scope = if alone { Scope::Table(pool, table.clone()) } else { Scope::Pool(pool) };
                    let delay = |n| shared.options.backoff.delay(n, &*shared.parts.entropy);
                    let (failures, since, until) = shared.gates.failed(scope, now, delay);
                    slot.alone_until = alone.then_some(until);
                    // the first failure, and then about every half minute once the delays have grown
                    if failures == 1 || failures >= 5 {
                        warn!(%tenant, %table, rows, failures, since_ms = since.as_millis(), %error,
                            "insert into {table} failed, retrying");
                    }
                    again = !self.flushing || slot.rows.in_doubt();
                } else {
                    // It answered, with a refusal: the pool works.
                    shared.gates.answered(&pool, &table, false, now);
                    debug!(%tenant, %table, rows, %error, "insert into {table} refused, isolating");
                }
            }
            End::NotParked(error) => {
                slot.rows.not_now();
                warn!(%tenant, %table, rows, %error, "parking rows of {table} failed, retrying");
                self.set_timer(key, Some(now + Duration::from_secs(1)));
                return;
            }
        }
        if again {
            self.consider(key, false);
            self.bound_failing(key);
        }
    }

    fn settled(&mut self, key: Key, before: (usize, usize), tokens: Vec<AckToken>) {
        if let Some(slot) = self.tables.get(key).and_then(Option::as_ref) {
            let after = slot.rows.held();
            self.held_rows = self.held_rows.saturating_sub(before.0 - after.0);
            self.held_bytes = self.held_bytes.saturating_sub(before.1 - after.1);
        }
        self.settle_later(tokens, Verdict::Ack);
    }

    /// Acks do not hold up the next insert; they are awaited before the unit is released. One that did not arrive is said
    /// again: the block is stored, and would come again.
    pub(super) fn settle_later(&mut self, tokens: Vec<AckToken>, verdict: Verdict) {
        if tokens.is_empty() {
            return;
        }
        let (settle, unit, clock) = (self.settle.clone(), self.unit, self.shared.parts.clock.clone());
        // later than this it is on its way to us again
        let patience = clock.now() + self.shared.options.ack_wait / 2;
        self.acks.push(Box::pin(async move {
            let mut left = tokens;
            loop {
                let mut again = Vec::new();
                for (token, outcome) in left.iter().zip(settle.settle(&left, verdict).await) {
                    match outcome.map_err(|error| (error.class(), error)) {
                        Ok(()) | Err((Class::Stopping, _)) => {}
                        Err((class, _)) if class.retryable() && verdict != Verdict::InProgress => again.push(*token),
                        // The block comes again, and its token makes a repeat harmless where the table keeps one.
                        Err((_, error)) => warn!(%unit, %error, "settling on unit {unit} failed"),
                    }
                }
                if again.is_empty() {
                    return;
                }
                if clock.now() >= patience {
                    return warn!(%unit, blocks = again.len(), "settling on unit {unit} failed for too long");
                }
                left = again;
                tokio::time::sleep(SETTLE_AGAIN).await;
            }
        }));
    }

    pub(super) fn wake_gated(&mut self) {
        let gated = |(key, slot): (Key, &Option<Slot>)| slot.as_ref().is_some_and(|s| s.gated).then_some(key);
        let keys = self.tables.iter().enumerate().filter_map(gated).collect::<Vec<_>>();
        keys.into_iter().for_each(|key| self.consider(key, false));
    }

    pub(super) fn fire(&mut self) {
        let now = self.now();
        while let Some((at, key)) = self.timers.first().copied()
            && at <= now
        {
            self.consider(key, false);
        }
    }

    fn set_timer(&mut self, key: Key, at: Option<Mono>) {
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        if let Some(old) = slot.timer.take() {
            self.timers.remove(&(old, key));
        }
        if let Some(at) = at {
            slot.timer = Some(at);
            self.timers.insert((at, key));
        }
    }

    /// Tells the queue that what is held is still worked on, and forgets tables that hold nothing.
    pub(super) fn keep_alive(&mut self) {
        let tokens = self.tables.iter().flatten().flat_map(|slot| slot.rows.tokens()).collect::<Vec<_>>();
        self.settle_later(tokens, Verdict::InProgress);
        for key in 0..self.tables.len() {
            if self.tables[key].as_ref().is_some_and(|slot| slot.rows.is_empty() && !slot.rows.in_flight()) {
                self.set_timer(key, None);
                if let Some(slot) = self.tables[key].take() {
                    self.by_name.remove(&(slot.rows.tenant, slot.rows.table));
                    self.free.push(key);
                }
            }
        }
    }
}
