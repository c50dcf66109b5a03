//! From where on the history can have what was missed of a partition. Pure.
//!
//! When the history's end was read, and then the partition's: what the partition stores after its end is in the history
//! after the history's end.

use std::collections::VecDeque;
use wh_types::Timestamp;

/// Anchors kept of one partition.
const KEPT: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Anchor {
    /// The partition's end.
    sequence: u64,
    /// The history's end before.
    at: u64,
    /// Which history.
    created: Timestamp,
}

/// Of one partition.
#[derive(Debug, Default)]
pub(super) struct Anchors(VecDeque<Anchor>);

impl Anchors {
    /// The history that was made then ended with `at`, and after that the partition with `sequence`. What the partition
    /// has up to `position` is no longer looked for.
    pub(super) fn add(&mut self, created: Timestamp, at: u64, sequence: u64, position: u64) {
        while self.0.get(1).is_some_and(|second| second.sequence <= position) {
            self.0.pop_front();
        }
        if self.0.len() >= KEPT {
            self.0.remove(1);
        }
        self.0.push_back(Anchor { sequence, at, created });
    }

    /// The partition's sequences count anew: what is older than the last time it was asked is of before.
    pub(super) fn anew(&mut self) {
        while self.0.len() > 1 {
            self.0.pop_front();
        }
        if let Some(last) = self.0.front_mut() {
            last.sequence = 0;
        }
    }

    /// The first entry of the history that was made then that can be of this sequence.
    pub(super) fn from(&self, created: Timestamp, sequence: u64) -> u64 {
        let before = self.0.iter().rev().find(|anchor| anchor.sequence < sequence && anchor.created == created);
        before.map_or(1, |anchor| anchor.at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: Timestamp = Timestamp::from_millis(1);

    #[test]
    fn what_a_partition_stored_later_is_further_on() {
        let mut anchors = Anchors::default();
        assert_eq!(anchors.from(MADE, 5), 1, "nothing is known");
        for (at, sequence) in [(100, 10), (120, 15), (150, 20)] {
            anchors.add(MADE, at, sequence, 10);
        }
        for (sequence, from) in [(10, 1), (11, 101), (15, 101), (16, 121), (20, 121), (21, 151), (99, 151)] {
            assert_eq!(anchors.from(MADE, sequence), from, "{sequence}");
        }
        assert_eq!(anchors.from(Timestamp::from_millis(2), 99), 1, "another history has no such place");
        anchors.add(MADE, 180, 30, 17);
        assert_eq!(anchors.0.front().unwrap().sequence, 15, "the one before what is looked for stays");
        anchors.anew();
        assert_eq!(anchors.from(MADE, 1), 181);
    }

    #[test]
    fn the_oldest_stays_however_long_something_is_looked_for() {
        let mut anchors = Anchors::default();
        for n in 0..1_000 {
            anchors.add(MADE, n, n, 0);
        }
        assert_eq!((anchors.0.len(), anchors.from(MADE, 1)), (KEPT, 1));
        assert_eq!(anchors.from(MADE, 1_000), 1_000);
    }
}
