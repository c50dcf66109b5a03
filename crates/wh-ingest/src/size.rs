//! How large a table's next batch may be and how long it is waited for. Pure: it remembers what was too much.
//!
//! A memory limit (241) has two causes that look alike: the batch is too large, or the server has no memory for anybody.
//! Only a smaller batch that passes tells them apart. So nothing is learned from a failure, but from the success after
//! it; and where even small batches fail one after another, waiting is tried instead of halving.

use crate::options::Options;
use std::time::Duration;
use wh_types::Mono;

/// Waits grow up to so many times under pressure.
const LONGEST: u32 = 8;

/// A memory limit makes no batches smaller than that. Parts of one may be.
const FLOOR: u64 = 100;

/// That less than so many rows are too many for memory is not believed at once.
const SMALL: u64 = 64;

/// So many failures in a row are one too many, for a small batch.
const ALIKE: u32 = 3;

/// So many full batches are stored before larger ones are tried. Half as many after each time that it went well, four
/// times as many after one that did not, within the bounds.
const FIRST: u32 = 16;
const FEWEST: u32 = 2;
const MOST: u32 = 256;

/// What is known to pass.
#[derive(Clone, Copy, Debug)]
struct Learned {
    rows: u64,
    at: Mono,
    /// Full batches since then.
    stored: u32,
    /// So many of them make it grow.
    need: u32,
    /// It grew, and none of that size was stored yet.
    grown: bool,
}

/// What was too large since the last success.
#[derive(Clone, Copy, Debug)]
struct Failing {
    /// The fewest rows of it.
    rows: u64,
    times: u32,
    memory: bool,
    /// Waiting is tried: halving alone did not help.
    waits: bool,
}

/// What a table has shown of itself lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    learned: Option<Learned>,
    failing: Option<Failing>,
    /// So few rows were stored right after more were too many for memory, as of then: halving goes so far at once.
    fine: Option<(u64, Mono)>,
    /// Its merges do not keep up: waits are so many times longer, as of then.
    pressed: Option<(u32, Mono)>,
}

impl Size {
    /// Most rows of one insert now. It doubles with some full batches that are stored, and for each
    /// [`Options::learned_for`] in which nothing was too large.
    pub(crate) fn most_rows(&self, now: Mono, options: &Options) -> u64 {
        let most = cap(options);
        let Some(Learned { rows, at, .. }) = self.learned else { return most };
        rows.saturating_mul(1 << periods(at, now, options)).clamp(1, most)
    }

    /// Rows that make a batch.
    pub(crate) fn full_rows(&self, now: Mono, options: &Options) -> u64 {
        options.batch_rows.min(self.most_rows(now, options))
    }

    /// How long the oldest row may wait for others.
    pub(crate) fn wait(&self, now: Mono, options: &Options) -> Duration {
        let times = self.pressed.map_or(1, |(times, at)| times >> periods(at, now, options).min(31));
        options.batch_wait * times.max(1)
    }

    /// So many rows were too many at once, for `memory` or because they touch too many partitions: they are halved.
    /// Gives whether to wait before the halves are tried. That is so where no smaller batch can be, and where small ones
    /// failed for memory one after another: then size is hardly the trouble, and what was learned of it is forgotten.
    pub(crate) fn too_large(&mut self, rows: u64, memory: bool, now: Mono, options: &Options) -> bool {
        let small = self.fine.map_or(SMALL, |(rows, at)| (rows << periods(at, now, options)).min(SMALL));
        let failing = self.failing.get_or_insert(Failing { rows, times: 0, memory, waits: false });
        failing.rows = failing.rows.min(rows);
        failing.times = failing.times.saturating_add(1);
        failing.memory = memory;
        failing.waits |= rows <= 1 || (memory && rows < small && failing.times >= ALIKE);
        if let Some(learned) = self.learned.as_mut().filter(|learned| learned.grown) {
            (learned.grown, learned.need) = (false, (learned.need * 4).min(MOST));
        }
        if failing.waits {
            self.learned = None;
        }
        failing.waits
    }

    /// So many rows were stored at once. After some that were too large it was size that helped, and that is learned;
    /// unless it was waiting.
    pub(crate) fn stored(&mut self, rows: u64, now: Mono, options: &Options) {
        let most = self.most_rows(now, options);
        if let Some(failing) = self.failing.take() {
            if failing.waits {
                return;
            }
            let least = if failing.memory { FLOOR } else { 1 };
            let need = self.learned.map_or(FIRST, |learned| learned.need);
            let passes = (failing.rows / 2).max(least).min(most);
            self.learned = Some(Learned { rows: passes, at: now, stored: 0, need, grown: false });
            if failing.memory {
                self.fine = Some((rows.clamp(1, SMALL), now));
            }
            return;
        }
        let Some(learned) = &mut self.learned else { return };
        // batches are of whole blocks: one that is nearly full counts
        if rows.saturating_mul(2) < most {
            return;
        }
        (learned.stored, learned.grown) = (learned.stored + 1, false);
        if learned.stored >= learned.need {
            let need = (learned.need / 2).max(FEWEST);
            *learned = Learned { rows: most.saturating_mul(2), at: now, stored: 0, need, grown: true };
            if learned.rows >= cap(options) {
                self.learned = None;
            }
        }
    }

    /// The table cannot take inserts as often as they come: fewer and larger ones.
    pub(crate) fn too_often(&mut self, now: Mono, options: &Options) {
        let times = self.pressed.map_or(1, |(times, at)| (times >> periods(at, now, options).min(31)).max(1));
        self.pressed = Some(((times * 2).min(LONGEST), now));
    }
}

fn cap(options: &Options) -> u64 {
    options.batch_max_rows.max(options.batch_rows)
}

fn periods(since: Mono, now: Mono, options: &Options) -> u32 {
    let passed = now.saturating_duration_since(since).as_millis();
    let period = options.learned_for.as_millis().max(1);
    u32::try_from(passed / period).unwrap_or(u32::MAX).min(40)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> (Mono, Options, Size) {
        (wh_types::Clock::now(&wh_types::SystemClock), Options::default(), Size::default())
    }

    #[test]
    fn what_was_too_large_is_remembered_for_a_while_and_forgotten_by_doubling() {
        let (now, options, mut size) = setting();
        assert_eq!((size.most_rows(now, &options), size.full_rows(now, &options)), (100_000, 10_000));
        assert!(!size.too_large(10_000, true, now, &options));
        assert!(!size.too_large(5_000, true, now, &options));
        assert_eq!(size.most_rows(now, &options), 100_000, "no cure, nothing learned");
        size.stored(2_500, now, &options);
        assert_eq!((size.most_rows(now, &options), size.full_rows(now, &options)), (2_500, 2_500));
        // a sibling of the first batch was cut before that was learned
        size.too_large(9_000, true, now, &options);
        size.stored(4_500, now, &options);
        assert_eq!(size.most_rows(now, &options), 2_500);
        let after = |n: u32| now + options.learned_for * n;
        assert_eq!(size.most_rows(after(1), &options), 5_000);
        assert_eq!(size.most_rows(after(2), &options), 10_000);
        assert_eq!(size.most_rows(after(1_000), &options), 100_000);
    }

    #[test]
    fn memory_makes_no_batches_below_the_floor_and_partitions_do() {
        for (memory, most) in [(true, FLOOR), (false, 5)] {
            let (now, options, mut size) = setting();
            for rows in [40, 20, 10] {
                assert_eq!(size.too_large(rows, memory, now, &options), memory && rows == 10);
            }
            size.stored(5, now, &options);
            // what waiting has cured teaches nothing
            assert_eq!(size.most_rows(now, &options), if memory { 100_000 } else { most });
            size.too_large(10, memory, now, &options);
            size.stored(5, now, &options);
            assert_eq!(size.most_rows(now, &options), most);
        }
    }

    #[test]
    fn full_batches_that_pass_make_the_next_ones_larger_within_few_requests() {
        let (now, options, mut size) = setting();
        size.too_large(150, true, now, &options);
        size.stored(75, now, &options);
        let mut requests = 0;
        while size.full_rows(now, &options) < 10_000 {
            size.stored(size.most_rows(now, &options), now, &options);
            requests += 1;
        }
        assert!(requests <= 40, "{requests}");
        // small ones say nothing
        size.too_large(2_000, true, now, &options);
        size.stored(1_000, now, &options);
        (0..1_000).for_each(|_| size.stored(400, now, &options));
        assert_eq!(size.most_rows(now, &options), 1_000);
    }

    #[test]
    fn a_limit_that_stays_is_met_ever_more_seldom() {
        let (now, options, mut size) = setting();
        let mut met = 0;
        for _ in 0..2_000 {
            let mut rows = size.most_rows(now, &options);
            while rows > 1_000 {
                met += 1;
                assert!(!size.too_large(rows, true, now, &options));
                rows /= 2;
            }
            size.stored(rows, now, &options);
        }
        assert!(met < 25, "{met} batches were too large");
    }

    #[test]
    fn small_batches_that_fail_alike_wait_and_where_halving_helped_before_they_do_not() {
        let (now, options, mut size) = setting();
        size.too_large(2_000, true, now, &options);
        size.stored(1_000, now, &options);
        let pass = |size: &mut Size, from: u64, to: u64| {
            let rows = std::iter::successors(Some(from), |rows| Some(rows / 2)).take_while(|rows| *rows >= to);
            rows.map(|rows| size.too_large(rows, true, now, &options)).collect::<Vec<_>>()
        };
        assert_eq!(pass(&mut size, 500, 31), [false, false, false, true, true]);
        assert_eq!(size.most_rows(now, &options), 100_000, "forgotten");
        assert_eq!(pass(&mut size, 15, 1), [true; 4], "one halving for each wait");
        size.stored(1, now, &options);
        // rows so large that few pass: learned without a wait, and then none is needed
        assert_eq!(pass(&mut size, 16, 8), [false; 2]);
        size.stored(4, now, &options);
        assert_eq!(pass(&mut size, 64, 4), [false; 5]);
        assert_eq!(pass(&mut size, 2, 2), [true]);
    }

    #[test]
    fn waits_grow_under_pressure_up_to_a_bound_and_shrink_again() {
        let (now, options, mut size) = setting();
        assert_eq!(size.wait(now, &options), options.batch_wait);
        for times in [2, 4, 8, 8] {
            size.too_often(now, &options);
            assert_eq!(size.wait(now, &options), options.batch_wait * times);
        }
        assert_eq!(size.wait(now + options.learned_for, &options), options.batch_wait * 4);
        assert_eq!(size.wait(now + options.learned_for * 9, &options), options.batch_wait);
    }
}
