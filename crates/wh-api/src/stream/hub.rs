//! One follower a table, however many streams read it: each block is taken from the queue once.

pub(crate) use super::channel::Bounds;
use super::{
    block::Shown,
    channel::{Channel, Held, Phase},
    position::Origin,
    reader::Reader,
    replay::Replays,
    ring::Item,
    wish::Wish,
};
use crate::{codes, error::ApiError, metrics::Meters};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use wh_mq::{Broker, From, Gap, Happening, History};
use wh_types::{Backoff, Clock, Entropy, Stop, Table, Tasks, Tenant};

pub(super) const DELAYS: Backoff = Backoff::full_jitter(Duration::from_millis(200), Duration::from_secs(5));
/// Most time for a table's history to open.
const OPENING: Duration = Duration::from_secs(5);

/// Every table that is being followed.
#[derive(Debug)]
pub(crate) struct Hub {
    broker: Arc<dyn Broker>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) meters: Arc<Meters>,
    pub(super) replays: Replays,
    tasks: Tasks,
    stop: Stop,
    held: Arc<Held>,
    followed: Mutex<HashMap<(Tenant, Table), Arc<Channel>>>,
}

/// How a table's history was left.
enum Left {
    /// It failed; it is opened again there.
    Failed(From),
    /// The following is over.
    Over,
}

impl Hub {
    pub(crate) fn new(
        broker: Arc<dyn Broker>,
        (entropy, clock): (Arc<dyn Entropy>, Arc<dyn Clock>),
        meters: Arc<Meters>,
        tasks: Tasks,
        stop: Stop,
        bounds: Bounds,
    ) -> Self {
        let replays =
            Replays::new(Arc::clone(&broker), Arc::clone(&clock), tasks.clone(), stop.clone(), bounds.replays);
        let held = Arc::new(Held::new(bounds));
        Self { broker, entropy, clock, meters, replays, tasks, stop, held, followed: Mutex::default() }
    }

    /// Reads a table's events. Returns once what is stored from now on is sure to be among them.
    pub(super) async fn read(
        self: &Arc<Self>,
        tenant: &Tenant,
        table: &Table,
        origin: Origin,
        wish: Wish,
    ) -> Result<Reader, ApiError> {
        let (channel, mut phase) = {
            let mut followed = self.followed.lock();
            let channel = Arc::clone(followed.entry((tenant.clone(), table.clone())).or_insert_with(|| {
                let channel = Arc::new(Channel::new(Arc::clone(&self.held)));
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
        Ok(Reader::new(Arc::clone(self), tenant.clone(), table.clone(), (channel, phase), origin, wish))
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
                    // begun from now again, what came while there was no history is not known
                    if from == From::Now && *channel.phase.borrow() != Phase::Opening {
                        channel.push(Item::Gap(Gap { after: None, before: None }));
                    }
                    match self.copy(history, &channel, &tenant, &table, from).await {
                        Left::Failed(next) => from = next,
                        Left::Over => return,
                    }
                    failures = 0;
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

    /// Copies blocks into the ring.
    async fn copy(
        &self,
        mut history: Box<dyn History>,
        channel: &Channel,
        tenant: &Tenant,
        table: &Table,
        from: From,
    ) -> Left {
        let mut next = match (from, history.seam()) {
            (From::Now, Some(seam)) => From::After(seam),
            (from, _) => from,
        };
        channel.go_live(history.seam());
        loop {
            let happening = tokio::select! {
                biased;
                () = self.stop.wait() => {
                    self.end(tenant, table, channel);
                    return Left::Over;
                }
                () = channel.phase.closed() => {
                    if self.leave(tenant, table, channel) {
                        return Left::Over;
                    }
                    continue;
                }
                happening = history.next() => happening,
            };
            match happening {
                Ok(Some(Happening::Block(cursor, block))) => {
                    channel.push(Item::Block(Arc::new(Shown::new(cursor, block))));
                    next = From::After(cursor);
                }
                Ok(Some(Happening::Gap(gap))) => channel.push(Item::Gap(gap)),
                Ok(Some(Happening::Live)) => {}
                Ok(None) => {
                    self.end(tenant, table, channel);
                    return Left::Over;
                }
                Err(error) => {
                    tracing::warn!(%table, %error, "the history of {table} failed, opening it again");
                    return Left::Failed(next);
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

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
