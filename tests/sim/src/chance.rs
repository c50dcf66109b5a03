//! What a seed decides.

use std::time::Duration;
use wh_types::{Entropy, SeededEntropy};

/// A source of choices. Everything that is drawn follows from the seed and from the order of draws.
#[derive(Debug)]
pub(crate) struct Chance(SeededEntropy);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededEntropy::new(seed))
    }

    /// Below `bound`, which is not 0.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    /// Between the two, in milliseconds.
    pub(crate) fn millis(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least + 1))
    }

    /// True this often in a hundred.
    pub(crate) fn percent(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of some.
    pub(crate) fn pick<T: Copy>(&self, of: &[T]) -> Option<T> {
        let count = u64::try_from(of.len()).ok().filter(|count| *count > 0)?;
        of.get(usize::try_from(self.below(count)).unwrap_or(0)).copied()
    }
}
