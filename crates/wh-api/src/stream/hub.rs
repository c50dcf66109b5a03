//! One follower a table, however many streams read it: each block is taken and decoded once.

use super::{
    frame::{self, Frames},
    ring::{Read, Ring},
};
use crate::{codes, error::ApiError, metrics::Meters};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;
use wh_mq::{Broker, From, Happening, History};
use wh_types::{Backoff, Cursor, Entropy, Stop, Table, Tasks, Tenant};

const DELAYS: Backoff = Backoff::full_jitter(Duration::from_millis(200), Duration::from_secs(5));
/// Most time for a table's history to open.
const OPENING: Duration = Duration::from_secs(5);

/// Every table that is being followed.
#[derive(Debug)]
pub(crate) struct Hub {
    broker: Arc<dyn Broker>,
    entropy: Arc<dyn Entropy>,
    meters: Arc<Meters>,
    tasks: Tasks,
    stop: Stop,
    bytes: Arc<Bytes>,
    followed: Mutex<HashMap<(Tenant, Table), Arc<Channel>>>,
}

/// Bytes of recent events that are kept for slower streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of one table.
    pub(crate) table: usize,
    /// Of all together.
    pub(crate) all: usize,
}

/// Beyond the bound of all together a table keeps this much.
const SCARCE: usize = 64 << 10;

#[derive(Debug)]
struct Bytes {
    bounds: Bounds,
    held: AtomicUsize,
}

impl Bytes {
    /// What a table may keep now.
    fn most(&self) -> usize {
        let scarce = self.held.load(Ordering::Relaxed) > self.bounds.all;
        if scarce { self.bounds.table.min(SCARCE) } else { self.bounds.table }
    }

    fn changed(&self, before: usize, after: usize) {
        self.held.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }
}

/// How far a table's follower is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The history is being opened.
    Opening,
    /// Events up to this number are there.
    Live(u64),
    /// No more come.
    Ended,
}

#[derive(Debug)]
struct Channel {
    ring: Mutex<Ring>,
    bytes: Arc<Bytes>,
    phase: watch::Sender<Phase>,
}

/// One stream's way through a table's events.
#[derive(Debug)]
pub(super) struct Reader {
    channel: Arc<Channel>,
    phase: watch::Receiver<Phase>,
    at: u64,
    meters: Arc<Meters>,
}

impl Hub {
    pub(crate) fn new(
        broker: Arc<dyn Broker>,
        entropy: Arc<dyn Entropy>,
        meters: Arc<Meters>,
        tasks: Tasks,
        stop: Stop,
        bounds: Bounds,
    ) -> Self {
        let bytes = Arc::new(Bytes { bounds, held: AtomicUsize::new(0) });
        Self { broker, entropy, meters, tasks, stop, bytes, followed: Mutex::default() }
    }

    /// Reads a table's events from now on. Returns once they are live.
    pub(super) async fn read(self: &Arc<Self>, tenant: &Tenant, table: &Table) -> Result<Reader, ApiError> {
        let (channel, mut phase) = {
            let mut followed = self.followed.lock();
            let channel = Arc::clone(followed.entry((tenant.clone(), table.clone())).or_insert_with(|| {
                let (ring, bytes) = (Mutex::new(Ring::new()), Arc::clone(&self.bytes));
                let channel = Arc::new(Channel { ring, bytes, phase: watch::channel(Phase::Opening).0 });
                let follow = Arc::clone(self).follow(tenant.clone(), table.clone(), Arc::clone(&channel));
                drop(self.tasks.spawn("follow", follow));
                channel
            }));
            // under the lock: the follower leaves under it too, and only while nobody listens
            let phase = channel.phase.subscribe();
            (channel, phase)
        };
        let opened = phase.wait_for(|phase| *phase != Phase::Opening);
        let live = tokio::time::timeout(OPENING, opened)
            .await
            .is_ok_and(|opened| opened.is_ok_and(|phase| *phase != Phase::Ended));
        if !live {
            return Err(ApiError::new(&codes::STREAM_UNAVAILABLE, "the live stream cannot be opened now"));
        }
        let at = channel.ring.lock().head();
        Ok(Reader { channel, phase, at, meters: Arc::clone(&self.meters) })
    }

    /// Follows a table until nobody reads it, the queue closes, or the stop.
    async fn follow(self: Arc<Self>, tenant: Tenant, table: Table, channel: Arc<Channel>) {
        let mut from = From::Now;
        let mut failures = 0;
        loop {
            let opened = tokio::select! {
                biased;
                () = self.stop.wait() => break,
                opened = self.broker.history(&tenant, &table, from) => opened,
            };
            match opened {
                Ok(history) => {
                    // begun from now, what came while there was no history is not known
                    if failures > 0 && from == From::Now {
                        channel.push(frame::gap_between(None, None));
                    }
                    channel.go_live();
                    failures = 0;
                    match self.copy(history, &channel, &tenant, &table).await {
                        Some(last) => from = last.map_or(from, From::After),
                        None => return,
                    }
                }
                Err(error) => tracing::warn!(%table, %error, "the history of {table} cannot be opened, retrying"),
            }
            failures += 1;
            if self.stop.given() || self.leave(&tenant, &table, &channel) {
                return;
            }
            tokio::select! {
                () = self.stop.wait() => break,
                () = tokio::time::sleep(DELAYS.delay(failures, &*self.entropy)) => {}
            }
        }
        self.end(&tenant, &table, &channel);
    }

    /// Copies blocks into the ring. `Some`: the history failed, after this block. `None`: the following is over.
    async fn copy(
        &self,
        mut history: Box<dyn History>,
        channel: &Channel,
        tenant: &Tenant,
        table: &Table,
    ) -> Option<Option<Cursor>> {
        let mut last = None;
        loop {
            let next = tokio::select! {
                biased;
                () = self.stop.wait() => {
                    self.end(tenant, table, channel);
                    return None;
                }
                () = channel.phase.closed() => {
                    if self.leave(tenant, table, channel) {
                        return None;
                    }
                    continue;
                }
                next = history.next() => next,
            };
            match next {
                Ok(Some(Happening::Block(cursor, block))) => {
                    let unreadable = || {
                        tracing::error!(%cursor, %table, "block {cursor} cannot be read, streams are told of a gap");
                        frame::gap_between(None, Some(&cursor.to_string()))
                    };
                    channel.push(frame::rows(cursor, &block).unwrap_or_else(unreadable));
                    last = Some(cursor);
                }
                Ok(Some(Happening::Gap(gap))) => channel.push(frame::gap(gap)),
                Ok(Some(Happening::Live)) => {}
                Ok(None) => {
                    self.end(tenant, table, channel);
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%table, %error, "the history of {table} failed, opening it again");
                    return Some(last);
                }
            }
        }
    }

    /// Ends the following if nobody reads.
    fn leave(&self, tenant: &Tenant, table: &Table, channel: &Channel) -> bool {
        let mut followed = self.followed.lock();
        let nobody = channel.phase.receiver_count() == 0;
        if nobody {
            followed.remove(&(tenant.clone(), table.clone()));
        }
        nobody
    }

    /// No more events come: everybody is told, and whoever comes later starts anew.
    fn end(&self, tenant: &Tenant, table: &Table, channel: &Channel) {
        self.followed.lock().remove(&(tenant.clone(), table.clone()));
        channel.phase.send_replace(Phase::Ended);
    }

    /// How many tables are followed.
    #[cfg(test)]
    pub(crate) fn followed(&self) -> usize {
        self.followed.lock().len()
    }
}

impl Channel {
    fn push(&self, frames: Frames) {
        let head = {
            let mut ring = self.ring.lock();
            let before = ring.bytes();
            let head = ring.push(frames, self.bytes.most());
            self.bytes.changed(before, ring.bytes());
            head
        };
        self.phase.send_replace(Phase::Live(head));
    }

    fn go_live(&self) {
        let head = self.ring.lock().head();
        self.phase.send_if_modified(|phase| {
            let opening = *phase == Phase::Opening;
            if opening {
                *phase = Phase::Live(head);
            }
            opening
        });
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.bytes.changed(self.ring.get_mut().bytes(), 0);
    }
}

impl Reader {
    /// The next events, waiting for them; `None` when no more come.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn next(&mut self) -> Option<Frames> {
        loop {
            let phase = *self.phase.borrow_and_update();
            let read = self.channel.ring.lock().read(&mut self.at);
            match read {
                Read::Frames(frames) => return Some(frames),
                Read::Lost { sets, next } => {
                    self.meters.events.dropped.increment(sets);
                    return Some(frame::gap_between(None, next.as_deref()));
                }
                Read::Nothing if phase == Phase::Ended => return None,
                Read::Nothing => self.phase.changed().await.ok()?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_mq::{Allowance, sim};
    use wh_types::{Epoch, SeededEntropy, SystemClock};

    fn hub() -> Arc<Hub> {
        let seconds = Duration::from_secs;
        let broker = sim::Broker::new(sim::Options {
            epoch: Epoch(1),
            shards: 1,
            ack_wait: seconds(60),
            duplicate_window: seconds(120),
            default_allowance: Allowance { bytes: 1 << 20, table_bytes: 1 << 20, history: seconds(60) },
            dead_letter_share: 10,
            clock: Arc::new(SystemClock),
        });
        let (entropy, meters) = (Arc::new(SeededEntropy::new(1)), Arc::new(Meters::new()));
        Arc::new(Hub::new(
            Arc::new(broker),
            entropy,
            meters,
            Tasks::new(),
            Stop::new(),
            Bounds { table: 1 << 20, all: 200 << 10 },
        ))
    }

    #[tokio::test(start_paused = true)]
    async fn a_table_is_followed_once_and_only_while_somebody_reads() {
        let hub = hub();
        let (tenant, table) = (Tenant::default(), Table::new("t").unwrap());
        for _ in 0..3 {
            let readers = futures::future::join_all((0..20).map(|_| hub.read(&tenant, &table))).await;
            assert_eq!((hub.followed(), hub.tasks.len()), (1, 1));
            let first = Frames { bytes: vec![0; 10 << 10].into(), count: 1, cursor: None, gap: false };
            let channel = Arc::clone(&readers[0].as_ref().unwrap().channel);
            for _ in 0..30 {
                channel.push(first.clone());
            }
            assert!(channel.ring.lock().bytes() <= 220 << 10, "the bound of all holds for one too");
            drop((readers, channel));
            while !hub.tasks.is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!((hub.followed(), hub.bytes.held.load(Ordering::Relaxed)), (0, 0));
        }
    }
}
