//! What was heard of one partition: which sequences came, which are missing, which come next. Pure.
//!
//! A partition's sequences are contiguous over all its tables, so who hears every one of them knows what was missed.
//! Where a missing one may be found, and when to stop looking, is for others.

use std::collections::BTreeMap;

/// Hands out what it hears in the order of sequences, and knows the holes.
#[derive(Debug)]
pub(super) struct Tracker<T> {
    /// Everything below was handed out or given up.
    next: u64,
    /// Heard beyond a hole.
    ahead: BTreeMap<u64, T>,
    /// The highest sequence that is known to be stored, heard or not.
    stored: u64,
}

/// Whether something heard was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is kept until its turn.
    New,
    /// It was heard before, or given up before it came.
    Known,
}

/// Sequences that are stored and were not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Something after it was heard: it is not only on its way.
    pub(super) followed: bool,
}

impl<T> Tracker<T> {
    /// Begins after a sequence.
    pub(super) fn after(sequence: u64) -> Self {
        Self { next: sequence.saturating_add(1), ahead: BTreeMap::new(), stored: sequence }
    }

    /// Everything up to here was handed out or given up.
    pub(super) fn position(&self) -> u64 {
        self.next - 1
    }

    /// The highest sequence that is known to be stored.
    pub(super) fn stored(&self) -> u64 {
        self.stored
    }

    /// A message came, live or found.
    pub(super) fn hear(&mut self, sequence: u64, message: T) -> Heard {
        if sequence < self.next || self.ahead.contains_key(&sequence) {
            return Heard::Known;
        }
        self.ahead.insert(sequence, message);
        self.stored = self.stored.max(sequence);
        Heard::New
    }

    /// The stream was asked, and holds this as its last.
    pub(super) fn saw_end(&mut self, last: u64) {
        self.stored = self.stored.max(last);
    }

    /// What is next in order, if it was heard.
    pub(super) fn take(&mut self) -> Option<(u64, T)> {
        let message = self.ahead.remove(&self.next)?;
        self.next += 1;
        Some((self.next - 1, message))
    }

    /// The first hole.
    pub(super) fn hole(&self) -> Option<Hole> {
        self.holes().next()
    }

    /// Every hole, lowest first.
    pub(super) fn holes(&self) -> impl Iterator<Item = Hole> {
        let bounds = self.ahead.keys().copied().map(|heard| (heard, true));
        let end = (self.stored.saturating_add(1), false);
        let mut first = self.next;
        bounds.chain([end]).filter_map(move |(bound, followed)| {
            let hole = (first < bound).then(|| Hole { first, last: bound - 1, followed });
            first = bound.saturating_add(u64::from(followed));
            hole
        })
    }

    /// Whether this sequence is in a hole.
    pub(super) fn misses(&self, sequence: u64) -> bool {
        (self.next..=self.stored).contains(&sequence) && !self.ahead.contains_key(&sequence)
    }

    /// Gives the first hole up, as far as `through`; gives what was given up.
    pub(super) fn give_up(&mut self, through: u64) -> Option<Hole> {
        let hole = self.hole().filter(|hole| hole.first <= through)?;
        let last = hole.last.min(through);
        self.next = last + 1;
        Some(Hole { last, ..hole })
    }

    /// How many wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.ahead.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn taken(tracker: &mut Tracker<u64>) -> Vec<u64> {
        std::iter::from_fn(|| tracker.take()).map(|(sequence, _)| sequence).collect()
    }

    #[test]
    fn what_comes_in_order_is_handed_out_in_order() {
        let mut tracker = Tracker::after(10);
        assert_eq!((tracker.position(), tracker.hole()), (10, None));
        for sequence in 11..14 {
            assert_eq!(tracker.hear(sequence, sequence), Heard::New);
            assert_eq!(taken(&mut tracker), [sequence]);
        }
        assert_eq!((tracker.position(), tracker.hole()), (13, None));
    }

    #[test]
    fn beyond_a_hole_it_waits_until_the_hole_is_filled() {
        let mut tracker = Tracker::after(0);
        for sequence in [3, 4, 7] {
            tracker.hear(sequence, sequence);
        }
        assert_eq!(taken(&mut tracker), [0_u64; 0]);
        let holes: Vec<_> = tracker.holes().map(|hole| (hole.first, hole.last, hole.followed)).collect();
        assert_eq!(holes, [(1, 2, true), (5, 6, true)]);
        assert!(tracker.misses(1) && !tracker.misses(3) && tracker.misses(6) && !tracker.misses(8));
        tracker.hear(2, 2);
        tracker.hear(1, 1);
        assert_eq!(taken(&mut tracker), [1, 2, 3, 4]);
    }

    #[test]
    fn what_was_heard_before_or_comes_late_is_known() {
        let mut tracker = Tracker::after(0);
        tracker.hear(1, 1);
        assert_eq!(tracker.hear(1, 1), Heard::Known, "it waits");
        taken(&mut tracker);
        assert_eq!(tracker.hear(1, 1), Heard::Known, "it was handed out");
        tracker.hear(4, 4);
        assert_eq!(tracker.give_up(u64::MAX), Some(Hole { first: 2, last: 3, followed: true }));
        assert_eq!(tracker.hear(2, 2), Heard::Known, "it was given up");
        assert_eq!(taken(&mut tracker), [4]);
    }

    #[test]
    fn the_tail_is_missed_when_the_stream_says_so() {
        let mut tracker = Tracker::<u64>::after(5);
        tracker.saw_end(5);
        assert_eq!(tracker.hole(), None);
        tracker.saw_end(8);
        assert_eq!(tracker.hole(), Some(Hole { first: 6, last: 8, followed: false }));
        tracker.saw_end(7);
        assert_eq!(tracker.stored(), 8, "an older answer takes nothing back");
        assert_eq!(tracker.give_up(7), Some(Hole { first: 6, last: 7, followed: false }));
        assert_eq!(tracker.give_up(7), None);
        assert_eq!(tracker.hole(), Some(Hole { first: 8, last: 8, followed: false }));
    }

    #[test]
    fn the_end_of_all_sequences_is_no_fault() {
        let mut tracker = Tracker::after(u64::MAX - 2);
        tracker.hear(u64::MAX - 1, 0);
        assert_eq!(taken(&mut tracker), [u64::MAX - 1]);
        assert_eq!(tracker.hole(), None);
    }

    proptest! {
        /// Whatever order messages come in, whatever is lost, found later or told by the stream: everything is handed
        /// out once, in order, or given up.
        #[test]
        fn every_sequence_is_handed_out_once_in_order_or_given_up(
            start in 0_u64..100,
            events in prop::collection::vec((0_u8..4, 1_u64..40), 0..120),
        ) {
            let mut tracker = Tracker::after(start);
            let mut accounted = start;
            let mut heard = std::collections::BTreeSet::new();
            for (kind, offset) in events {
                let sequence = start + offset;
                match kind {
                    0 | 1 => {
                        let new = !heard.contains(&sequence) && sequence > accounted;
                        prop_assert_eq!(tracker.hear(sequence, sequence) == Heard::New, new);
                        heard.insert(sequence);
                    }
                    2 => tracker.saw_end(sequence),
                    _ => if let Some(hole) = tracker.give_up(sequence) {
                        prop_assert_eq!(hole.first, accounted + 1);
                        prop_assert!((hole.first..=hole.last).all(|lost| !heard.contains(&lost)));
                        accounted = hole.last;
                    }
                }
                while let Some((next, message)) = tracker.take() {
                    prop_assert_eq!((next, message), (accounted + 1, accounted + 1));
                    accounted = next;
                }
                prop_assert_eq!(tracker.position(), accounted);
                let holes: Vec<Hole> = tracker.holes().collect();
                for missing in accounted + 1..=tracker.stored() {
                    let inside = holes.iter().any(|hole| (hole.first..=hole.last).contains(&missing));
                    prop_assert_eq!(tracker.misses(missing), inside);
                    prop_assert_eq!(inside, !heard.contains(&missing));
                }
            }
        }
    }
}
