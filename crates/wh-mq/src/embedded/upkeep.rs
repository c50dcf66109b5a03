//! What the queue does by itself, in small steps: writes settled ranges down, drops old history, frees segments.

use super::{Disk, checkpoint::Content};
use crate::local::Shared;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use wh_types::Stop;

/// Runs until the queue closes or is gone.
pub(super) async fn run(shared: Weak<Shared<Disk>>, stop: Stop, every: Duration) {
    loop {
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = tokio::time::sleep(every) => {}
        }
        let Some(shared) = shared.upgrade() else { return };
        let step = tokio::task::spawn_blocking(move || step(&shared)).await;
        if let Err(error) = step {
            tracing::error!(%error, "a step of the queue's upkeep failed");
        }
    }
}

fn step(shared: &Arc<Shared<Disk>>) {
    let parts = &shared.store.0;
    let wall = shared.clock.wall();
    {
        let now = shared.now();
        let mut state = shared.lock();
        parts.write_settled(&mut state.core, wall);
        shared.sweep(&mut state, now);
    }
    let segments = parts.log.segments();
    let ids_before = wall.saturating_sub(parts.duplicate_window);
    let dead = parts.inner.lock().usage.dead(&segments, ids_before);
    if !dead.is_empty()
        && let Err(error) = retire(shared, &dead)
    {
        tracing::warn!(%error, "segments that are not needed could not be freed");
    }
}

/// Frees segments, after what was learned from them is in the checkpoint.
fn retire(shared: &Arc<Shared<Disk>>, dead: &[u64]) -> wh_log::Result<()> {
    let parts = &shared.store.0;
    // before the snapshot: what is applied by now is in it
    let position = parts.log.applied();
    let content = {
        let state = shared.lock();
        let snapshot = state.core.snapshot();
        let mut inner = parts.inner.lock();
        let core = &state.core;
        let count = u32::try_from(snapshot.tables.len()).unwrap_or(u32::MAX);
        let numbers = (0..count).map(|at| inner.number(core, crate::core::TableIndex(at)).number).collect();
        Content { snapshot, numbers }
    };
    parts.log.write_checkpoint(position, &[&content.encode()])?;
    let dead: Vec<u64> = dead.iter().copied().filter(|segment| *segment < position.segment).collect();
    parts.log.retire(&dead)?;
    parts.inner.lock().usage.forget(&dead);
    tracing::debug!(count = dead.len(), "segments freed");
    Ok(())
}
