//! What the queue does by itself, in small steps: writes settled ranges down, drops old history, frees segments.

use super::{Disk, batch::Batch, checkpoint::Content, forward, record, relief};
use crate::{core::TableIndex, local::Shared};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::runtime::Handle;
use wh_log::Position;
use wh_types::Stop;

/// Segments are freed with every nth step: each time the whole state is written down.
const FREE_EVERY: u32 = 4;

/// Runs until the queue closes or is gone.
pub(super) async fn run(shared: Weak<Shared<Disk>>, stop: Stop, every: Duration) {
    let mut steps = 0_u32;
    loop {
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = tokio::time::sleep(every) => {}
        }
        let Some(shared) = shared.upgrade() else { return };
        let runtime = Handle::current();
        steps = steps.wrapping_add(1);
        let free = steps.is_multiple_of(FREE_EVERY);
        let step = tokio::task::spawn_blocking(move || step(&shared, &runtime, free)).await;
        if let Err(error) = step {
            tracing::error!(%error, "a step of the queue's upkeep failed");
        }
    }
}

fn step(shared: &Arc<Shared<Disk>>, runtime: &Handle, free: bool) {
    let parts = &shared.store.0;
    let _freeing = free.then(|| parts.freeing.lock());
    let wall = shared.clock.wall();
    {
        let now = shared.now();
        let mut state = shared.lock();
        parts.write_settled(&mut state.core, wall);
        shared.sweep(&mut state, now);
    }
    if !free {
        return;
    }
    // in this order: what is applied by now is counted by now, and nothing is added to a segment before that position
    let position = parts.log.applied();
    let segments: Vec<_> = parts.log.segments().into_iter().filter(|info| info.number < position.segment).collect();
    let ids_before = wall.saturating_sub(parts.duplicate_window);
    let (dead, sparse) = {
        let inner = parts.inner.lock();
        (inner.usage.dead(&segments, ids_before), inner.usage.sparse(&segments, ids_before))
    };
    let mut done = Ok(());
    if !dead.is_empty() {
        done = retire(shared, runtime, &dead);
    }
    if let Some(sparse) = sparse {
        done = done.and(forward::step(shared, runtime, sparse));
    }
    if let Err(error) = done {
        tracing::warn!(%error, "segments that are not needed could not be freed");
    }
    if let Err(error) = make_room(shared, runtime) {
        tracing::warn!(%error, "the full disk stays full");
    }
}

/// While the disk is full: looks for room, and for what can be given up.
fn make_room(shared: &Arc<Shared<Disk>>, runtime: &Handle) -> wh_log::Result<()> {
    let log = &shared.store.0.log;
    if log.stats().full {
        relief::run(shared, runtime)?;
    }
    let wanted = relief::reserve_wanted(shared);
    if log.stats().full || log.reserve_spent() || log.reserve_bytes() < wanted {
        match log.refill_reserve(wanted) {
            // said once, by the publish that met it
            Err(error) if error.kind() == wh_log::Kind::NoSpace => {}
            done => done?,
        }
    }
    Ok(())
}

/// Frees segments, after what was learned from them is in the checkpoint, and what names tables is in the log again.
pub(super) fn retire(shared: &Arc<Shared<Disk>>, runtime: &Handle, dead: &[u64]) -> wh_log::Result<()> {
    let parts = &shared.store.0;
    name_again(shared, runtime, dead)?;
    // before the snapshot: what is applied by now is in it
    let position = parts.log.applied();
    let content = {
        let state = shared.lock();
        let snapshot = state.core.snapshot();
        let mut inner = parts.inner.lock();
        let core = &state.core;
        let count = u32::try_from(snapshot.tables.len()).unwrap_or(u32::MAX);
        let numbers = (0..count).map(|at| inner.number(core, TableIndex(at)).number).collect();
        relief::expire_ids(&mut inner.kept_ids, shared.clock.wall().saturating_sub(parts.duplicate_window));
        Content { snapshot, numbers, ids: inner.kept_ids.clone() }
    };
    let content = content.encode();
    parts.log.write_checkpoint(position, &[&content])?;
    parts.inner.lock().checkpoint_bytes = content.len() as u64;
    parts.log.retire(dead)?;
    parts.inner.lock().usage.forget(dead);
    tracing::debug!(count = dead.len(), "segments freed");
    Ok(())
}

/// Writes the names of tables anew whose record is in a segment that goes: a lost checkpoint must not cost a name.
fn name_again(shared: &Arc<Shared<Disk>>, runtime: &Handle, dead: &[u64]) -> wh_log::Result<()> {
    let parts = &shared.store.0;
    let wall = shared.clock.wall();
    let named: Vec<(usize, u64)> = {
        let inner = parts.inner.lock();
        let going = |segment: Option<u64>| segment.is_some_and(|segment| dead.contains(&segment));
        let tables = inner.tables.iter().enumerate();
        tables.filter(|(_, named)| going(named.segment)).map(|(at, named)| (at, named.number)).collect()
    };
    for some in named.chunks(record::LIST) {
        let mut batch = Batch::default();
        {
            let inner = parts.inner.lock();
            for (_, number) in some {
                if let Some((tenant, table)) = inner.names.get(number) {
                    batch.push(record::TABLE, *number, 0, wall, |out| record::encode_table(out, tenant, table));
                }
            }
        }
        let places = batch.with(|records| runtime.block_on(parts.log.append_reserved(records)))?;
        let Position { segment, .. } = places.first().position();
        let mut inner = parts.inner.lock();
        for (at, _) in some {
            if let Some(named) = inner.tables.get_mut(*at) {
                named.segment = Some(segment);
            }
        }
    }
    Ok(())
}
