//! Where in the history a reader goes on: the entries of its subject are bisected by what their headers say
//! (decision D21). Pure but for asking for entries.
//!
//! The history's own sequences say nothing about a cursor. An entry of the cursor's stream and epoch is before the
//! cursor when its sequence there is not greater; one of another stream is where the next entry of the cursor's stream
//! is, and after the cursor where there is none.

use crate::Result;
use std::future::Future;

/// Entries of another stream that are looked through one by one before steps are doubled.
const NEAR: usize = 16;

/// An entry of the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its sequence in the history.
    pub(super) at: u64,
    /// Its sequence in the cursor's stream and epoch, where it is of these.
    pub(super) own: Option<u64>,
}

/// The subject's entries, in the order of the history.
pub(super) trait Entries: Sync {
    /// The first entry at or after a sequence of the history.
    fn next(&self, from: u64) -> impl Future<Output = Result<Option<Mark>>> + Send;
}

/// Where to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The first sequence of the history that may be after the cursor.
    pub(super) at: u64,
    /// An entry at or before the cursor is kept, so that all after it are.
    pub(super) kept: bool,
}

/// Finds the first entry after `cursor` among those in `first..=last.at`.
///
/// Where entries of another stream lie in long runs they are not looked through one by one: an entry may then be taken
/// to be after the cursor although one of the cursor's stream before it is hidden further on. Nothing after the
/// cursor is ever passed over.
pub(super) async fn bisect<E: Entries>(entries: &E, first: u64, last: Mark, cursor: u64) -> Result<Start> {
    if last.own.is_some_and(|own| own <= cursor) {
        return Ok(Start { at: last.at + 1, kept: true });
    }
    let mut judge = Judge { entries, cursor, blank: None };
    let (mut low, mut high, mut kept) = (first, last.at + 1, false);
    while low < high {
        let middle = low + (high - low) / 2;
        match entries.next(middle).await?.filter(|mark| mark.at < high) {
            None => high = middle,
            Some(mark) => match judge.judge(mark, last.at + 1).await? {
                Side::Before(at) => (low, kept) = (at + 1, true),
                Side::After => high = middle,
            },
        }
    }
    Ok(Start { at: high, kept })
}

enum Side {
    /// It and everything up to here is at or before the cursor.
    Before(u64),
    After,
}

struct Judge<'a, E> {
    entries: &'a E,
    cursor: u64,
    /// From the first to before the second there is nothing of the cursor's stream, and after that nothing before it.
    blank: Option<(u64, u64)>,
}

impl<E: Entries> Judge<'_, E> {
    async fn judge(&mut self, mark: Mark, end: u64) -> Result<Side> {
        if let Some(own) = mark.own {
            return Ok(self.side(mark.at, own));
        }
        let (from, to) = self.blank.unwrap_or((end, end));
        if mark.at >= from {
            return Ok(Side::After);
        }
        let side = self.search(mark.at, from).await?;
        if matches!(side, Side::After) {
            self.blank = Some((mark.at, to));
        }
        Ok(side)
    }

    fn side(&self, at: u64, own: u64) -> Side {
        if own <= self.cursor { Side::Before(at) } else { Side::After }
    }

    /// Whether an entry of the cursor's stream between here and `end` is at or before the cursor.
    async fn search(&self, mut at: u64, mut end: u64) -> Result<Side> {
        for _ in 0..NEAR {
            match self.look(at + 1, end).await? {
                Look::Nothing => return Ok(Side::After),
                Look::Own(side, _) => return Ok(side),
                Look::Other(other) => at = other,
            }
        }
        let mut step = 1;
        loop {
            match self.look(at.saturating_add(step), end).await? {
                Look::Nothing => break,
                Look::Own(Side::After, found) => {
                    end = found;
                    break;
                }
                Look::Own(before @ Side::Before(_), _) => return Ok(before),
                Look::Other(other) => (at, step) = (other, step.saturating_mul(2)),
            }
        }
        while at + 1 < end {
            let middle = at + 1 + (end - at - 1) / 2;
            match self.look(middle, end).await? {
                Look::Nothing | Look::Own(Side::After, _) => end = middle,
                Look::Own(before @ Side::Before(_), _) => return Ok(before),
                Look::Other(other) => at = other,
            }
        }
        Ok(Side::After)
    }

    async fn look(&self, from: u64, end: u64) -> Result<Look> {
        if from >= end {
            return Ok(Look::Nothing);
        }
        Ok(match self.entries.next(from).await?.filter(|mark| mark.at < end) {
            None => Look::Nothing,
            Some(Mark { at, own: Some(own) }) => Look::Own(self.side(at, own), at),
            Some(Mark { at, own: None }) => Look::Other(at),
        })
    }
}

enum Look {
    Nothing,
    Own(Side, u64),
    Other(u64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug, Default)]
    struct Kept {
        marks: Vec<Mark>,
        asked: AtomicUsize,
    }

    impl Kept {
        fn new(marks: impl IntoIterator<Item = (u64, Option<u64>)>) -> Self {
            let marks = marks.into_iter().map(|(at, own)| Mark { at, own }).collect();
            Self { marks, asked: AtomicUsize::new(0) }
        }

        fn start(&self, cursor: u64) -> Start {
            let (first, last) = (self.marks[0].at, self.marks[self.marks.len() - 1]);
            // it asks and never waits
            let found = Box::pin(bisect(self, first, last, cursor));
            futures::FutureExt::now_or_never(found).unwrap().unwrap()
        }

        /// The rule, word by word.
        fn expected(&self, cursor: u64) -> (usize, bool) {
            let after = |n: usize| self.marks[n..].iter().find_map(|mark| mark.own).is_none_or(|own| own > cursor);
            let first = (0..self.marks.len()).find(|n| after(*n)).unwrap_or(self.marks.len());
            (first, self.marks.iter().any(|mark| mark.own.is_some_and(|own| own <= cursor)))
        }

        /// The index of the first entry that is shown.
        fn index(&self, start: Start) -> usize {
            self.marks.partition_point(|mark| mark.at < start.at)
        }
    }

    impl Entries for Kept {
        async fn next(&self, from: u64) -> Result<Option<Mark>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Ok(self.marks.get(self.marks.partition_point(|mark| mark.at < from)).copied())
        }
    }

    #[test]
    fn the_first_entry_after_the_cursor_is_found() {
        let kept = Kept::new([(5, Some(10)), (6, Some(12)), (90, Some(13)), (1000, Some(40))]);
        for cursor in [0, 9, 10, 11, 12, 13, 39] {
            let start = kept.start(cursor);
            assert_eq!((kept.index(start), start.kept), kept.expected(cursor), "{cursor}");
        }
        assert_eq!(kept.start(12), Start { at: 7, kept: true }, "right after the last before it");
        assert_eq!(kept.start(40), Start { at: 1001, kept: true });
        assert_eq!(kept.start(99), Start { at: 1001, kept: true });
    }

    #[test]
    fn entries_of_another_stream_are_where_the_next_own_one_is() {
        let kept = Kept::new([(1, None), (2, Some(3)), (3, None), (4, None), (5, Some(7)), (6, None)]);
        assert_eq!(kept.start(2), Start { at: 1, kept: false });
        assert_eq!(kept.start(3), Start { at: 3, kept: true }, "those before 7 are after 3");
        assert_eq!(kept.start(7), Start { at: 6, kept: true }, "none follows: after");
        let foreign = Kept::new((1..50).map(|at| (at, None)));
        assert_eq!(foreign.start(3), Start { at: 1, kept: false });
    }

    #[test]
    fn a_table_that_moved_long_ago_costs_few_requests() {
        let moved = (1..=40_000).map(|at| (at, None)).chain((40_001..=80_000).map(|at| (at, Some(at - 40_000))));
        let kept = Kept::new(moved);
        for cursor in [1, 17, 20_000, 39_999] {
            assert_eq!(kept.start(cursor), Start { at: 40_001 + cursor, kept: true });
        }
        assert_eq!(kept.start(0), Start { at: 1, kept: false });
        let back = (1..=40_000).map(|at| (at, Some(at))).chain((40_001..=80_000).map(|at| (at, None)));
        let kept = Kept::new(back);
        for cursor in [1, 20_000, 39_999, 40_000, 50_000] {
            assert_eq!(kept.start(cursor), Start { at: cursor.min(40_000) + 1, kept: true });
        }
        let asked = kept.asked.load(Ordering::Relaxed);
        assert!(asked < 1_000, "{asked} requests");
    }

    fn entries(run: std::ops::Range<usize>) -> impl Strategy<Value = Kept> {
        prop::collection::vec((any::<bool>(), run, 1_u64..50, 1_u64..3), 1..12).prop_map(|runs| {
            let (mut at, mut own, mut marks) = (0, 0, Vec::new());
            for (is_own, length, far, apart) in runs {
                for _ in 0..length {
                    at += far;
                    own += if is_own { apart } else { 0 };
                    marks.push((at, is_own.then_some(own)));
                }
            }
            Kept::new(marks)
        })
    }

    proptest! {
        #[test]
        fn it_is_the_rule_where_runs_are_short(kept in entries(1..8), cursor in 0_u64..100) {
            // two runs of the same kind may follow each other
            let longest = kept.marks.split(|mark| mark.own.is_some()).map(<[_]>::len).max();
            prop_assume!(longest.is_none_or(|longest| longest <= NEAR));
            let start = kept.start(cursor);
            prop_assert_eq!((kept.index(start), start.kept), kept.expected(cursor));
        }

        #[test]
        fn nothing_after_the_cursor_is_passed_over(kept in entries(1..80), cursor in 0_u64..300) {
            let start = kept.start(cursor);
            let (first, kept_one) = kept.expected(cursor);
            prop_assert!(kept.index(start) <= first);
            prop_assert!(kept_one || !start.kept);
        }
    }
}
