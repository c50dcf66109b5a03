//! One table's recent entries.

use crate::nats::history::message::OVERHEAD;
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::Notify;
use wh_types::{Block, Mono, Timestamp};

/// What is kept of a sequence.
#[derive(Debug)]
pub(super) enum Kept {
    /// A block; one without rows is a probe, which is only looked up.
    Block(Arc<Block>),
    /// Something that may have been of this table is lost, up to here.
    Gap,
}

impl Kept {
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Block(block) => block.body.len() + OVERHEAD,
            Self::Gap => OVERHEAD / 4,
        }
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) sequence: u64,
    pub(super) stored: Option<Timestamp>,
    pub(super) kept: Kept,
    ticket: u64,
    heard: Mono,
}

/// An entry that was dropped for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evicted {
    pub(super) sequence: u64,
    pub(super) cost: usize,
    pub(super) heard: Mono,
}

#[derive(Debug)]
pub(super) struct TableLog {
    pub(super) partition: usize,
    pub(super) readers: usize,
    pub(super) bell: Arc<Notify>,
    /// By sequence.
    entries: VecDeque<Entry>,
    lost_through: u64,
    lost_since: Mono,
}

impl TableLog {
    pub(super) fn new(partition: usize, lost_through: u64, lost_since: Mono) -> Self {
        let (bell, entries) = (Arc::default(), VecDeque::new());
        Self { partition, readers: 0, bell, entries, lost_through, lost_since }
    }

    /// Of what is up to here, not everything is kept.
    pub(super) fn lost_through(&self) -> u64 {
        self.lost_through
    }

    /// When the last of that was heard, or given up.
    pub(super) fn lost_since(&self) -> Mono {
        self.lost_since
    }

    /// Whether nobody needs it to be remembered.
    pub(super) fn is_idle(&self) -> bool {
        self.readers == 0 && self.entries.is_empty()
    }

    pub(super) fn push(&mut self, ticket: u64, sequence: u64, stored: Option<Timestamp>, kept: Kept, heard: Mono) {
        debug_assert!(self.entries.back().is_none_or(|last| last.sequence < sequence));
        self.entries.push_back(Entry { sequence, stored, kept, ticket, heard });
    }

    pub(super) fn after(&self, sequence: u64) -> impl Iterator<Item = &Entry> {
        self.entries.range(self.entries.partition_point(|entry| entry.sequence <= sequence)..)
    }

    /// Whether the entry of this ticket is still kept.
    pub(super) fn has(&self, ticket: u64) -> bool {
        self.entries.front().is_some_and(|first| first.ticket <= ticket)
    }

    /// Drops the first entry if it is the ticket's.
    pub(super) fn evict(&mut self, ticket: u64) -> Option<Evicted> {
        let first = self.entries.pop_front_if(|first| first.ticket == ticket)?;
        (self.lost_through, self.lost_since) = (first.sequence, first.heard);
        Some(Evicted { sequence: first.sequence, cost: first.kept.cost(), heard: first.heard })
    }

    /// Forgets everything; of what is up to `lost_through` nothing is known any more. Gives the bytes that are free now.
    pub(super) fn forget(&mut self, lost_through: u64, now: Mono) -> usize {
        (self.lost_through, self.lost_since) = (lost_through, now);
        self.entries.drain(..).map(|entry| entry.kept.cost()).sum()
    }
}
