//! Waits for submitted appends, in the order of submission, and finishes what waits for them. Where the disk was full,
//! room is made and they are written again.

use super::{Disk, batch::Batch, error::kind_of, relief, store::Parts};
use crate::{
    core::TableIndex,
    local::{Finished, Pending, Shared},
};
use futures::FutureExt as _;
use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{runtime::Handle, sync::mpsc};
use wh_log::{Place, Places};
use wh_types::{Block, Mono, Timestamp};

/// How long after a vain look for room a full disk is taken for full without another: as long as nothing was settled
/// since, and in any case.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(50));

/// How often one append may have room made for it: others may be quicker to take it.
const TRIES: u8 = 3;

/// An append that was submitted.
#[derive(Debug)]
pub(super) struct Job {
    /// Tables whose names are its first records.
    pub(super) tables: Vec<TableIndex>,
    pub(super) append: Append,
    /// What is written.
    pub(super) batch: Batch,
    /// The blocks whose records follow, for the cache.
    pub(super) blocks: Vec<(Timestamp, Block)>,
    pub(super) pending: Pending,
    /// How often the disk was full and room was looked for.
    tries: u8,
}

/// How far an append is.
#[derive(Debug)]
pub(super) enum Append {
    /// There is nothing to write.
    Nothing,
    Waiting(wh_log::Pending),
    Ended(wh_log::Result<Places>),
}

impl Job {
    pub(super) fn new(pending: Pending) -> Self {
        let (tables, blocks) = (Vec::new(), Vec::new());
        Self { tables, append: Append::Nothing, batch: Batch::default(), blocks, pending, tries: 0 }
    }

    async fn ended(&mut self) {
        if let Append::Waiting(append) = &mut self.append {
            self.append = Append::Ended(append.await);
        }
    }

    /// Whether it ended by now.
    fn has_ended(&mut self) -> bool {
        self.ended().now_or_never().is_some()
    }

    fn found_it_full(&self) -> bool {
        matches!(&self.append, Append::Ended(Err(error)) if error.kind() == wh_log::Kind::NoSpace)
    }
}

/// A finished append. The places are held until the state knows of them: the log's `applied` waits for that.
struct Done {
    finished: Finished<Place>,
    _held: Option<Places>,
}

/// A look for room that found none.
#[derive(Debug)]
struct Vain {
    at: Mono,
    /// How many blocks had ever been settled then.
    settled: u64,
}

impl Vain {
    /// Whether another would find none either, as far as can be told.
    fn still(&self, shared: &Shared<Disk>, now: Mono) -> bool {
        let since = now.saturating_duration_since(self.at);
        since < LOOK_AGAIN.1 || (since < LOOK_AGAIN.0 && shared.lock().core.settled_ever() == self.settled)
    }
}

/// Runs until the queue closes and everything submitted is finished, or the queue is gone.
pub(super) async fn run(shared: Weak<Shared<Disk>>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let mut waiting = VecDeque::new();
    let mut vain: Option<Vain> = None;
    loop {
        if waiting.is_empty() {
            waiting.extend(jobs.recv().await);
        }
        let Some(first) = waiting.front_mut() else { return };
        first.ended().await;
        // held for a moment only: a queue that nobody has any more ends, and nobody waits for it
        let Some(shared) = shared.upgrade() else { return };
        let now = shared.clock.now();
        // the rest of the group is ready too: one lock for all of it
        while let Ok(job) = jobs.try_recv() {
            waiting.push_back(job);
        }
        let mut done = Vec::new();
        let hopeless = vain.as_ref().is_some_and(|vain| vain.still(&shared, now));
        while let Some(job) = waiting.front_mut() {
            if !job.has_ended() || (job.found_it_full() && job.tries < TRIES && !hopeless) {
                break;
            }
            done.extend(waiting.pop_front().map(|job| finish(&shared.store.0, job, now)));
        }
        let (finished, held): (Vec<_>, Vec<_>) = done.into_iter().map(|done| (done.finished, done._held)).unzip();
        shared.finish(finished);
        drop(held);
        if waiting.front().is_some_and(Job::found_it_full) {
            let freed = make_room(&shared).await;
            vain = (!freed).then(|| Vain { at: shared.clock.now(), settled: shared.lock().core.settled_ever() });
            write_again(&shared.store.0, &mut waiting, freed).await;
        }
    }
}

/// Gives up history for room, away from the runtime's own threads; says whether there is some now.
async fn make_room(shared: &Arc<Shared<Disk>>) -> bool {
    let (shared, runtime) = (Arc::clone(shared), Handle::current());
    let look = move || {
        let _freeing = shared.store.0.freeing.lock();
        // the upkeep may have been quicker
        if shared.store.0.log.stats().full { relief::run(&shared, &runtime) } else { Ok(true) }
    };
    match tokio::task::spawn_blocking(look).await {
        Ok(Ok(freed)) => freed,
        Ok(Err(error)) => {
            tracing::warn!(%error, "no room could be made on the full disk");
            false
        }
        Err(error) => {
            tracing::error!(%error, "making room on the full disk failed");
            false
        }
    }
}

/// Submits what found the disk full once more, in its order; `freed`: it has a chance. Nothing else was stored of it.
async fn write_again(parts: &Parts, waiting: &mut VecDeque<Job>, freed: bool) {
    for job in waiting {
        if job.tries >= TRIES || !job.has_ended() || !job.found_it_full() {
            continue;
        }
        job.tries += 1;
        if !freed {
            job.tries = TRIES;
            continue;
        }
        let bytes = u32::try_from(job.batch.bytes()).unwrap_or(u32::MAX);
        let again = match parts.log.room(bytes).await {
            Ok(room) => job.batch.with(|records| parts.log.submit(room, records)),
            Err(error) => Err(error),
        };
        job.append = match again {
            Ok(append) => Append::Waiting(append),
            Err(error) => Append::Ended(Err(error)),
        };
    }
}

fn finish(parts: &Parts, job: Job, now: Mono) -> Done {
    let Job { tables, append, blocks, pending, .. } = job;
    let places = match append {
        Append::Ended(Ok(places)) => Some(places),
        // it is finished only once it ended
        Append::Nothing | Append::Waiting(_) => None,
        Append::Ended(Err(error)) => {
            if let Some(failed) = parts.inner.lock().failed.note(1, now) {
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
