//! How long to wait before the next try. Pure: the caller counts the tries and brings the randomness.

use crate::Entropy;
use std::time::Duration;

/// Doubling delays with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    jitter: Jitter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Jitter {
    Half,
    Full,
}

impl Backoff {
    /// The nth delay is uniform in [d/2, d) with d = first × 2ⁿ up to `longest`: for retries of one thing, where a
    /// delay near zero would only burn an attempt.
    #[must_use]
    pub const fn half_jitter(first: Duration, longest: Duration) -> Self {
        Self { first, longest, jitter: Jitter::Half }
    }

    /// The nth delay is uniform in [0, d): for many processes that would otherwise act in step.
    #[must_use]
    pub const fn full_jitter(first: Duration, longest: Duration) -> Self {
        Self { first, longest, jitter: Jitter::Full }
    }

    /// The delay after failure number `failures`, counted from 1.
    #[must_use]
    pub fn delay(&self, failures: u32, entropy: &dyn Entropy) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let bound = self.first.saturating_mul(1 << doublings).min(self.longest);
        match self.jitter {
            Jitter::Half => bound / 2 + (bound / 2).mul_f64(entropy.unit()),
            Jitter::Full => bound.mul_f64(entropy.unit()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededEntropy;

    #[test]
    fn delays_double_up_to_the_longest() {
        let (entropy, s) = (SeededEntropy::new(3), Duration::from_secs);
        let half = Backoff::half_jitter(s(1), s(30));
        for (failures, bound) in [(1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (40, 30), (u32::MAX, 30)] {
            for _ in 0..200 {
                let delay = half.delay(failures, &entropy);
                assert!(delay >= s(bound) / 2 && delay < s(bound), "{failures}: {delay:?}");
            }
        }
        let full = Backoff::full_jitter(s(2), s(60));
        let least = (0..500).map(|_| full.delay(10, &entropy)).min().unwrap();
        assert!(least < s(5), "full jitter reaches down: {least:?}");
    }
}
