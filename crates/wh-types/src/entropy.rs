//! Randomness as an argument, so that a seed replays a run.

use parking_lot::Mutex;
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use std::fmt::Debug;

/// A source of random bits.
pub trait Entropy: Debug + Send + Sync {
    /// 64 random bits.
    fn next_u64(&self) -> u64;

    /// Uniform in `[0, 1)`.
    fn unit(&self) -> f64 {
        // the 53 bits an f64 holds exactly
        #[expect(clippy::cast_precision_loss, reason = "both numbers are at most 2^53")]
        let unit = (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        unit
    }
}

/// The operating system's randomness, through rand's per-thread generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn next_u64(&self) -> u64 {
        rand::rng().random()
    }
}

/// A generator that a seed fixes.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<StdRng>);

impl SeededEntropy {
    /// The same seed gives the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn next_u64(&self) -> u64 {
        self.0.lock().next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_and_units_are_below_one() {
        let (a, b) = (SeededEntropy::new(7), SeededEntropy::new(7));
        for _ in 0..1_000 {
            let unit = a.unit();
            assert!((0.0..1.0).contains(&unit));
            assert_eq!(unit, b.unit());
        }
        assert_ne!(OsEntropy.next_u64(), OsEntropy.next_u64());
    }
}
