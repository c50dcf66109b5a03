//! How often something that happens again and again is told of: at once, and then no more than once in a while, with a
//! count. Tells nobody itself.

use crate::Mono;
use std::time::Duration;

/// Counts what happens, and says when it is time to tell of it.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    every: Duration,
    told: Option<Mono>,
    untold: u64,
}

impl Throttle {
    /// The first is told at once; after that there is at least `every` between two.
    #[must_use]
    pub const fn new(every: Duration) -> Self {
        Self { every, told: None, untold: 0 }
    }

    /// Notes that it happened `count` times now; gives how many are to be told of, those before that were not included.
    /// `None`: it is not time yet.
    pub fn note(&mut self, count: u64, now: Mono) -> Option<u64> {
        self.untold = self.untold.saturating_add(count);
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < self.every) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, SystemClock};

    #[test]
    fn the_first_is_told_at_once_and_the_rest_together() {
        let (begin, second) = (SystemClock.now(), Duration::from_secs(1));
        let mut throttle = Throttle::new(60 * second);
        assert_eq!(throttle.note(2, begin), Some(2));
        for passed in 1..60 {
            assert_eq!(throttle.note(1, begin + passed * second), None);
        }
        assert_eq!(throttle.note(1, begin + 60 * second), Some(60));
        assert_eq!(throttle.note(1, begin + 61 * second), None);
        assert_eq!(throttle.note(1, begin + 500 * second), Some(2));
    }
}
