//! Recent blocks of one table, for streams that read at their own pace. Pure.

use super::{block::Shown, position::Position};
use std::{collections::VecDeque, sync::Arc};
use wh_mq::Gap;
use wh_types::Cursor;

/// Blocks and gaps in order, numbered; the oldest go when there are too many bytes.
#[derive(Debug, Default)]
pub(super) struct Ring {
    entries: VecDeque<Entry>,
    /// The number of the first one kept.
    first: u64,
    bytes: usize,
    /// Everything of the table after this place was put in, and is still there.
    floor: Option<Cursor>,
    /// Everything up to here was put in, or was there before.
    through: Option<Cursor>,
    /// From this number on places are in order, and of one epoch: that of `floor`.
    era: u64,
}

#[derive(Debug)]
struct Entry {
    item: Item,
    /// Where it stands: a block at its sequence, a gap behind the last sequence that is missing. Grows.
    key: Key,
    weight: usize,
}

/// Era, sequence, and whether it is a gap.
type Key = (u64, u64, bool);

/// What streams are told.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Block(Arc<Shown>),
    Gap(Gap),
}

/// What a reader gets next.
#[derive(Debug)]
pub(super) enum Read {
    /// This; the reader stands behind it then.
    Item(Item),
    /// So many were lost to this reader.
    Behind(u64),
    /// It has everything.
    Nothing,
}

/// What each entry costs besides its bytes.
pub(super) const OVERHEAD: usize = 256;

impl Ring {
    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Behind the newest.
    pub(super) fn head(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The number of the oldest.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// How many a reader at `at` has not read, lost ones included.
    pub(super) fn waiting(&self, at: u64) -> u64 {
        self.head().saturating_sub(at)
    }

    /// Everything up to here was put in, or was there before the ring.
    pub(super) fn through(&self) -> Option<Cursor> {
        self.through
    }

    /// What comes was stored after this place. Counts once, before anything came.
    pub(super) fn begin(&mut self, seam: Option<Cursor>) {
        if self.through.is_none() {
            (self.floor, self.through) = (seam, seam);
        }
    }

    /// Adds one and lets the oldest go beyond `most` bytes; the newest is always kept, however large. Gives the head.
    pub(super) fn push(&mut self, item: Item, most: usize) -> u64 {
        let (key, weight) = match &item {
            Item::Block(shown) => {
                let at = shown.cursor;
                // another epoch, or a history that lost its end and counts anew
                if self.through.is_none_or(|last| last.epoch != at.epoch || last.sequence >= at.sequence) {
                    self.era = self.head();
                    self.floor = Some(Cursor { sequence: at.sequence.saturating_sub(1), ..at });
                }
                self.through = Some(at);
                ((self.era, at.sequence, false), shown.charge())
            }
            Item::Gap(gap) => {
                let last = self.through.map_or(0, |last| last.sequence);
                let before = gap.before.filter(|before| Some(before.epoch) == self.through.map(|last| last.epoch));
                let missing = before.map_or(last, |before| before.sequence.saturating_sub(1).max(last));
                ((self.era, missing, true), OVERHEAD)
            }
        };
        self.bytes += weight;
        self.entries.push_back(Entry { item, key, weight });
        self.shrink(most);
        self.head()
    }

    fn shrink(&mut self, most: usize) {
        while self.bytes > most
            && self.entries.len() > 1
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.weight;
            if self.first >= self.era
                && let Some(floor) = &mut self.floor
            {
                // who stands right before a gap that is not told here any more is to hear of it elsewhere
                let (_, sequence, gap) = oldest.key;
                floor.sequence = sequence + u64::from(gap && sequence <= floor.sequence);
            }
            self.first += 1;
        }
    }

    /// One that is kept weighs so much more now.
    pub(super) fn grow(&mut self, number: u64, bytes: usize, most: usize) {
        let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            entry.weight += bytes;
            self.bytes += bytes;
            self.shrink(most);
        }
    }

    /// From which number on there is everything after a place. `None`: the ring does not reach there.
    ///
    /// A place that is beyond what came here must be of this table's history for certain (`certain`): then what comes up
    /// to it is still to be passed over.
    pub(super) fn locate(&self, place: Position, certain: bool) -> Option<u64> {
        let (floor, through, from) = (self.floor?, self.through?, place.before());
        let known = certain || (through.epoch == place.block.epoch && place.block.sequence <= through.sequence);
        if floor.epoch != from.epoch || from.sequence < floor.sequence || !known {
            return None;
        }
        let key = (self.era, from.sequence, false);
        Some(self.first + self.entries.partition_point(|entry| entry.key <= key) as u64)
    }

    /// What a reader at `at` gets, and where it stands then.
    pub(super) fn read(&self, at: &mut u64) -> Read {
        let Some(index) = at.checked_sub(self.first) else { return Read::Behind(self.first - *at) };
        match usize::try_from(index).ok().and_then(|index| self.entries.get(index)) {
            Some(entry) => {
                *at += 1;
                Read::Item(entry.item.clone())
            }
            None => Read::Nothing,
        }
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
