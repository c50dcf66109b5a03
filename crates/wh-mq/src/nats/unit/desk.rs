//! What one term took and has not settled: the queue before the handler, what the handler holds, what waits to come
//! again. Pure: no time of its own, no client, no lock.
//!
//! Blocks are known by their sequence in the stream, over redeliveries and resets. A copy of one that is here lends its
//! new reply and nothing else; a copy of one that is settled is acked again; a copy of one that waits for its time is
//! sent back until then.

mod hand;
mod settle;
mod settled;

use super::sizes::Sizes;
use crate::Budget;
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};
use wh_nats::ByOrdinal;
use wh_types::{Block, BlockId, Mono};

pub(super) use hand::Handed;
pub(super) use settle::Outcome;
pub(super) use settled::Settled;

/// Deliveries of blocks that came back are counted for so many blocks after their term.
pub(super) const ATTEMPTS_KEPT: usize = 65_536;

#[derive(Debug)]
enum State {
    /// Taken, before the handler. The time it came or was last kept alive.
    Queued(Block, Mono),
    /// With the handler, until that time.
    Held(Mono),
    /// The handler neither settled it nor kept it alive in time: it comes again.
    Lapsed,
    /// Given back by the handler; the server brings it again at that time.
    Delayed(Mono),
    /// Unreadable, on its way to the dead letters. When it was last kept alive.
    Parking(Mono),
}

#[derive(Debug)]
struct Entry<R> {
    state: State,
    /// Which block it is, where it can be read.
    id: Option<BlockId>,
    reply: R,
    /// The resets before its reply came.
    era: u64,
    rows: u32,
    bytes: u32,
    attempt: u32,
    /// The number of its last delivery.
    delivery: u64,
}

/// What to do with a block that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It waits for the handler now.
    Queued,
    /// A copy of one that is here.
    Copy,
    /// A copy of one that is settled: ack it.
    Settled,
    /// A copy of one that waits for its time: send it back for so long.
    TooEarly(Duration),
    /// Another block under the sequence of one that is here or settled: the stream was made anew.
    Other,
}

/// One term's blocks. `R` is where a delivery is settled.
#[derive(Debug)]
pub(super) struct Desk<R> {
    budget: Budget,
    /// After how long without a word of the handler a block comes again. Shorter than the server's, so that a copy
    /// that comes because of it finds the block lapsed.
    ack_wait: Duration,
    entries: ByOrdinal<Entry<R>>,
    /// Sequences and deliveries, in the order they are to be handed on. Stale where the block is no longer queued.
    queue: VecDeque<(u64, u64)>,
    /// When blocks lapse. Stale where the block was settled or kept alive meanwhile.
    lapses: VecDeque<(Mono, u64)>,
    held: Sum,
    queued: Sum,
    settled: Settled<R>,
    attempts: HashMap<u64, u32>,
    sizes: Sizes,
    deliveries: u64,
    /// Resets so far: a reply of before one settles nothing until its block has come again.
    era: u64,
}

/// Blocks, their rows and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) blocks: usize,
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

impl Sum {
    fn add(&mut self, rows: u32, bytes: u32) {
        self.blocks += 1;
        self.rows += rows as usize;
        self.bytes += bytes as usize;
    }

    fn sub(&mut self, rows: u32, bytes: u32) {
        self.blocks -= 1;
        self.rows -= rows as usize;
        self.bytes -= bytes as usize;
    }
}

impl<R: Clone> Desk<R> {
    /// An empty desk. `attempts`: what earlier terms delivered and did not settle; `first`: above every delivery's
    /// number of theirs.
    pub(super) fn new(budget: Budget, ack_wait: Duration, attempts: HashMap<u64, u32>, first: u64) -> Self {
        let lead = (ack_wait / 8).min(Duration::from_millis(500));
        Self {
            budget,
            ack_wait: ack_wait - lead,
            entries: ByOrdinal::default(),
            queue: VecDeque::new(),
            lapses: VecDeque::new(),
            held: Sum::default(),
            queued: Sum::default(),
            settled: Settled::default(),
            attempts,
            sizes: Sizes::default(),
            deliveries: first,
            era: 0,
        }
    }

    /// What earlier terms settled and nobody confirmed: it is acked and not handed on when it comes.
    pub(super) fn inherit(&mut self, settled: Settled<R>) {
        self.settled = settled;
    }

    /// Takes what is settled here while the server may not know it. For the end of a term.
    pub(super) fn leave(&mut self) -> Settled<R> {
        std::mem::take(&mut self.settled)
    }

    pub(super) fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// What the handler holds.
    pub(super) fn held(&self) -> Sum {
        self.held
    }

    /// Bytes in memory for this term.
    pub(super) fn bytes(&self) -> usize {
        self.held.bytes + self.queued.bytes
    }

    /// Whether nothing waits for the handler.
    pub(super) fn queue_is_empty(&self) -> bool {
        self.queued.blocks == 0
    }

    /// Blocks the server may still count as unsettled: those here, and those whose ack nobody confirmed.
    pub(super) fn unsettled(&self) -> u64 {
        (self.entries.len() + self.settled.unheard()) as u64
    }

    /// Blocks that are settled here while the server may not know it, and may be told.
    pub(super) fn unconfirmed(&self) -> Vec<(u64, R)> {
        self.settled.of(self.era)
    }

    /// The durable is reset: until a block has come again, nothing can be settled by the reply it had.
    pub(super) fn reset(&mut self) {
        self.era += 1;
    }

    /// The server has nothing unsettled, and nothing to deliver: it knows of every ack.
    pub(super) fn all_confirmed(&mut self) {
        self.settled.clear();
    }

    /// How many blocks the next pull may ask for, with so many bytes free in the process.
    pub(super) fn room(&self, process_bytes: usize) -> usize {
        let free = Budget {
            rows: self.budget.rows.saturating_sub(self.held.rows + self.queued.rows),
            bytes: self.budget.bytes.saturating_sub(self.bytes()),
        };
        let fit = self.sizes.fit(free, process_bytes);
        if self.held.blocks + self.queued.blocks == 0 { fit.max(1) } else { fit }
    }

    /// Bytes that so many blocks may come to.
    pub(super) fn guess(&self, blocks: usize) -> usize {
        self.sizes.bytes(blocks)
    }

    /// A block came, new or again. `None` for the block: its envelope cannot be read.
    pub(super) fn arrive(&mut self, now: Mono, sequence: u64, reply: R, block: Option<Block>) -> Arrival {
        let id = block.as_ref().map(|block| block.id);
        if let Some(same) = self.settled.renew(sequence, id, (&reply, self.era)) {
            return if same { Arrival::Settled } else { Arrival::Other };
        }
        if let Some(entry) = self.entries.get_mut(&sequence) {
            if entry.id != id {
                return Arrival::Other;
            }
            (entry.reply, entry.era) = (reply, self.era);
            match entry.state {
                State::Queued(..) | State::Held(_) | State::Parking(_) => return Arrival::Copy,
                State::Delayed(until) if until > now => {
                    return Arrival::TooEarly(until.saturating_duration_since(now));
                }
                State::Delayed(_) | State::Lapsed => {}
            }
            let Some(block) = block else {
                entry.state = State::Parking(now);
                return Arrival::Queued;
            };
            self.deliveries += 1;
            entry.delivery = self.deliveries;
            entry.attempt = entry.attempt.saturating_add(1);
            entry.state = State::Queued(block, now);
            self.queued.add(entry.rows, entry.bytes);
            self.queue.push_back((sequence, self.deliveries));
            return Arrival::Queued;
        }
        self.deliveries += 1;
        let (rows, bytes) = block.as_ref().map_or((0, 0), |block| (block.rows, size(block)));
        let state = match block {
            Some(block) => {
                // a probe says nothing about blocks
                if rows > 0 {
                    self.sizes.note(rows as usize, bytes as usize);
                }
                self.queued.add(rows, bytes);
                self.queue.push_back((sequence, self.deliveries));
                State::Queued(block, now)
            }
            None => State::Parking(now),
        };
        // mostly there are none
        let before = if self.attempts.is_empty() { None } else { self.attempts.remove(&sequence) };
        let attempt = before.unwrap_or(0).saturating_add(1);
        let entry = Entry { state, id, reply, era: self.era, rows, bytes, attempt, delivery: self.deliveries };
        self.entries.insert(sequence, entry);
        Arrival::Queued
    }

    /// Where a block that is here, or was, is settled now.
    pub(super) fn reply(&self, sequence: u64) -> Option<R> {
        let here = self.entries.get(&sequence).map(|entry| &entry.reply);
        here.or_else(|| self.settled.reply(sequence)).cloned()
    }

    /// Ends the term: how often each block was delivered that is not settled, and the last delivery's number.
    pub(super) fn end(&mut self) -> (HashMap<u64, u32>, u64) {
        let mut attempts = std::mem::take(&mut self.attempts);
        for (sequence, entry) in self.entries.drain() {
            let handed = entry.attempt - u32::from(matches!(entry.state, State::Queued(..) | State::Parking(_)));
            if handed > 0 && attempts.len() < ATTEMPTS_KEPT {
                attempts.insert(sequence, handed);
            }
        }
        self.queue.clear();
        self.lapses.clear();
        (self.held, self.queued) = (Sum::default(), Sum::default());
        (attempts, self.deliveries)
    }
}

fn size(block: &Block) -> u32 {
    u32::try_from(block.body.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
