//! The history without consumers: live by one plain subscription a process, replay and what was missed by direct get
//! (decision D21). Nothing is created on the server.
//!
//! The ears put every message of every table into the [`ring`]; a partition's sequences are contiguous, so the ring knows
//! what is missing, and the [`mend`]er reads it from the history, or says that it is lost. A [`reader`] stands in the
//! ring; where the ring no longer has, or never had, what follows its place, it [`replay`]s the history first.

mod anchors;
mod archive;
mod bisect;
mod chains;
mod core;
mod eras;
mod mend;
mod message;
pub(crate) mod meters;
mod reader;
mod replay;
mod ring;
mod stored;
#[cfg(test)]
mod testing;
mod tracker;

use self::core::Core;
use super::{error, shared::Shared};
use crate::{Error, From, History, Kind, Result};
use mend::{End, Mender, Partitions};
use reader::Reader;
use ring::{Found, Ring, Seen};
use std::{sync::Arc, time::Duration};
use stored::StoredHistory;
use wh_nats::Subscription;
use wh_types::{BlockId, Cursor, Table, Tenant};

/// How long an answer of the history is waited for by a reader: longer than an election.
const READER_PATIENCE: Duration = Duration::from_secs(15);
/// And by who looks after what was missed, who comes again.
const MENDER_PATIENCE: Duration = Duration::ZERO;
/// How soon a block that was not found is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Hears every block that is stored and keeps the recent ones.
#[derive(Debug)]
pub(crate) struct Hub {
    shared: Arc<Shared>,
    core: Arc<Core<StoredHistory>>,
}

/// A stored block as it was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Its id.
    pub(crate) id: BlockId,
    /// Its rows; 0 for a probe.
    pub(crate) rows: u32,
}

/// The partitions' streams over the connection.
#[derive(Debug)]
struct Streams(Arc<Shared>);

impl Partitions for Streams {
    async fn end(&self, index: usize) -> Result<End> {
        let partition = &self.0.partitions[index];
        let answer = self.0.connection.api().stream_state(&partition.stream).await;
        let state = answer.map_err(|error| error::request("history", error))?;
        let created = stored::created(&state)?;
        partition.seen(created);
        Ok(End { created, last: state.last_seq, stored: state.last_ts })
    }
}

impl Hub {
    /// Begins to hear. Tasks run in the shared group until the shared stop.
    ///
    /// # Errors
    /// Denied, `NotFound`, Unavailable, Stopping.
    pub(crate) async fn start(shared: &Arc<Shared>) -> Result<Arc<Self>> {
        meters::describe();
        let options = &shared.options;
        let names = shared.partitions.iter().map(|partition| partition.stream.clone());
        let ring = Ring::new(names, options.ring_bytes, shared.clock().now());
        let history = |patience| StoredHistory::new(shared, patience);
        let (stop, clock) = (shared.stop.clone(), Arc::clone(&options.clock));
        let core = Arc::new(Core::new(ring, history(READER_PATIENCE), stop, clock, options.spec.clone()));
        let subscribed = shared.connection.subscribe(&core.subjects()).await;
        let ears = subscribed.map_err(|error| error::request("history", error))?;
        // what is stored after this is heard, or known to be missed
        shared.connection.round_trip().await.map_err(|error| error::request("history", error))?;
        let mut mender = Mender::new(&core, history(MENDER_PATIENCE), Streams(Arc::clone(shared)));
        mender.ask().await?;
        drop(shared.tasks.spawn("history/ears", hear(Arc::clone(&core), ears)));
        drop(shared.tasks.spawn("history/mender", mender.run()));
        drop(shared.tasks.spawn("history/watch", watch(Arc::clone(shared), Arc::clone(&core))));
        Ok(Arc::new(Self { shared: Arc::clone(shared), core }))
    }

    /// Follows one table (mq40–mq45).
    ///
    /// # Errors
    /// Unavailable, Stopping.
    pub(crate) async fn open(&self, tenant: &Tenant, table: &Table, from: From) -> Result<Box<dyn History>> {
        let index = self.shared.partition_of(tenant, table).index as usize;
        let position = self.core.ring.lock().partition(index).position();
        // what is stored by now is in front of the seam
        let end = self.end(index).await?;
        let End { created, last, .. } = end;
        let missing = {
            let mut ring = self.core.ring.lock();
            ring.saw(index, Seen { created, last, position }, self.core.now());
            ring.partition(index).lag() > 0
        };
        if missing {
            self.core.poke.notify_one();
        }
        let key = Shared::key(tenant, table);
        Ok(Box::new(Reader::new(&self.core, &key, index, end, from)))
    }

    /// A partition's end, which its leader must say.
    async fn end(&self, index: usize) -> Result<End> {
        let streams = Streams(Arc::clone(&self.shared));
        self.core.archive.persist(|| streams.end(index)).await
    }

    /// The block of a table at a partition's sequence, from the ring or the history, awaited for `options.lookup_wait`
    /// (decision D4). `None` when it is in neither, or the cursor is of another epoch.
    ///
    /// # Errors
    /// Unavailable, Stopping.
    pub(crate) async fn look_up(&self, tenant: &Tenant, table: &Table, at: Cursor) -> Result<Option<Looked>> {
        let key = Shared::key(tenant, table);
        let subject = self.core.subject(&key);
        let mut looked = false;
        let search = async {
            loop {
                let (found, eras) = {
                    let ring = self.core.ring.lock();
                    (ring.find(&key, at), ring.eras().clone())
                };
                if let Some(Found { id, rows }) = found {
                    return Ok(Some(Looked { id, rows }));
                }
                if !eras.knows(at.epoch) {
                    return Ok(None);
                }
                let stored = replay::look_up(&self.core.archive, &subject, &eras, at, self.core.now()).await?;
                if let Some(block) = stored.and_then(|stored| stored.message).and_then(|message| message.block) {
                    return Ok(Some(Looked { id: block.id, rows: block.rows }));
                }
                looked = true;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        match tokio::time::timeout(self.shared.options.lookup_wait, search).await {
            Ok(found) => found,
            Err(_) if looked => Ok(None),
            Err(_) => Err(Error::new("stored rows", Kind::Unavailable)),
        }
    }
}

/// Hears until the stop.
async fn hear(core: Arc<Core<StoredHistory>>, mut ears: Subscription) {
    loop {
        let message = tokio::select! {
            biased;
            () = core.stop.wait() => return,
            message = ears.next() => message,
        };
        let Some(message) = message else { return };
        let tail = core.tail(message.subject());
        let read = tail.and_then(|tail| message::read(tail, message.headers_first(), message.body()));
        if let Some(message) = read {
            core.hear(message);
        }
    }
}

/// Watches the connection for what may have been missed over it, until the stop.
async fn watch(shared: Arc<Shared>, core: Arc<Core<StoredHistory>>) {
    let mut state = shared.connection.watch();
    let mut known = None;
    loop {
        let now = {
            let state = state.borrow_and_update();
            state.connected.then_some((state.generation, state.slow_consumers))
        };
        if now.is_some() && now != known {
            known = now;
            core.suspect();
        }
        tokio::select! {
            biased;
            () = core.stop.wait() => return,
            changed = state.changed() => if changed.is_err() { return },
        }
    }
}
