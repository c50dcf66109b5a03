//! A full disk: settled history is given up, oldest first, so that publishing goes on. Ids stay known for their window:
//! they move into the checkpoint. What is not settled is never touched.

use super::{
    Disk,
    checkpoint::{Content, KeptId},
    forward, record, upkeep,
};
use crate::local::{Shared, Store as _};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};
use tokio::runtime::Handle;
use wh_log::{Detail, Position, SegmentInfo};
use wh_types::{BlockId, Timestamp};

/// Freed at once, or a segment where that is more.
const LEAST_BYTES: u64 = 256 * 1024;

/// What must stay of a segment.
#[derive(Clone, Copy, Debug, Default)]
struct Pinned {
    records: u64,
    bytes: u64,
}

/// Frees a segment's worth of what is settled; says whether it did. Blocking. Whoever calls has `Parts::freeing`.
pub(super) fn run(shared: &Arc<Shared<Disk>>, runtime: &Handle) -> wh_log::Result<bool> {
    let parts = &shared.store.0;
    let pinned = pinned(shared);
    let Some((chosen, moving)) = choose(shared, &pinned) else {
        let active = parts.log.segments().into_iter().find(|segment| !segment.sealed);
        let worth =
            |active: &SegmentInfo| may_go(shared, active, &pinned) || may_move(shared, active, &pinned).is_some();
        let Some(active) = active.filter(worth) else { return Ok(false) };
        // all there is to free is in the segment that is written
        runtime.block_on(parts.log.seal())?;
        tracing::debug!(segment = active.number, "the segment that was written is sealed to be freed");
        let Some((chosen, moving)) = choose(shared, &pinned) else { return Ok(false) };
        return free(shared, runtime, &chosen, moving);
    };
    free(shared, runtime, &chosen, moving)
}

/// Whether blocks were stored in it, and none of them must stay. One that holds notes alone would only be written again.
fn may_go(shared: &Arc<Shared<Disk>>, segment: &SegmentInfo, pinned: &BTreeMap<u64, Pinned>) -> bool {
    let inner = shared.store.0.inner.lock();
    let blocks =
        inner.usage.live_records_of(segment.number) > 0 || inner.usage.newest_of(segment.number) > Timestamp::default();
    blocks && !pinned.contains_key(&segment.number)
}

/// How much of it must be moved, if that is little: it is written again before its place is free, into the room that is
/// reserved.
fn may_move(shared: &Arc<Shared<Disk>>, segment: &SegmentInfo, pinned: &BTreeMap<u64, Pinned>) -> Option<u64> {
    let Pinned { bytes, .. } = pinned.get(&segment.number).copied()?;
    let little = bytes * 4 < u64::from(segment.bytes) && bytes <= shared.store.0.log.reserve_bytes() / 4;
    little.then_some(bytes)
}

/// What is not settled, and the dead letters, by segment.
fn pinned(shared: &Arc<Shared<Disk>>) -> BTreeMap<u64, Pinned> {
    let mut pinned = BTreeMap::<u64, Pinned>::new();
    let state = shared.lock();
    for place in state.core.needed() {
        let of = pinned.entry(place.segment).or_default();
        of.records += 1;
        of.bytes += u64::from(place.len);
    }
    pinned
}

/// The oldest segments that can go whole; else the one of which least must be moved. `moving`: it must.
fn choose(shared: &Arc<Shared<Disk>>, pinned: &BTreeMap<u64, Pinned>) -> Option<(Vec<u64>, bool)> {
    let parts = &shared.store.0;
    // nothing is added to a sealed segment, and all of it is known to the state by then
    let Position { segment, offset } = parts.log.applied();
    let mut segments = parts.log.segments();
    segments.retain(|info| info.sealed && (info.number, info.bytes) <= (segment, offset));
    let enough = LEAST_BYTES.max(u64::from(parts.segment_bytes));
    let (mut chosen, mut bytes) = (Vec::new(), 0);
    for info in segments.iter().filter(|info| may_go(shared, info, pinned)) {
        if bytes >= enough {
            break;
        }
        bytes += u64::from(info.bytes);
        chosen.push(info.number);
    }
    if !chosen.is_empty() {
        return Some((chosen, false));
    }
    let part = |info: &SegmentInfo| may_move(shared, info, pinned).map(|bytes| (bytes, info.number));
    segments.iter().filter_map(part).min().map(|(_, number)| (vec![number], true))
}

fn free(shared: &Arc<Shared<Disk>>, runtime: &Handle, chosen: &[u64], moving: bool) -> wh_log::Result<bool> {
    let parts = &shared.store.0;
    let Some(ids) = ids(shared, chosen)? else { return Ok(false) };
    parts.log.spend_reserve()?;
    let done = free_with_reserve(shared, runtime, chosen, ids, moving);
    // without it nothing but freeing may write; the upkeep tries again
    if let Err(error) = parts.log.refill_reserve(0) {
        tracing::warn!(%error, "there is no room for the log's reserve yet");
    }
    done
}

fn free_with_reserve(
    shared: &Arc<Shared<Disk>>,
    runtime: &Handle,
    chosen: &[u64],
    ids: Vec<KeptId>,
    moving: bool,
) -> wh_log::Result<bool> {
    let parts = &shared.store.0;
    let going: HashSet<u64> = chosen.iter().copied().collect();
    let forgotten = {
        let mut state = shared.lock();
        let forgotten = state.core.forget_settled(|place| going.contains(&place.segment));
        let freed = state.core.take_freed();
        shared.store.freed(freed);
        forgotten
    };
    for segment in chosen.iter().filter(|_| moving) {
        forward::step(shared, runtime, *segment)?;
    }
    let dead: Vec<u64> = {
        let inner = parts.inner.lock();
        chosen.iter().copied().filter(|segment| inner.usage.live_records_of(*segment) == 0).collect()
    };
    if dead.is_empty() {
        return Ok(false);
    }
    keep(&mut parts.inner.lock().kept_ids, ids);
    upkeep::retire(shared, runtime, &dead)?;
    let count = dead.len();
    tracing::warn!(
        segments = count,
        forgotten,
        "the disk is full: {forgotten} settled blocks of the history were given up"
    );
    crate::metrics::history_given_up(forgotten);
    Ok(true)
}

/// The ids that are known by these segments alone and whose time is not over; `None`: they do not fit into the reserve.
fn ids(shared: &Arc<Shared<Disk>>, chosen: &[u64]) -> wh_log::Result<Option<Vec<KeptId>>> {
    let parts = &shared.store.0;
    let after = shared.clock.wall().saturating_sub(parts.duplicate_window);
    let (young, kept) = {
        let inner = parts.inner.lock();
        let young = chosen.iter().filter(|segment| inner.usage.newest_of(**segment) >= after);
        (young.copied().collect::<Vec<_>>(), inner.kept_ids.len())
    };
    let mut ids = Vec::new();
    for segment in young {
        let note = |record: wh_log::RecordRef<'_>| {
            if record.head.kind == record::BLOCK
                && record.head.time >= after
                && let Some(meta) = record::BlockMeta::decode(record.meta)
            {
                let (id, sequence, rows, stored) = (meta.id, record.head.sequence, meta.rows, record.head.time);
                ids.push(KeptId { id, sequence, rows, stored });
            }
        };
        parts.log.scan(Position { segment, offset: 0 }, Detail::Heads, note, |_| {})?;
    }
    let bytes = ((ids.len() + kept) * Content::ID_BYTES) as u64;
    let fit = ids.is_empty() || bytes <= parts.log.reserve_bytes() / 2;
    if !fit {
        let count = ids.len();
        tracing::warn!(count, "the disk is full, and {count} ids are younger than their window: they are waited for");
    }
    Ok(fit.then_some(ids))
}

/// What the reserve should have at least: room for another checkpoint like the last, and for one that grew.
pub(super) fn reserve_wanted(shared: &Arc<Shared<Disk>>) -> u64 {
    2 * shared.store.0.inner.lock().checkpoint_bytes
}

/// Adds ids to those that are kept, each once: what was kept for a try that failed is there already.
fn keep(kept: &mut Vec<KeptId>, ids: Vec<KeptId>) {
    let known: HashSet<BlockId> = kept.iter().map(|kept| kept.id).collect();
    kept.extend(ids.into_iter().filter(|new| !known.contains(&new.id)));
}

/// Forgets the ids whose time is over.
pub(super) fn expire_ids(ids: &mut Vec<KeptId>, after: Timestamp) {
    ids.retain(|kept| kept.stored >= after);
}
