//! Bodies of recently stored blocks, so that delivery and live readers normally read nothing from the disk.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
};
use wh_log::Place;
use wh_types::Block;

/// What a cached block takes beside its body.
const OVERHEAD: usize = 400;

/// Places are given by us alone: nobody can choose two that collide.
#[derive(Debug, Default)]
struct PlaceHasher(u64);

impl PlaceHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.mix(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
}

/// Keeps the latest blocks up to a number of bytes; the oldest go first.
#[derive(Debug)]
pub(super) struct Cache {
    limit: usize,
    bytes: usize,
    blocks: HashMap<(u64, u32), Block, BuildHasherDefault<PlaceHasher>>,
    order: VecDeque<(u64, u32)>,
}

impl Cache {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, bytes: 0, blocks: HashMap::default(), order: VecDeque::new() }
    }

    pub(super) fn insert(&mut self, place: Place, block: Block) {
        let size = block.body.len() + OVERHEAD;
        if size > self.limit {
            return;
        }
        let key = (place.segment, place.offset);
        if self.blocks.insert(key, block).is_none() {
            self.order.push_back(key);
            self.bytes += size;
        }
        while self.bytes > self.limit {
            let Some(oldest) = self.order.pop_front() else { break };
            self.forget(oldest);
        }
    }

    pub(super) fn get(&self, place: Place) -> Option<Block> {
        let key = (place.segment, place.offset);
        // blocks come in the order of the log: one from before the oldest is not looked for
        if self.order.front().is_none_or(|oldest| key < *oldest) {
            return None;
        }
        self.blocks.get(&key).cloned()
    }

    /// Forgets what nothing refers to any more.
    pub(super) fn remove(&mut self, place: Place) {
        self.forget((place.segment, place.offset));
        // the freed are mostly the oldest: their keys go with them, the others' when they come to the front
        while self.order.front().is_some_and(|oldest| !self.blocks.contains_key(oldest)) {
            self.order.pop_front();
        }
        if self.order.len() > 2 * self.blocks.len() + 64 {
            let blocks = &self.blocks;
            self.order.retain(|key| blocks.contains_key(key));
        }
    }

    fn forget(&mut self, key: (u64, u32)) {
        if let Some(block) = self.blocks.remove(&key) {
            self.bytes -= block.body.len() + OVERHEAD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use wh_types::{BlockId, Encoding, Table, Tenant, Timestamp};

    #[test]
    fn the_oldest_go_when_it_is_full_and_the_freed_at_once() {
        let place = |offset| Place { segment: 1, offset, len: 1 };
        let block = Block {
            id: BlockId([0; 16]),
            tenant: Tenant::default(),
            table: Table::new("t").unwrap(),
            received: Timestamp::default(),
            rows: 1,
            decoded_bytes: 1,
            encoding: Encoding::Zstd,
            body: Bytes::from(vec![0; 600]),
            chain: None,
            trace: None,
        };
        let mut cache = Cache::new(10_000);
        for offset in 0..1_000 {
            cache.insert(place(offset), block.clone());
            if offset % 2 == 0 {
                cache.remove(place(offset));
            }
        }
        assert_eq!(cache.bytes, 10_000);
        assert!(cache.get(place(999)).is_some() && cache.get(place(981)).is_some());
        assert!(cache.get(place(979)).is_none() && cache.get(place(998)).is_none());
        assert!(cache.order.len() <= 2 * cache.blocks.len() + 64);
    }
}
