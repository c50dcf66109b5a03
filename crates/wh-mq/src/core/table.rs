//! One table's blocks in the order they were stored: what is known of each, never the bodies' bytes.
//!
//! Positions count every block ever pushed, so they stay right while the front is dropped; only compaction moves them.

use super::tick::Tick;
use std::collections::{BTreeMap, VecDeque};
use wh_types::{Table, Timestamp};

/// Names a table inside one state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableIndex(pub(crate) u32);

/// Names a tenant inside one state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TenantIndex(pub(crate) u32);

/// What a block's envelope is charged with, beside its body ([`wh_types::Block::charge`]).
pub(super) const ENVELOPE: u64 = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// On its way to the store.
    Pending,
    /// Stored, and not delivered since the unit was last taken.
    Fresh,
    /// Delivered; the slot in its unit's list.
    Held(u32),
    /// Nak'd with a delay that still runs.
    Delayed,
    /// To be delivered again.
    Due,
    /// Settled, kept for the history.
    Settled,
    /// Settled and dropped; its place is kept until compaction.
    Gone,
    /// Never stored: the write failed.
    Void,
}

#[derive(Debug)]
pub(super) struct Entry<B> {
    pub(super) sequence: u64,
    pub(super) received: Timestamp,
    pub(super) stored: Tick,
    pub(super) bytes: u32,
    pub(super) attempts: u32,
    pub(super) rows: u16,
    pub(super) state: State,
    pub(super) body: Option<B>,
}

impl<B> Entry<B> {
    pub(super) fn charge(&self) -> u64 {
        u64::from(self.bytes) + ENVELOPE
    }

    pub(super) fn unsettled(&self) -> bool {
        !matches!(self.state, State::Settled | State::Gone | State::Void)
    }
}

/// A block to be delivered again.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueAgain {
    pub(super) sequence: u64,
    /// Fresh blocks up to this sequence go first: they were due before.
    pub(super) behind: u64,
}

#[derive(Debug)]
pub(super) struct TableState<B> {
    pub(super) tenant: TenantIndex,
    pub(super) name: Table,
    pub(super) unit: u32,
    pub(super) entries: VecDeque<Entry<B>>,
    /// Position of the front entry.
    pub(super) base: u64,
    /// Position of the first entry that may be fresh.
    pub(super) fresh: u64,
    /// Position up to which the sweep has been.
    pub(super) swept: u64,
    /// Where the last look-up ended: the next is usually beside it.
    hint: u64,
    /// Position up to which everything is settled, as far as it was looked.
    open: u64,
    pub(super) due: VecDeque<DueAgain>,
    /// The highest sequence dropped from the front, and the latest time of receipt among the dropped.
    pub(super) floor: u64,
    pub(super) floor_received: Option<Timestamp>,
    /// What compaction took out of the middle: the entry after it → the highest sequence taken before it.
    pub(super) gaps: BTreeMap<u64, u64>,
    pub(super) unsettled_blocks: u64,
    pub(super) unsettled_bytes: u64,
    pub(super) retained: u64,
    tombstones: usize,
    /// Whether it stands in its unit's ring.
    pub(super) queued: bool,
    /// Whether it stands in the sweep's ring.
    pub(super) sweeping: bool,
    /// Settled since these were last taken: ranges of sequences, whole within this table.
    pub(super) settled: Vec<(u64, u64)>,
}

impl<B> TableState<B> {
    pub(super) fn new(tenant: TenantIndex, name: Table, unit: u32) -> Self {
        Self {
            tenant,
            name,
            unit,
            entries: VecDeque::new(),
            base: 0,
            fresh: 0,
            swept: 0,
            hint: 0,
            open: 0,
            due: VecDeque::new(),
            floor: 0,
            floor_received: None,
            gaps: BTreeMap::new(),
            unsettled_blocks: 0,
            unsettled_bytes: 0,
            retained: 0,
            tombstones: 0,
            queued: false,
            sweeping: false,
            settled: Vec::new(),
        }
    }

    pub(super) fn index(&self, position: u64) -> usize {
        usize::try_from(position.saturating_sub(self.base)).unwrap_or(usize::MAX)
    }

    pub(super) fn position(&self, index: usize) -> u64 {
        self.base + index as u64
    }

    /// The index of the first entry after a sequence.
    pub(super) fn first_after(&self, sequence: u64) -> usize {
        self.entries.partition_point(|entry| entry.sequence <= sequence)
    }

    /// The index of a sequence.
    pub(super) fn find(&mut self, sequence: u64) -> Option<usize> {
        let near = self.index(self.hint);
        for index in [near.saturating_add(1), near] {
            if self.entries.get(index).is_some_and(|entry| entry.sequence == sequence) {
                self.hint = self.position(index);
                return Some(index);
            }
        }
        let index = self.entries.partition_point(|entry| entry.sequence < sequence);
        let found = self.entries.get(index).is_some_and(|entry| entry.sequence == sequence);
        found.then(|| {
            self.hint = self.position(index);
            index
        })
    }

    /// The first block that is not settled, if there is one.
    pub(super) fn first_unsettled(&mut self) -> Option<u64> {
        // what is settled stays so: nothing is looked at twice
        let from = self.index(self.open.max(self.base));
        let found = (from..self.entries.len()).find(|index| self.entries[*index].unsettled());
        self.open = self.position(found.unwrap_or(self.entries.len()));
        found.map(|index| self.entries[index].sequence)
    }

    /// Makes every unsettled block fresh again.
    pub(super) fn rewind(&mut self) {
        self.due.clear();
        self.fresh = self.base;
        for entry in &mut self.entries {
            if matches!(entry.state, State::Held(_) | State::Delayed | State::Due) {
                entry.state = State::Fresh;
            }
        }
    }

    /// Notes that the entry was settled, extending the last range where nothing unsettled lies between.
    pub(super) fn note_settled(&mut self, index: usize) {
        let sequence = self.entries[index].sequence;
        let before = index.checked_sub(1).map_or(self.floor, |before| self.entries[before].sequence);
        match self.settled.last_mut() {
            Some((_, last)) if before == *last => *last = sequence,
            _ => self.settled.push((sequence, sequence)),
        }
    }

    /// Drops an entry, keeping its place. Gives the body back.
    pub(super) fn bury(&mut self, index: usize, state: State) -> Option<B> {
        let entry = &mut self.entries[index];
        entry.state = state;
        self.tombstones += 1;
        entry.body.take()
    }

    /// The last of each run of blocks that is gone between kept ones.
    pub(super) fn removed_runs(&self) -> Vec<(u64, Timestamp)> {
        let (mut runs, mut run) = (Vec::new(), None);
        for entry in &self.entries {
            if let Some(through) = self.gaps.get(&entry.sequence) {
                run = Some((*through, self.floor_received.unwrap_or_default()));
            }
            match entry.state {
                State::Gone => run = Some((entry.sequence, entry.received)),
                State::Void => {}
                State::Pending | State::Fresh | State::Held(_) | State::Delayed | State::Due | State::Settled => {
                    runs.extend(run.take());
                }
            }
        }
        runs.extend(run);
        runs
    }

    /// What lies between unsettled entries: ranges of sequences, whole within this table.
    pub(super) fn settled_ranges(&self) -> Vec<(u64, u64)> {
        let (mut ranges, mut before, mut last) = (Vec::new(), self.floor, None);
        for entry in &self.entries {
            if let Some(through) = self.gaps.get(&entry.sequence) {
                last = Some(*through);
            }
            if entry.unsettled() {
                ranges.extend(last.take().map(|last| (before + 1, last)));
                before = entry.sequence;
            } else {
                last = Some(entry.sequence);
            }
        }
        ranges.extend(last.map(|last| (before + 1, last)));
        ranges
    }

    /// Counts a tombstone that a log remembered.
    pub(super) fn restore_tombstone(&mut self) {
        self.tombstones += 1;
    }

    /// Drops tombstones from the front, and from the middle once they are the greater part.
    pub(super) fn tidy(&mut self) {
        while let Some(front) = self.entries.front() {
            match front.state {
                State::Gone => {
                    self.floor = self.floor.max(front.sequence);
                    self.floor_received = self.floor_received.max(Some(front.received));
                }
                State::Void => {}
                State::Pending | State::Fresh | State::Held(_) | State::Delayed | State::Due | State::Settled => break,
            }
            self.entries.pop_front();
            self.tombstones -= 1;
            self.base += 1;
        }
        if let Some(front) = self.entries.front() {
            while self.gaps.first_key_value().is_some_and(|(before, _)| *before <= front.sequence) {
                if let Some((_, through)) = self.gaps.pop_first() {
                    self.floor = self.floor.max(through);
                }
            }
        }
        self.fresh = self.fresh.max(self.base);
        self.swept = self.swept.max(self.base);
        if self.tombstones > 64 && self.tombstones > self.entries.len() / 2 {
            self.compact();
        }
    }

    /// Rebuilds the entries without tombstones. The last entry stays, so that a gap always has an entry after it.
    fn compact(&mut self) {
        let (fresh, swept) = (self.index(self.fresh), self.index(self.swept));
        let (mut kept_fresh, mut kept_swept) = (0, 0);
        let last = self.entries.len() - 1;
        let mut kept = VecDeque::with_capacity(self.entries.len() - self.tombstones + 1);
        let mut missing = None;
        for (index, entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            let tombstone = matches!(entry.state, State::Gone | State::Void);
            if tombstone && index != last {
                if let Some(through) = self.gaps.remove(&entry.sequence) {
                    missing = missing.max(Some(through));
                }
                if entry.state == State::Gone {
                    missing = Some(entry.sequence);
                    self.floor_received = self.floor_received.max(Some(entry.received));
                }
                continue;
            }
            if let Some(through) = missing.take() {
                let gap = self.gaps.entry(entry.sequence).or_insert(through);
                *gap = through.max(*gap);
            }
            kept_fresh += u64::from(index < fresh);
            kept_swept += u64::from(index < swept);
            kept.push_back(entry);
        }
        self.tombstones = kept.iter().filter(|entry| matches!(entry.state, State::Gone | State::Void)).count();
        self.entries = kept;
        self.fresh = self.base + kept_fresh;
        self.swept = self.base + kept_swept;
        self.hint = self.base;
        self.open = self.base;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stays_small() {
        // sixteen bytes of place, as the embedded queue keeps
        assert!(size_of::<Entry<(u64, u64)>>() <= 72, "{}", size_of::<Entry<(u64, u64)>>());
    }
}
