//! How large a table's next batch may be and how long it is waited for. Pure: it remembers what was too much.

use crate::options::Options;
use std::time::Duration;
use wh_types::Mono;

/// Waits grow up to so many times under pressure.
const LONGEST: u32 = 8;

/// What a table has shown of itself lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    /// So many rows may pass, as of then.
    learned: Option<(u64, Mono)>,
    /// Its merges do not keep up: waits are so many times longer, as of then.
    pressed: Option<(u32, Mono)>,
}

impl Size {
    /// Most rows of one insert now. It doubles for each [`Options::learned_for`] in which nothing was too large.
    pub(crate) fn most_rows(&self, now: Mono, options: &Options) -> u64 {
        let most = options.batch_max_rows.max(options.batch_rows);
        let Some((rows, at)) = self.learned else { return most };
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

    /// So many rows were too many at once: half of them may pass.
    pub(crate) fn too_large(&mut self, rows: u64, now: Mono, options: &Options) {
        let half = (rows / 2).max(1);
        self.learned = Some((half.min(self.most_rows(now, options)), now));
    }

    /// The table cannot take inserts as often as they come: fewer and larger ones.
    pub(crate) fn too_often(&mut self, now: Mono, options: &Options) {
        let times = self.pressed.map_or(1, |(times, at)| (times >> periods(at, now, options).min(31)).max(1));
        self.pressed = Some(((times * 2).min(LONGEST), now));
    }
}

fn periods(since: Mono, now: Mono, options: &Options) -> u32 {
    let passed = now.saturating_duration_since(since).as_millis();
    let period = options.learned_for.as_millis().max(1);
    u32::try_from(passed / period).unwrap_or(u32::MAX).min(40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_too_large_is_remembered_for_a_while_and_forgotten_by_doubling() {
        let (now, options) = (wh_types::Clock::now(&wh_types::SystemClock), Options::default());
        let mut size = Size::default();
        assert_eq!((size.most_rows(now, &options), size.full_rows(now, &options)), (100_000, 10_000));
        size.too_large(10_000, now, &options);
        size.too_large(5_000, now, &options);
        assert_eq!((size.most_rows(now, &options), size.full_rows(now, &options)), (2_500, 2_500));
        // a sibling of the first batch was cut before that was learned
        size.too_large(9_000, now, &options);
        assert_eq!(size.most_rows(now, &options), 2_500);
        let after = |n: u32| now + options.learned_for * n;
        assert_eq!(size.most_rows(after(1), &options), 5_000);
        assert_eq!(size.most_rows(after(2), &options), 10_000);
        assert_eq!(size.most_rows(after(1_000), &options), 100_000);
        size.too_large(1, after(1), &options);
        assert_eq!(size.most_rows(after(1), &options), 1, "never none");
    }

    #[test]
    fn waits_grow_under_pressure_up_to_a_bound_and_shrink_again() {
        let (now, options) = (wh_types::Clock::now(&wh_types::SystemClock), Options::default());
        let mut size = Size::default();
        assert_eq!(size.wait(now, &options), options.batch_wait);
        for times in [2, 4, 8, 8] {
            size.too_often(now, &options);
            assert_eq!(size.wait(now, &options), options.batch_wait * times);
        }
        assert_eq!(size.wait(now + options.learned_for, &options), options.batch_wait * 4);
        assert_eq!(size.wait(now + options.learned_for * 9, &options), options.batch_wait);
    }
}
