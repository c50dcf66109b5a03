//! Waits for submitted appends, in the order of submission, and finishes what waits for them.

use super::{Disk, error::kind_of, store::Parts};
use crate::{
    core::TableIndex,
    local::{Finished, Pending, Shared},
};
use futures::FutureExt as _;
use std::sync::Weak;
use tokio::sync::mpsc;
use wh_log::{Place, Places};
use wh_types::{Block, Mono, Timestamp};

/// An append that was submitted.
#[derive(Debug)]
pub(super) struct Job {
    /// Tables whose names are its first records.
    pub(super) tables: Vec<TableIndex>,
    /// `None`: there was nothing to write.
    pub(super) append: Option<wh_log::Pending>,
    /// The blocks whose records follow, for the cache.
    pub(super) blocks: Vec<(Timestamp, Block)>,
    pub(super) pending: Pending,
}

/// A finished append. The places are held until the state knows of them: the log's `applied` waits for that.
struct Done {
    finished: Finished<Place>,
    _held: Option<Places>,
}

/// Runs until the queue closes and everything submitted is finished, or the queue is gone.
pub(super) async fn run(shared: Weak<Shared<Disk>>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let mut next = jobs.recv().await;
    while let Some(mut job) = next.take() {
        let outcome = match job.append.take() {
            Some(append) => append.await.map(Some),
            None => Ok(None),
        };
        // held for a moment only: a queue that nobody has any more ends, and nobody waits for it
        let Some(shared) = shared.upgrade() else { return };
        let parts = &shared.store.0;
        let now = shared.clock.now();
        let mut done = vec![finish(parts, job, outcome, now)];
        // the rest of the group is ready too: one lock for all of it
        while let Ok(mut job) = jobs.try_recv() {
            let outcome = match job.append.take() {
                Some(mut append) => match (&mut append).now_or_never() {
                    Some(outcome) => outcome.map(Some),
                    None => {
                        job.append = Some(append);
                        next = Some(job);
                        break;
                    }
                },
                None => Ok(None),
            };
            done.push(finish(parts, job, outcome, now));
        }
        let (finished, held): (Vec<_>, Vec<_>) = done.into_iter().map(|done| (done.finished, done._held)).unzip();
        shared.finish(finished);
        drop(held);
        drop(shared);
        if next.is_none() {
            next = jobs.recv().await;
        }
    }
}

fn finish(parts: &Parts, job: Job, outcome: wh_log::Result<Option<Places>>, now: Mono) -> Done {
    let Job { tables, blocks, pending, .. } = job;
    let places = match outcome {
        Ok(places) => places,
        Err(error) => {
            if let Some(failed) = parts.inner.lock().trouble.failed(now) {
                tracing::warn!(%error, failed, "{failed} appends to the queue's log failed, the last with: {error}");
            }
            return Done { finished: (pending, Err(kind_of(&error))), _held: None };
        }
    };
    let bodies: Vec<Place> = places.iter().flat_map(Places::iter).skip(tables.len()).collect();
    let mut inner = parts.inner.lock();
    let segment = places.as_ref().map(|places| places.first().segment);
    for at in tables {
        if let Some(named) = inner.tables.get_mut(at.0 as usize) {
            named.segment = segment;
        }
    }
    for place in &bodies {
        inner.usage.add(*place);
    }
    for ((stored, block), place) in blocks.into_iter().zip(&bodies) {
        inner.usage.note(*place, stored);
        if block.rows > 0 {
            inner.cache.insert(*place, block);
        }
    }
    Done { finished: (pending, Ok(bodies)), _held: places }
}
