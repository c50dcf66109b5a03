//! What is over: keys are forgotten, segments freed.
//!
//! Segments are freed oldest first, so that a record that says what became of a claim never goes before the claim's. Where
//! the log is mostly over and the oldest segment is not, what is needed of it is written again at the end.

use super::{
    Inner, calls, error,
    record::{self, Keys, Read, Said},
    table::{Claim, Holder, SHARDS},
};
use crate::{
    Result,
    hash::KeyHash,
    when::{self, NEVER},
};
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};
use wh_log::{Detail, Position, SegmentInfo};
use wh_types::Stop;

/// Keys in one record that is written again.
const PIECE: usize = 4_096;
/// Claims that are written again in one append.
const CLAIMS_AT_ONCE: usize = 256;
/// How often lapsed claims are looked for where no key was forgotten.
const CLAIMS_EVERY: Duration = Duration::from_secs(60);

pub(super) async fn run(store: Weak<Inner>, stop: Stop) {
    let Some(mut swept) = store.upgrade().map(|inner| inner.options.clock.now()) else { return };
    loop {
        let Some(every) = store.upgrade().map(|inner| inner.options.upkeep_every) else { return };
        tokio::select! {
            () = stop.wait() => return,
            () = tokio::time::sleep(every) => {}
        }
        let Some(inner) = store.upgrade() else { return };
        let now = inner.options.clock.now();
        let claims_too = now.saturating_duration_since(swept) >= CLAIMS_EVERY;
        if inner.forget(claims_too).await {
            swept = now;
        }
        if let Err(error) = Inner::free(&inner).await {
            tracing::warn!(%error, "segments of the dedupe log could not be freed");
        }
    }
}

impl Inner {
    /// Forgets what is over, a shard at a time.
    async fn forget(&self, claims_too: bool) -> bool {
        let now = when::second(self.options.clock.wall());
        if !self.live.lock().expire(now) && !claims_too {
            return false;
        }
        let mono = self.options.clock.now();
        let mut known = 0;
        for nth in 0..SHARDS {
            let gone = {
                let mut shard = self.table.nth(nth);
                let gone = shard.sweep(now, mono, self.options.forget_after);
                known += shard.known() as u64;
                gone
            };
            if !gone.is_empty() {
                self.claims.fetch_sub(gone.len() as u64, Ordering::Relaxed);
                let mut live = self.live.lock();
                gone.into_iter().for_each(|segment| live.resolved(segment, 1));
            }
            if nth % 16 == 15 {
                tokio::task::yield_now().await;
            }
        }
        // off by what came meanwhile, until the next time
        self.known.store(known, Ordering::Relaxed);
        true
    }

    /// Frees segments from the oldest on, as long as that is worth it.
    async fn free(inner: &Arc<Self>) -> Result<()> {
        loop {
            let now = when::second(inner.options.clock.wall());
            let written = inner.log.applied().segment;
            let segments = inner.log.segments();
            let Some(oldest) = segments.first().filter(|s| s.sealed && s.number < written).copied() else {
                return Ok(());
            };
            let (claims, known) = inner.live.lock().of(oldest.number, now);
            let needed = claims + known > 0;
            if needed && (!inner.worth_it(&segments, now) || !Self::write_again(inner, oldest, now).await?) {
                return Ok(());
            }
            let retiring = Arc::clone(inner);
            let retired = tokio::task::spawn_blocking(move || retiring.log.retire(&[oldest.number])).await;
            match retired {
                Ok(Ok(())) => inner.live.lock().retire(oldest.number),
                Ok(Err(failed)) => return Err(error::of("retire", &failed)),
                Err(_) => return Ok(()),
            }
        }
    }

    /// Whether more than three quarters of the log are over, beyond what two segments hold.
    fn worth_it(&self, segments: &[SegmentInfo], now: u32) -> bool {
        let all: u64 = segments.iter().map(|segment| u64::from(segment.bytes)).sum();
        let needed = (self.live.lock().known(now) + self.claims.load(Ordering::Relaxed)) * 16;
        all > 4 * needed + 2 * u64::from(self.options.segment_bytes)
    }

    /// Writes what is needed of a segment again. `false`: some of it is being written to just now.
    async fn write_again(inner: &Arc<Self>, segment: SegmentInfo, now: u32) -> Result<bool> {
        let reading = Arc::clone(inner);
        let read = tokio::task::spawn_blocking(move || reading.needed(segment.number, now)).await;
        let Ok(read) = read else { return Ok(false) };
        for (until, keys) in read? {
            for piece in keys.chunks(PIECE) {
                let mut list = Keys::default();
                piece.iter().for_each(|(hash, payload)| list.push(*hash, payload));
                let (wall, meta) = (inner.options.clock.wall(), list.committed(until));
                let parts = list.parts();
                let written = inner.log.append(&[calls::of(record::COMMITTED, wall, &meta, &parts)]).await;
                let places = written.map_err(|e| error::of("write again", &e))?;
                let bucket = when::bucket(when::second(wall), until);
                inner.live.lock().committed(places.first().segment, bucket, list.len() as u64);
            }
        }
        Self::claims_again(inner, segment.number).await
    }

    /// The known keys that stand in a segment, by when they are forgotten. Blocking.
    fn needed(&self, segment: u64, now: u32) -> Result<BTreeMap<u32, Vec<(KeyHash, Bytes)>>> {
        let mut needed: BTreeMap<u32, Vec<(KeyHash, Bytes)>> = BTreeMap::new();
        let from = Position { segment, offset: 0 };
        let scanned = self.log.scan(
            from,
            Detail::Full,
            |record| {
                let Some(read) = record.body.and_then(|body| Read::decode(record.head.kind, record.meta, body)) else {
                    return;
                };
                let Said::Committed { until } = read.said else { return };
                if until <= now && until != NEVER {
                    return;
                }
                let keys = needed.entry(until).or_default();
                for (hash, _) in read.keys() {
                    let shard = self.table.shard(hash);
                    if shard.until(hash) == Some(until) {
                        keys.push((hash, shard.payload(hash)));
                    }
                }
            },
            |_| {},
        );
        scanned.map_err(|e| error::of("scan", &e))?;
        Ok(needed)
    }

    /// Writes open claims of a segment again. `false`: of some a record is on its way just now.
    async fn claims_again(inner: &Self, segment: u64) -> Result<bool> {
        let (mut moving, mut all) = (Moving { inner, claims: Vec::new(), segment }, true);
        for mut shard in inner.table.each() {
            for (hash, claim) in shard.open().filter(|(_, claim)| claim.holder.segment() == Some(segment)) {
                if std::mem::replace(&mut claim.writing, true) {
                    all = false;
                } else {
                    moving.claims.push((hash, claim.clone()));
                }
            }
        }
        while !moving.claims.is_empty() {
            let piece = moving.claims.split_off(moving.claims.len().saturating_sub(CLAIMS_AT_ONCE));
            let piece = Moving { inner, claims: piece, segment };
            let wall = inner.options.clock.wall();
            let lists: Vec<(Keys, Vec<u8>)> = piece.claims.iter().map(written).collect();
            let bodies: Vec<_> = lists.iter().map(|(keys, _)| keys.parts()).collect();
            let pairs = lists.iter().zip(&bodies);
            let records = pairs.map(|((_, meta), body)| calls::of(record::CLAIMED, wall, meta, body));
            let records: Vec<_> = records.collect();
            let places = inner.log.append(&records).await.map_err(|e| error::of("write again", &e))?;
            piece.moved(places.first().segment);
        }
        Ok(all)
    }
}

fn written((hash, claim): &(KeyHash, Claim)) -> (Keys, Vec<u8>) {
    let mut keys = Keys::default();
    keys.push(*hash, &claim.payload);
    let meta = keys.claimed(claim.holder.token, &claim.holder.origin);
    (keys, meta)
}

/// Claims whose records are being written again; let go in the end.
struct Moving<'a> {
    inner: &'a Inner,
    claims: Vec<(KeyHash, Claim)>,
    /// Where they stand.
    segment: u64,
}

impl Moving<'_> {
    /// They stand there now.
    fn moved(self, segment: u64) {
        let mut count = 0;
        for (hash, _) in &self.claims {
            if let Some(claim) = self.inner.table.shard(*hash).held(*hash) {
                // the others of its call may stand where they stood
                let Holder { token, origin, until, .. } = *claim.holder;
                let holder = Holder::new(token, origin, until);
                holder.written(segment);
                claim.holder = Arc::new(holder);
                count += 1;
            }
        }
        let mut live = self.inner.live.lock();
        live.resolved(self.segment, count);
        live.claimed(segment, count);
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        for (hash, _) in &self.claims {
            if let Some(claim) = self.inner.table.shard(*hash).held(*hash) {
                claim.writing = false;
            }
        }
    }
}
