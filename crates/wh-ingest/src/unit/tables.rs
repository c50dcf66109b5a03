//! A unit's tables: what comes goes to its table, tables act when they want to and may, what they did is settled.

use super::{Slot, UnitLoop};
use crate::{
    Sink,
    gate::Ask,
    line::Work,
    marking::Marking,
    metrics::{self, Raised},
    table::{Due, Load, TableRows},
    work::{self, End, Ended, Key, insert, park},
};
use std::{sync::Arc, time::Duration};
use tracing::{debug, error, warn};
use wh_mq::{AckToken, Delivery, Verdict};
use wh_types::{Class, Cursor, MAX_BLOCK_ROWS, Mono, Table, Tenant};

/// Parked rows of one table are logged this often.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// What was begun for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Nothing,
    Parking,
    Insert,
}

/// Rows of a tenant that is not served are looked at again so soon.
const UNSERVED: Duration = Duration::from_secs(1);

/// Parking that failed is tried again so soon.
const PARK_AGAIN: Duration = Duration::from_secs(1);

/// What was not settled is settled again so soon.
const SETTLE_AGAIN: Duration = Duration::from_millis(500);

impl UnitLoop {
    pub(super) fn accept(&mut self, delivery: Delivery) {
        let load = Load { rows: delivery.block.rows as usize, bytes: delivery.block.body.len(), blocks: 1 };
        let Cursor { epoch, sequence } = delivery.cursor;
        self.away.remove(&sequence);
        let key = self.key(&delivery.block.tenant, &delivery.block.table);
        let now = self.now();
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        slot.marking.accepted(epoch, sequence);
        if slot.rows.accept(delivery, now) {
            self.held.add(load);
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

    fn at_its_share(&self) -> bool {
        self.held.rows + MAX_BLOCK_ROWS as usize > self.budget.rows || self.held.bytes * 10 > self.budget.bytes * 9
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
            failing_until: None,
            missing: None,
            marking: Marking::default(),
            _active: Raised::new(metrics::ACTIVE),
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
        while self.next_step(key, flush || self.flushing) {}
    }

    /// Begins one piece of a table's work. Gives whether to look for another.
    fn next_step(&mut self, key: Key, flush: bool) -> bool {
        let now = self.now();
        self.set_timer(key, None);
        let (shared, may_begin) = (self.shared.clone(), self.may_begin(now));
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return false };
        slot.gated = false;
        match slot.rows.due(now, flush, &shared.options) {
            Due::Idle => return false,
            Due::At(at) => {
                self.set_timer(key, Some(at));
                return false;
            }
            Due::Now if !may_begin => return false,
            Due::Now => {}
        }
        if !slot.rows.inserts_next() {
            return self.start(key, None, now) != Begun::Nothing;
        }
        let Some(sink) = shared.parts.sinks.sink(&slot.rows.tenant) else {
            if !self.flushing {
                self.set_timer(key, Some(now + UNSERVED));
            }
            return false;
        };
        match shared.gates.ask(sink.pool(), &slot.rows.table, now) {
            Ask::Go => {
                let table = slot.rows.table.clone();
                let begun = self.start(key, Some(sink.clone()), now);
                if begun != Begun::Insert {
                    shared.gates.not_tried(sink.pool(), &table);
                }
                begun != Begun::Nothing
            }
            Ask::Wait { .. } if self.flushing && !slot.rows.in_doubt() => false,
            Ask::Wait { until, pool } => {
                slot.gated = true;
                self.set_timer(key, Some(until));
                self.waits(key, pool.then(|| sink.pool()), until);
                false
            }
        }
    }

    /// Begins what is next, an insert only where there is a sink to ask.
    fn start(&mut self, key: Key, sink: Option<Arc<dyn Sink>>, now: Mono) -> Begun {
        let shared = self.shared.clone();
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return Begun::Nothing };
        let Some((id, work)) = slot.rows.start(now, &shared.options) else { return Begun::Nothing };
        slot.fresh = false;
        let part = slot.rows.line.get(id).is_some_and(|item| item.part);
        let task = match (&work, sink) {
            (Work::Insert(chunk), Some(sink)) => slot.rows.frames(chunk).map(|(encoding, frames)| {
                let load = work::Load { sink, encoding, frames, part };
                let first = self.teller.before_insert(&mut slot.marking, &slot.rows, self.term.clone(), now);
                insert(&shared, &slot.rows, (key, id), chunk, load, first)
            }),
            (Work::Insert(_), None) => {
                slot.rows.not_now(id);
                return Begun::Nothing;
            }
            (Work::Park(..) | Work::Hold(..), _) => {
                let (wall, hold) = (shared.parts.clock.wall(), shared.options.missing_table_hold);
                slot.rows.letters(&work, wall, hold).map(|letters| park(&shared, (key, id), letters))
            }
        };
        match task {
            Ok(task) => {
                self.running.push(task);
                if matches!(work, Work::Insert(_)) { Begun::Insert } else { Begun::Parking }
            }
            Err((sequence, reason)) => {
                error!(tenant = %slot.rows.tenant, table = %slot.rows.table, sequence, reason, "block {sequence} is unreadable");
                slot.rows.unreadable(id, sequence, &reason);
                // what takes its place is begun without asking again
                self.start(key, None, now)
            }
        }
    }

    pub(super) fn finished(&mut self, ended: Ended) {
        let (now, shared) = (self.now(), self.shared.clone());
        let Ended { key, id, rows, sink, end } = ended;
        let pool = sink.as_ref().map_or("", |sink| sink.pool());
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        let (tenant, table) = (slot.rows.tenant.clone(), slot.rows.table.clone());
        match end {
            End::Stored(took) => {
                metrics::inserted(&table, rows, took);
                metrics::progress(self.unit, rows);
                self.done(key, |table| table.stored(id, now, &shared.options));
                self.recovers(key, pool, true);
            }
            End::Parked(first) => {
                slot.untold += rows;
                if slot.told.is_none_or(|told| now.saturating_duration_since(told) >= TOLD_EVERY) {
                    let rows = std::mem::take(&mut slot.untold);
                    slot.told = Some(now);
                    let fate = if shared.options.dead_letters { "parked" } else { "dropped" };
                    warn!(%tenant, %table, rows, "{rows} rows of {table} were refused and are {fate}, of late {first}");
                }
                if let Some(item) = slot.rows.line.get(id) {
                    slot.marking.parked(&item.work, now);
                }
                self.done(key, |table| table.done(id));
            }
            End::Failed(error, took) => {
                metrics::insert(error.failure.name(), took);
                if slot.rows.failed(id, &error, now, &shared.options) {
                    self.backs_off(key, pool, rows, &error);
                    if self.flushing && !self.in_doubt(key) {
                        self.tell(key);
                        return;
                    }
                } else {
                    // It answered, with a refusal or that it is too much at once: the pool works.
                    debug!(%tenant, %table, rows, %error, "insert into {table} refused, isolating");
                    self.recovers(key, pool, false);
                }
            }
            End::NotBegun => {
                slot.rows.not_now(id);
                shared.gates.not_tried(pool, &table);
                return;
            }
            End::NotParked(error) => {
                slot.rows.not_now(id);
                warn!(%tenant, %table, rows, %error, "parking rows of {table} failed, retrying");
                self.set_timer(key, Some(now + PARK_AGAIN));
                return;
            }
        }
        self.consider(key, false);
        self.bound_failing(key);
        self.tell(key);
    }

    fn in_doubt(&self, key: Key) -> bool {
        self.tables.get(key).and_then(Option::as_ref).is_some_and(|slot| slot.rows.in_doubt())
    }

    /// Work of a table is done: what it holds no longer is settled.
    fn done(&mut self, key: Key, done: impl FnOnce(&mut TableRows) -> Vec<AckToken>) {
        let Some(slot) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        let mut settled = slot.rows.held();
        let tokens = done(&mut slot.rows);
        settled.sub(slot.rows.held());
        self.held.sub(settled);
        slot.marking.done(tokens.iter().map(|token| token.sequence));
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
                let (mut again, mut refused) = (Vec::new(), 0_usize);
                let mut first = None;
                for (token, outcome) in left.iter().zip(settle.settle(&left, verdict).await) {
                    match outcome.map_err(|error| (error.class(), error)) {
                        Ok(()) | Err((Class::Stopping, _)) => {}
                        Err((class, _)) if class.retryable() && verdict != Verdict::InProgress => again.push(*token),
                        // The block comes again, and its token makes a repeat harmless where the table keeps one.
                        Err((_, error)) => {
                            refused += 1;
                            first.get_or_insert(error);
                        }
                    }
                }
                if let Some(error) = first {
                    warn!(%unit, %error, blocks = refused, "settling {refused} blocks on unit {unit} failed");
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
            if self.tables[key].as_ref().is_some_and(|slot| slot.rows.is_empty() && slot.marking.is_idle()) {
                self.set_timer(key, None);
                self.set_failing(key, None);
                if let Some(slot) = self.tables[key].take() {
                    self.by_name.remove(&(slot.rows.tenant, slot.rows.table));
                    self.free.push(key);
                }
            }
        }
    }
}
