//! Maps by numbers that are counted, not chosen: requests of this process, sequences of a stream.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map by counted numbers. Nobody outside may choose its keys: they are hashed by one multiplication.
pub type ByOrdinal<T> = HashMap<u64, T, BuildHasherDefault<Ordinal>>;

/// Hashes numbers that follow one another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ordinal(u64);

impl Hasher for Ordinal {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
