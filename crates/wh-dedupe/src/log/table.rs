//! What each key is, in memory: sharded, so that calls seldom wait for each other and a table that grows copies a
//! thousandth of itself at a time.
//!
//! A key has one entry of twenty bytes, known or claimed: its hash, and the second in which it is forgotten or where its
//! claim is. So a key that is claimed and committed is looked for in one table, and what is looked for again is in the
//! processor's cache.

mod slots;

use crate::{
    Origin, Token,
    hash::KeyHash,
    stir::Stir,
    when::{NEVER, second},
};
use bytes::Bytes;
use hashbrown::{HashTable, hash_table};
use parking_lot::{Mutex, MutexGuard};
use slots::Slots;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use wh_types::{Entropy, Mono};

/// How many parts it has.
pub(super) const SHARDS: usize = 1_024;
/// An entry below this is a claim's slot, one from here on a second: of 1970-07-14 or later.
const SLOTS: u32 = 1 << 24;
/// In place of a segment: no record of it is durable yet.
const UNWRITTEN: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Table {
    shards: Box<[Mutex<Shard>]>,
    stir: Stir,
}

/// Who holds claims, and for what: the same for all that one call took.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) token: Token,
    pub(super) origin: Origin,
    /// When they lapse.
    pub(super) until: Mono,
    segment: AtomicU64,
}

impl Holder {
    pub(super) fn new(token: Token, origin: Origin, until: Mono) -> Self {
        Self { token, origin, until, segment: AtomicU64::new(UNWRITTEN) }
    }

    /// Where the record of its claims stands; `None`: it is on its way there.
    pub(super) fn segment(&self) -> Option<u64> {
        Some(self.segment.load(Ordering::Acquire)).filter(|segment| *segment != UNWRITTEN)
    }

    pub(super) fn written(&self, segment: u64) {
        self.segment.store(segment, Ordering::Release);
    }
}

/// An open claim.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    hash: KeyHash,
    /// Where its entry was when it came; a table that grew has moved it.
    bucket: u32,
    pub(super) holder: Arc<Holder>,
    pub(super) payload: Bytes,
    /// A record of it is on its way to the disk: nothing else may become of it until that is there.
    pub(super) writing: bool,
}

impl Claim {
    fn new(hash: KeyHash, bucket: usize, holder: &Arc<Holder>, payload: Bytes) -> Self {
        // a shard has fewer by far
        let bucket = u32::try_from(bucket).unwrap_or(u32::MAX);
        Self { hash, bucket, holder: Arc::clone(holder), payload, writing: false }
    }

    fn busy(&self, mono: Mono) -> bool {
        self.being_written() || self.holder.until > mono
    }

    pub(super) fn being_written(&self) -> bool {
        self.writing || self.holder.segment().is_none()
    }
}

/// What a claim came to.
#[derive(Debug)]
pub(super) enum Taken {
    /// In this slot.
    New(u32),
    Busy(Mono, Bytes),
    Seen(Bytes),
    /// It was held so before, and is now by a holder of its own.
    Lapsed(Lapsed, Bytes),
}

/// A claim that changed hands.
#[derive(Debug)]
pub(super) struct Lapsed {
    pub(super) hash: KeyHash,
    pub(super) slot: u32,
    pub(super) before: Arc<Holder>,
    pub(super) now: Arc<Holder>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: KeyHash,
    /// A slot, or the second in which it is forgotten.
    is: u32,
}

#[derive(Debug)]
pub(super) struct Shard {
    keys: HashTable<Entry>,
    claims: Slots,
    /// Of known keys that have one.
    payloads: HashMap<KeyHash, Bytes, Stir>,
    stir: Stir,
}

impl Table {
    pub(super) fn new(entropy: &dyn Entropy) -> Self {
        let stir = Stir::new(entropy);
        let shard = |_| {
            let payloads = HashMap::with_hasher(stir);
            Mutex::new(Shard { keys: HashTable::new(), claims: Slots::default(), payloads, stir })
        };
        Self { shards: (0..SHARDS).map(shard).collect(), stir }
    }

    /// Which shard a key is in.
    pub(super) fn index(stir: Stir, hash: KeyHash) -> usize {
        // the bits in the middle: a shard's own table uses the others
        (stir.of(hash) >> 32) as usize % SHARDS
    }

    pub(super) fn stir(&self) -> Stir {
        self.stir
    }

    pub(super) fn shard(&self, hash: KeyHash) -> MutexGuard<'_, Shard> {
        self.nth(Self::index(self.stir, hash))
    }

    /// One of [`SHARDS`].
    pub(super) fn nth(&self, nth: usize) -> MutexGuard<'_, Shard> {
        self.shards[nth].lock()
    }

    /// Every shard, one after the other.
    pub(super) fn each(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.shards.iter().map(Mutex::lock)
    }

    /// Every shard, while nobody else has the table.
    pub(super) fn shards_mut(&mut self) -> &mut [Mutex<Shard>] {
        &mut self.shards
    }

    /// Bytes of its tables of keys.
    pub(super) fn bytes(&self) -> usize {
        self.each().map(|shard| shard.keys.allocation_size()).sum()
    }
}

impl Shard {
    fn entry(&mut self, hash: KeyHash) -> Option<&mut Entry> {
        self.keys.find_mut(self.stir.of(hash), |entry| entry.hash == hash)
    }

    /// Claims a key, if that can be.
    pub(super) fn claim(&mut self, hash: KeyHash, payload: &Bytes, holder: &Arc<Holder>, at: (Mono, u32)) -> Taken {
        let ((mono, now), stir) = (at, self.stir);
        let again = |entry: &Entry| stir.of(entry.hash);
        let fresh = |bucket| Claim::new(hash, bucket, holder, payload.clone());
        let mut held = match self.keys.entry(stir.of(hash), |entry| entry.hash == hash, again) {
            hash_table::Entry::Vacant(free) => {
                let mut entry = free.insert(Entry { hash, is: 0 });
                let slot = self.claims.put(fresh(entry.bucket_index()));
                entry.get_mut().is = slot;
                return Taken::New(slot);
            }
            hash_table::Entry::Occupied(held) => held,
        };
        let bucket = held.bucket_index();
        let entry = held.get_mut();
        if entry.is >= SLOTS {
            if entry.is > now {
                return Taken::Seen(self.payloads.get(&hash).cloned().unwrap_or_default());
            }
            self.payloads.remove(&hash);
            entry.is = self.claims.put(fresh(bucket));
            return Taken::New(entry.is);
        }
        let slot = entry.is;
        let claim = self.claims.of(slot);
        let payload = claim.payload.clone();
        if claim.busy(mono) {
            return Taken::Busy(claim.holder.until, payload);
        }
        let taken = Arc::new(Holder::new(holder.token, claim.holder.origin, holder.until));
        let before = std::mem::replace(&mut claim.holder, Arc::clone(&taken));
        Taken::Lapsed(Lapsed { hash, slot, before, now: taken }, payload)
    }

    /// An open claim by its slot, which spares a look into the large table. It keeps its slot as long as it is open.
    pub(super) fn held_in(&mut self, slot: u32, hash: KeyHash) -> Option<&mut Claim> {
        self.claims.get(slot).filter(|claim| claim.hash == hash)
    }

    /// An open claim.
    pub(super) fn held(&mut self, hash: KeyHash) -> Option<&mut Claim> {
        let slot = self.entry(hash)?.is;
        (slot < SLOTS).then(|| self.claims.of(slot))
    }

    /// The open claims.
    pub(super) fn open(&mut self) -> impl Iterator<Item = (KeyHash, &mut Claim)> {
        self.claims.each().map(|claim| (claim.hash, claim))
    }

    /// The claim of a slot is committed.
    pub(super) fn know(&mut self, hash: KeyHash, slot: u32, until: u32) -> Option<Arc<Holder>> {
        let bucket = self.held_in(slot, hash)?.bucket as usize;
        let there = self.keys.get_bucket(bucket).is_some_and(|entry| entry.hash == hash);
        let entry = if there { self.keys.get_bucket_mut(bucket) } else { self.entry(hash) };
        entry?.is = until.max(SLOTS);
        let claim = self.claims.take(slot)?;
        if !claim.payload.is_empty() {
            self.payloads.insert(hash, claim.payload);
        }
        Some(claim.holder)
    }

    /// A claim is over.
    pub(super) fn free(&mut self, hash: KeyHash) -> Option<Arc<Holder>> {
        let found = self.keys.find_entry(self.stir.of(hash), |entry| entry.hash == hash).ok()?;
        if found.get().is >= SLOTS {
            return None;
        }
        let (entry, _) = found.remove();
        Some(self.claims.take(entry.is)?.holder)
    }

    /// When a known key is forgotten.
    pub(super) fn until(&self, hash: KeyHash) -> Option<u32> {
        let entry = self.keys.find(self.stir.of(hash), |entry| entry.hash == hash);
        entry.map(|entry| entry.is).filter(|is| *is >= SLOTS)
    }

    /// The payload of a known key.
    pub(super) fn payload(&self, hash: KeyHash) -> Bytes {
        self.payloads.get(&hash).cloned().unwrap_or_default()
    }

    /// Forgets what is over: known keys, and claims that lapsed long ago. Gives the claims' segments.
    pub(super) fn sweep(&mut self, now: u32, mono: Mono, forget_after: Duration) -> Vec<u64> {
        let payloads = &mut self.payloads;
        self.keys.retain(|entry| {
            let stays = entry.is < SLOTS || entry.is == NEVER || entry.is > now;
            if !stays && !payloads.is_empty() {
                payloads.remove(&entry.hash);
            }
            stays
        });
        let over = |claim: &Claim| !claim.being_written() && claim.holder.until + forget_after <= mono;
        let lapsed: Vec<_> = self.claims.each().filter(|claim| over(claim)).map(|claim| claim.hash).collect();
        let gone = lapsed.into_iter().filter_map(|hash| self.free(hash)?.segment()).collect();
        if self.keys.len() < self.keys.capacity() / 4 {
            let stir = self.stir;
            self.keys.shrink_to(self.keys.len() * 2, |entry| stir.of(entry.hash));
        }
        gone
    }

    /// How many claims are open.
    pub(super) fn claims(&self) -> usize {
        self.claims.len()
    }

    /// How many keys are known.
    pub(super) fn known(&self) -> usize {
        self.keys.len() - self.claims.len()
    }

    /// As a log says that it was claimed. Gives whose claim that ends; `Err`: the key was known then, and stays so.
    pub(super) fn claimed(
        &mut self,
        hash: KeyHash,
        payload: Bytes,
        holder: &Arc<Holder>,
    ) -> Result<Option<Arc<Holder>>, ()> {
        let stir = self.stir;
        let again = |entry: &Entry| stir.of(entry.hash);
        let fresh = |bucket| Claim::new(hash, bucket, holder, payload);
        let mut held = match self.keys.entry(stir.of(hash), |entry| entry.hash == hash, again) {
            hash_table::Entry::Vacant(free) => {
                let mut entry = free.insert(Entry { hash, is: 0 });
                let slot = self.claims.put(fresh(entry.bucket_index()));
                entry.get_mut().is = slot;
                return Ok(None);
            }
            hash_table::Entry::Occupied(held) => held,
        };
        let claim = fresh(held.bucket_index());
        let entry = held.get_mut();
        if entry.is < SLOTS {
            return Ok(Some(std::mem::replace(self.claims.of(entry.is), claim).holder));
        }
        if entry.is > second(holder.origin.at) {
            return Err(());
        }
        self.payloads.remove(&hash);
        entry.is = self.claims.put(claim);
        Ok(None)
    }

    /// As a log says that it was committed. Gives whose claim that ends; `Err`: it says nothing of the key's claim, being
    /// a copy of what was forgotten meanwhile.
    pub(super) fn committed(
        &mut self,
        hash: KeyHash,
        until: u32,
        payload: Bytes,
        now: u32,
    ) -> Result<Option<Arc<Holder>>, ()> {
        let (stir, mut ended) = (self.stir, None);
        let again = |entry: &Entry| stir.of(entry.hash);
        match self.keys.entry(stir.of(hash), |entry| entry.hash == hash, again) {
            hash_table::Entry::Occupied(mut held) => {
                let is = held.get().is;
                if is < SLOTS {
                    if second(self.claims.of(is).holder.origin.at) >= until {
                        return Err(());
                    }
                    ended = self.claims.take(is).map(|claim| claim.holder);
                }
                if until > now {
                    held.get_mut().is = until.max(SLOTS);
                } else if is < SLOTS {
                    held.remove();
                }
            }
            hash_table::Entry::Vacant(free) if until > now => {
                free.insert(Entry { hash, is: until.max(SLOTS) });
            }
            hash_table::Entry::Vacant(_) => {}
        }
        if until <= now {
            return Ok(ended);
        }
        if payload.is_empty() {
            self.payloads.remove(&hash);
        } else {
            self.payloads.insert(hash, payload);
        }
        Ok(ended)
    }
}
