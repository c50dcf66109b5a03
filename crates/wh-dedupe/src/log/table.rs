//! What each key is, in memory: sharded, so that calls seldom wait for each other and a table that grows copies a
//! thousandth of itself at a time.
//!
//! A known key takes twenty bytes: its hash and the second in which it is forgotten.

use super::when::{NEVER, second};
use crate::{Origin, Token, hash::KeyHash, stir::Stir};
use bytes::Bytes;
use hashbrown::{HashTable, hash_table::Entry};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashMap, sync::Arc, time::Duration};
use wh_types::{Entropy, Mono};

/// How many parts it has.
pub(super) const SHARDS: usize = 1_024;

#[derive(Debug)]
pub(super) struct Table {
    shards: Box<[Mutex<Shard>]>,
    stir: Stir,
}

/// An open claim.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) token: Token,
    pub(super) origin: Arc<Origin>,
    /// When it lapses.
    pub(super) until: Mono,
    pub(super) payload: Bytes,
    /// Where its record stands; `None`: it is not written yet.
    pub(super) segment: Option<u64>,
    /// A record of it is on its way to the disk: nothing else may become of it until that is there.
    pub(super) writing: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    hash: [u8; 16],
    until: u32,
}

#[derive(Debug)]
pub(super) struct Shard {
    known: HashTable<Known>,
    /// Of known keys that have one.
    payloads: HashMap<KeyHash, Bytes, Stir>,
    pub(super) claims: HashMap<KeyHash, Claim, Stir>,
    stir: Stir,
}

impl Table {
    pub(super) fn new(entropy: &dyn Entropy) -> Self {
        let stir = Stir::new(entropy);
        let shard = |_| {
            let (payloads, claims) = (HashMap::with_hasher(stir), HashMap::with_hasher(stir));
            Mutex::new(Shard { known: HashTable::new(), payloads, claims, stir })
        };
        Self { shards: (0..SHARDS).map(shard).collect(), stir }
    }

    pub(super) fn shard(&self, hash: KeyHash) -> MutexGuard<'_, Shard> {
        // the bits in the middle: a shard's own tables use the others
        let middle = (self.stir.of(hash) >> 32) as usize;
        self.nth(middle % SHARDS)
    }

    /// One of [`SHARDS`].
    pub(super) fn nth(&self, nth: usize) -> MutexGuard<'_, Shard> {
        self.shards[nth].lock()
    }

    /// Every shard, one after the other.
    pub(super) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(Mutex::lock)
    }

    /// Bytes of its tables of known keys.
    pub(super) fn bytes(&self) -> usize {
        self.each().map(|shard| shard.known.allocation_size()).sum()
    }
}

impl Shard {
    /// What a known key was claimed with; `None`: it is not known, or forgotten by now.
    pub(super) fn known(&mut self, hash: KeyHash, now: u32) -> Option<Bytes> {
        let stirred = self.stir.of(hash);
        let entry = self.known.find_entry(stirred, |known| known.hash == hash.0).ok()?;
        if entry.get().until > now {
            return Some(self.payloads.get(&hash).cloned().unwrap_or_default());
        }
        entry.remove();
        self.payloads.remove(&hash);
        None
    }

    /// When a known key is forgotten.
    pub(super) fn until(&self, hash: KeyHash) -> Option<u32> {
        self.known.find(self.stir.of(hash), |known| known.hash == hash.0).map(|known| known.until)
    }

    /// The payload of a known key.
    pub(super) fn payload(&self, hash: KeyHash) -> Bytes {
        self.payloads.get(&hash).cloned().unwrap_or_default()
    }

    pub(super) fn know(&mut self, hash: KeyHash, until: u32, payload: Bytes) {
        let stir = self.stir;
        let again = |known: &Known| stir.of(KeyHash(known.hash));
        match self.known.entry(stir.of(hash), |known| known.hash == hash.0, again) {
            Entry::Occupied(mut before) => before.get_mut().until = until,
            Entry::Vacant(free) => {
                free.insert(Known { hash: hash.0, until });
            }
        }
        if payload.is_empty() {
            self.payloads.remove(&hash);
        } else {
            self.payloads.insert(hash, payload);
        }
    }

    /// Forgets what is over: known keys, and claims that lapsed long ago. Gives the claims' segments.
    pub(super) fn sweep(&mut self, now: u32, mono: Mono, forget_after: Duration) -> Vec<u64> {
        let payloads = &mut self.payloads;
        self.known.retain(|known| {
            let stays = known.until == NEVER || known.until > now;
            if !stays && !payloads.is_empty() {
                payloads.remove(&KeyHash(known.hash));
            }
            stays
        });
        if self.known.len() < self.known.capacity() / 4 {
            let stir = self.stir;
            self.known.shrink_to(self.known.len() * 2, |known| stir.of(KeyHash(known.hash)));
        }
        let over = |claim: &Claim| !claim.writing && claim.until + forget_after <= mono;
        self.claims.extract_if(|_, claim| over(claim)).filter_map(|(_, claim)| claim.segment).collect()
    }

    /// Drops claims of keys that were known when they were claimed; gives their segments.
    pub(super) fn drop_committed_claims(&mut self) -> Vec<u64> {
        let (known, stir) = (&self.known, self.stir);
        let committed = |hash: KeyHash, claim: &Claim| {
            let found = known.find(stir.of(hash), |known| known.hash == hash.0);
            found.is_some_and(|known| known.until > second(claim.origin.at))
        };
        let dropped = self.claims.extract_if(|hash, claim| committed(*hash, claim));
        dropped.filter_map(|(_, claim)| claim.segment).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
