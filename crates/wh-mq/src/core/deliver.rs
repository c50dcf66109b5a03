//! Which block a feed gets next, and what settling does to it.

use super::{
    Core,
    held::Holding,
    table::{DueAgain, State, TableIndex, TableState},
    tick::Tick,
    unit::{Owner, UnitState},
};
use crate::{AckToken, Kind, Verdict};
use std::cmp::Reverse;
use wh_types::Cursor;

/// What a feed gets when it asks.
#[derive(Debug)]
pub(crate) enum Next<B> {
    /// A block.
    Deliver(Out<B>),
    /// Nothing now; look again at that time, if nothing wakes it before.
    Wait(Option<Tick>),
    /// Nothing any more: halted, or no longer the owner.
    Ended,
}

/// A block on its way to a feed.
#[derive(Debug)]
pub(crate) struct Out<B> {
    pub(crate) token: AckToken,
    pub(crate) cursor: Cursor,
    pub(crate) attempt: u32,
    pub(crate) body: B,
}

impl AckToken {
    /// The upper half of a delivery's number is the table, the lower the attempt: a token finds its block by itself.
    pub(crate) fn table(self) -> TableIndex {
        TableIndex(u32::try_from(self.delivery >> 32).unwrap_or(u32::MAX))
    }
}

impl<B: Clone> Core<B> {
    pub(crate) fn deliver(&mut self, shard: u32, term: u64, now: Tick) -> Next<B> {
        let unit = &mut self.units[shard as usize];
        if unit.term != term || unit.owner != Owner::Feed {
            return Next::Ended;
        }
        expire(unit, &mut self.tables, now);
        while let Some(at) = unit.ring.front().copied() {
            let table = &mut self.tables[at.0 as usize];
            let Some((index, again)) = candidate(table) else {
                table.queued = false;
                unit.ring.pop_front();
                continue;
            };
            let entry = &mut table.entries[index];
            let (rows, bytes) = (entry.rows as usize, entry.bytes as usize);
            let over = unit.held.rows() + rows > unit.budget.rows || unit.held.bytes() + bytes > unit.budget.bytes;
            if over && !unit.held.is_empty() {
                return Next::Wait(unit.next_timer());
            }
            let Some(body) = entry.body.clone() else {
                // an entry that may be delivered has a body; without one it can only be dropped
                entry.state = State::Void;
                continue;
            };
            let slot = unit.held.push(Holding {
                table: at,
                sequence: entry.sequence,
                rows: u32::from(entry.rows),
                bytes: entry.bytes,
                deadline: now.after(self.settings.ack_wait),
            });
            entry.state = State::Held(slot);
            entry.attempts = entry.attempts.saturating_add(1);
            let token =
                AckToken { delivery: u64::from(at.0) << 32 | u64::from(entry.attempts), sequence: entry.sequence };
            let (sequence, attempt) = (entry.sequence, entry.attempts);
            if again {
                table.due.pop_front();
            } else {
                table.fresh = table.position(index) + 1;
            }
            unit.ring.rotate_left(1);
            return Next::Deliver(Out { token, cursor: Cursor { epoch: self.epoch, sequence }, attempt, body });
        }
        Next::Wait(unit.next_timer())
    }

    /// Settles one delivery. Says whether the unit has something to deliver, or room, that it had not before.
    pub(crate) fn settle(
        &mut self,
        shard: u32,
        term: u64,
        token: AckToken,
        verdict: Verdict,
        now: Tick,
    ) -> Result<bool, Kind> {
        let unit = &mut self.units[shard as usize];
        if !unit.may_settle(term) {
            return Err(Kind::Fenced);
        }
        let at = token.table();
        let Some(table) = self.tables.get_mut(at.0 as usize).filter(|table| table.unit == shard) else {
            return Ok(false);
        };
        let Some(index) = table.find(token.sequence) else { return Ok(false) };
        let entry = &mut table.entries[index];
        let latest = token.delivery & u64::from(u32::MAX) == u64::from(entry.attempts);
        match (verdict, entry.state) {
            (_, State::Pending | State::Fresh | State::Settled | State::Gone | State::Void) => Ok(false),
            // an insert that took longer than ack_wait is done all the same, whichever delivery it came by
            (Verdict::Ack, State::Held(_) | State::Delayed | State::Due) => {
                if let State::Held(slot) = entry.state {
                    unit.held.remove(slot);
                }
                self.finish(at, index, now);
                Ok(true)
            }
            (Verdict::Nak { delay }, State::Held(slot)) if latest => {
                unit.held.remove(slot);
                if delay.is_zero() {
                    entry.state = State::Due;
                    table.due.push_back(DueAgain { sequence: token.sequence, behind: self.confirmed });
                    enqueue(unit, table, at);
                } else {
                    entry.state = State::Delayed;
                    unit.delayed.push(Reverse((now.after(delay), token.sequence, at)));
                }
                Ok(true)
            }
            (Verdict::InProgress, State::Held(slot)) if latest => {
                unit.held.renew(slot, now.after(self.settings.ack_wait));
                Ok(false)
            }
            // kept alive too late, but before anybody else got it
            (Verdict::InProgress, State::Due) if latest => {
                let deadline = now.after(self.settings.ack_wait);
                let slot = unit.held.push(Holding {
                    table: at,
                    sequence: entry.sequence,
                    rows: u32::from(entry.rows),
                    bytes: entry.bytes,
                    deadline,
                });
                entry.state = State::Held(slot);
                Ok(false)
            }
            (Verdict::Nak { .. } | Verdict::InProgress, State::Held(_) | State::Delayed | State::Due) => Ok(false),
        }
    }

    /// Marks an entry settled; drops it at once when no history keeps it.
    fn finish(&mut self, at: TableIndex, index: usize, now: Tick) {
        let table = &mut self.tables[at.0 as usize];
        if table.settled.is_empty() {
            self.settled.push(at);
        }
        table.note_settled(index);
        self.mark_settled(at, index);
        let table = &mut self.tables[at.0 as usize];
        let history = self.tenants[table.tenant.0 as usize].allowance.history;
        // the sweep does not come back to what it went past
        if table.entries[index].stored.after(history) <= now || table.position(index) < table.swept {
            self.drop_settled(at, index);
            self.tables[at.0 as usize].tidy();
        } else if !table.sweeping {
            table.sweeping = true;
            self.sweeping.push_back(at);
        }
    }

    pub(super) fn mark_settled(&mut self, at: TableIndex, index: usize) {
        self.settled_ever += 1;
        let table = &mut self.tables[at.0 as usize];
        let entry = &mut table.entries[index];
        entry.state = State::Settled;
        let (charge, rows) = (entry.charge(), u64::from(entry.rows));
        table.unsettled_blocks -= 1;
        table.unsettled_bytes -= charge;
        table.retained += 1;
        let tenant = &mut self.tenants[table.tenant.0 as usize];
        tenant.unsettled_blocks -= 1;
        tenant.unsettled_rows -= rows;
        self.units[table.unit as usize].unsettled -= 1;
    }

    /// Takes a block out for good that cannot be read. A later reader of the history is told of a gap.
    pub(crate) fn quarantine(&mut self, at: TableIndex, sequence: u64, now: Tick) -> bool {
        let table = &mut self.tables[at.0 as usize];
        let Some(index) = table.find(sequence) else { return false };
        match table.entries[index].state {
            State::Pending | State::Gone | State::Void => return false,
            State::Settled => {}
            State::Held(slot) => {
                self.units[table.unit as usize].held.remove(slot);
                self.finish(at, index, now);
            }
            State::Fresh | State::Delayed | State::Due => self.finish(at, index, now),
        }
        let table = &mut self.tables[at.0 as usize];
        let Some(index) = table.find(sequence) else { return true };
        if table.entries[index].state == State::Settled {
            self.drop_settled(at, index);
            self.tables[at.0 as usize].tidy();
        }
        true
    }
}

/// The entry a table would deliver next, and whether it is a redelivery.
fn candidate<B>(table: &mut TableState<B>) -> Option<(usize, bool)> {
    let mut fresh = table.index(table.fresh);
    let fresh = loop {
        match table.entries.get(fresh).map(|entry| entry.state) {
            Some(State::Fresh) => break Some(fresh),
            Some(State::Pending) | None => break None,
            Some(State::Held(_) | State::Delayed | State::Due | State::Settled | State::Gone | State::Void) => {
                fresh += 1;
                table.fresh = table.position(fresh);
            }
        }
    };
    while let Some(due) = table.due.front().copied() {
        if fresh.is_some_and(|fresh| table.entries[fresh].sequence <= due.behind) {
            break;
        }
        match table.find(due.sequence) {
            Some(index) if table.entries[index].state == State::Due => return Some((index, true)),
            _ => drop(table.due.pop_front()),
        }
    }
    fresh.map(|index| (index, false))
}

/// Makes due what was held or delayed until now.
fn expire<B>(unit: &mut UnitState, tables: &mut [TableState<B>], now: Tick) {
    while let Some(holding) = unit.held.pop_due(now) {
        make_due(unit, tables, holding.table, holding.sequence);
    }
    while let Some(Reverse((at, sequence, table))) = unit.delayed.peek().copied() {
        if at > now {
            break;
        }
        unit.delayed.pop();
        make_due(unit, tables, table, sequence);
    }
}

fn make_due<B>(unit: &mut UnitState, tables: &mut [TableState<B>], at: TableIndex, sequence: u64) {
    let table = &mut tables[at.0 as usize];
    let Some(index) = table.find(sequence) else { return };
    let entry = &mut table.entries[index];
    if matches!(entry.state, State::Held(_) | State::Delayed) {
        entry.state = State::Due;
        // what waited for its time goes before what came meanwhile
        table.due.push_back(DueAgain { sequence, behind: 0 });
        enqueue(unit, table, at);
    }
}

fn enqueue<B>(unit: &mut UnitState, table: &mut TableState<B>, at: TableIndex) {
    if !table.queued {
        table.queued = true;
        unit.ring.push_back(at);
    }
}
