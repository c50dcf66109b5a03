//! The duplicate window: which ids were stored lately, where, and with how many rows. Knows nothing of bodies.
//!
//! Ids are kept in buckets of a quarter window. Expiry drops a whole bucket, so it costs nothing per id, no second
//! list of ids by age is kept, and the table never doubles as a whole.

use super::tick::{Tick, nanos};
use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasherDefault, Hasher},
    time::Duration,
};
use wh_types::BlockId;

/// What is remembered of a stored id, for the whole window, over settle and reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) sequence: u64,
    pub(crate) rows: u32,
}

type Bucket = HashMap<BlockId, Known, BuildHasherDefault<IdHasher>>;

/// Ids are random already; one multiplication spreads those that a test counted up.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 ^= self.0 >> 32;
        }
    }

    fn write_usize(&mut self, _: usize) {}
}

#[derive(Debug)]
pub(crate) struct Recent {
    window: Duration,
    span: i64,
    buckets: BTreeMap<i64, Bucket>,
}

impl Recent {
    pub(crate) fn new(window: Duration) -> Self {
        Self { window, span: (nanos(window) / 4).max(1), buckets: BTreeMap::new() }
    }

    pub(crate) fn get(&self, id: BlockId) -> Option<Known> {
        self.buckets.values().rev().find_map(|bucket| bucket.get(&id)).copied()
    }

    /// Remembers an id stored at `stored`. The first of two records of one id wins.
    pub(crate) fn insert(&mut self, id: BlockId, known: Known, stored: Tick) {
        self.buckets.entry(stored.0.div_euclid(self.span)).or_default().entry(id).or_insert(known);
    }

    /// Makes room for ids stored about then.
    pub(crate) fn reserve(&mut self, stored: Tick, ids: usize) {
        self.buckets.entry(stored.0.div_euclid(self.span)).or_default().reserve(ids);
    }

    /// How wide a bucket is, in nanoseconds.
    pub(crate) fn span(&self) -> i64 {
        self.span
    }

    /// Forgets an id that was not stored after all.
    pub(crate) fn remove(&mut self, id: BlockId) {
        for bucket in self.buckets.values_mut().rev() {
            if bucket.remove(&id).is_some() {
                return;
            }
        }
    }

    /// Forgets what is older than the window, by whole buckets.
    pub(crate) fn expire(&mut self, now: Tick) {
        let first = now.before(self.window).0.div_euclid(self.span);
        while let Some(oldest) = self.buckets.first_entry() {
            if *oldest.key() >= first {
                break;
            }
            oldest.remove();
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.buckets.values().map(HashMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> BlockId {
        BlockId(n.to_le_bytes())
    }

    #[test]
    fn an_id_is_known_for_at_least_the_window_and_at_most_a_quarter_more() {
        let window = Duration::from_secs(120);
        let mut recent = Recent::new(window);
        for second in 0..400 {
            let now = Tick(nanos(Duration::from_secs(second)));
            recent.insert(id(u128::from(second)), Known { sequence: second, rows: 1 }, now);
            recent.expire(now);
            let oldest = second.saturating_sub(120);
            assert_eq!(recent.get(id(u128::from(oldest))).map(|k| k.sequence), Some(oldest));
            assert!(recent.len() <= 151, "{}", recent.len());
        }
    }

    #[test]
    fn the_first_record_of_an_id_wins_and_a_failed_one_is_forgotten() {
        let mut recent = Recent::new(Duration::from_secs(1));
        recent.insert(id(7), Known { sequence: 1, rows: 5 }, Tick(-5));
        recent.insert(id(7), Known { sequence: 2, rows: 0 }, Tick(-5));
        assert_eq!(recent.get(id(7)), Some(Known { sequence: 1, rows: 5 }));
        recent.remove(id(7));
        assert_eq!(recent.get(id(7)), None);
    }
}
