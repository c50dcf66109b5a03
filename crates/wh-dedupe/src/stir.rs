//! Hash maps over keys that are hashes already: sixteen uniform bytes, stirred with a seed.
//!
//! A client chooses its ids and can look for ones whose hashes agree in the bits that a table uses. It does not know
//! the seed.

#[cfg(any(test, feature = "log"))]
use crate::hash::KeyHash;
use std::hash::{BuildHasher, Hasher};
use wh_types::Entropy;

/// Stirs a hash with a seed: one multiplication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stir(u64, u64);

impl Stir {
    /// A seed of its own for each table.
    pub(crate) fn new(entropy: &dyn Entropy) -> Self {
        Self(entropy.next_u64(), entropy.next_u64())
    }

    #[cfg(any(test, feature = "log"))]
    pub(crate) fn of(self, hash: KeyHash) -> u64 {
        let (low, high) = hash.halves();
        fold(low ^ self.0, high ^ self.1)
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the product")]
    let folded = (product as u64) ^ ((product >> 64) as u64);
    folded
}

impl BuildHasher for Stir {
    type Hasher = Stirring;
    fn build_hasher(&self) -> Stirring {
        Stirring { seed: [self.0, self.1], parts: 0, state: 0 }
    }
}

/// [`Stir`] as a hasher of two words.
#[derive(Debug)]
pub(crate) struct Stirring {
    seed: [u64; 2],
    parts: usize,
    state: u64,
}

impl Hasher for Stirring {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let word = word ^ self.seed[self.parts % 2];
        self.state = if self.parts == 0 { word } else { fold(self.state, word) };
        self.parts += 1;
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::SeededEntropy;

    #[test]
    fn the_hasher_and_the_short_way_agree_and_the_seed_matters() {
        let (one, two) = (Stir::new(&SeededEntropy::new(1)), Stir::new(&SeededEntropy::new(2)));
        let hash = KeyHash(*b"0123456789abcdef");
        assert_eq!(one.hash_one(hash), one.of(hash));
        assert_ne!(one.of(hash), two.of(hash));
        assert_ne!(one.of(hash), one.of(KeyHash(*b"0123456789abcdeg")));
    }
}
