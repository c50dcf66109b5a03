//! What the loop starts: each act in a future of its own, whose end is an event.

use super::{
    note::Note,
    run::{Event, Loop, Task},
    state::Freed,
    step::Command,
    view,
};
use crate::{
    unit::{Orders, Terms, Wish},
    worker::spawn_unit,
};
use futures::FutureExt;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use tracing::{debug, info, warn};
use wh_coord::{Claim, Lease, Leases};
use wh_mq::{Error, Unit};
use wh_types::{Class, Mono};

/// How long the membership may take to end.
const RESIGN_WITHIN: Duration = Duration::from_secs(5);

impl Loop {
    pub(super) fn act(&mut self, command: Command, now: Mono) {
        match command {
            Command::Join(slots) => {
                let leases = self.leases.clone();
                self.start(async move { Event::Claimed(join(&*leases, slots).await) });
            }
            Command::Tell(note) => self.tell(note),
            Command::FreeOrphan(unit) => {
                let broker = self.shared.parts.broker.clone();
                self.start(async move { Event::Freed(unit, freed(unit, broker.release_orphan(unit).await)) });
            }
            Command::Take { unit, orphan } => self.take(unit, orphan),
            Command::HandOver(unit) => {
                info!(%unit, "handing unit {unit} over");
                self.order(unit, Wish::HandOver, now);
            }
            Command::GiveUp(unit) => self.order(unit, Wish::GiveUp, now),
            Command::Stop(unit) => self.order(unit, Wish::Stop, now),
            Command::Clear(slot) => {
                let leases = self.leases.clone();
                self.start(async move {
                    if let Ok(key) = view::key(slot)
                        && let Err(error) = leases.clear(&key).await
                    {
                        debug!(slot, %error, "clearing slot {slot} failed");
                    }
                    Event::Cleared
                });
            }
        }
    }

    fn start(&mut self, act: impl Future<Output = Event> + Send + 'static) {
        self.acts.push(act.boxed());
    }

    fn order(&mut self, unit: Unit, wish: Wish, now: Mono) {
        if let Some(task) = self.tasks.get_mut(&unit) {
            task.leaving.get_or_insert(now);
            task.orders.send_modify(|orders| orders.wish(wish));
        }
    }

    fn tell(&mut self, note: Note) {
        let Some(membership) = &self.membership else { return };
        let (leases, lease) = (self.leases.clone(), membership.lease.clone());
        self.said += 1;
        let said = self.said;
        self.start(async move {
            match leases.renew(&lease, &note.text()).await {
                Ok(()) => Event::Told(said, note),
                Err(error) => {
                    // the term is over, or about to be
                    debug!(%error, "saying which units are ours failed");
                    Event::Told(0, note)
                }
            }
        });
    }

    fn take(&mut self, unit: Unit, orphan: bool) {
        let (orders, receiver) = watch::channel(Orders::work(self.budget));
        let term = self.membership.as_ref().map(|membership| membership.lease.term());
        let end = spawn_unit(&self.shared, unit, Terms { orders: receiver, term, orphan });
        self.tasks.insert(unit, Task { orders, leaving: None });
        info!(%unit, orphan, "taking unit {unit}");
        self.start(async move { Event::Ended(unit, end.await) });
    }

    /// Starts the reads that are due.
    pub(super) fn read_and_survey(&mut self) {
        let now = self.now();
        if self.stopping {
            return;
        }
        if !self.reading && now >= self.next_read {
            self.reading = true;
            self.last_read = now;
            let (leases, prefix) = (self.leases.clone(), self.prefix.clone());
            self.start(async move { Event::Read(now, leases.observe(&prefix).await) });
        }
        if !self.surveying && now >= self.next_survey {
            self.surveying = true;
            let (broker, lowest) = (self.shared.parts.broker.clone(), self.claims.is_lowest());
            self.start(async move {
                let unowned = if lowest { broker.unowned().await.ok() } else { None };
                Event::Surveyed(unowned, broker.extra_units().await.ok())
            });
        }
    }

    /// Ends the membership, as the last thing.
    pub(super) async fn leave(&mut self) {
        // what is still under way is not waited for
        self.acts.clear();
        let Some(membership) = self.membership.take().filter(|_| self.claims.may_resign()) else { return };
        let Some(lease) = Arc::into_inner(membership.lease) else { return };
        match tokio::time::timeout(RESIGN_WITHIN, self.leases.resign(lease)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%error, "resigning failed; the lease lapses"),
            Err(_) => debug!("resigning took too long; the lease lapses"),
        }
    }
}

/// The first slot that can be had.
async fn join(leases: &dyn Leases, slots: Vec<(u32, Note)>) -> Option<(u32, Note, Lease)> {
    for (slot, note) in slots {
        let claim = match view::key(slot) {
            Ok(key) => leases.claim(&key, &note.text()).await,
            Err(error) => Err(error),
        };
        match claim {
            Ok(Claim::Won { lease, .. }) => return Some((slot, note, lease)),
            Ok(Claim::Held(_)) => {}
            Err(error) => {
                warn!(slot, %error, "claiming membership failed, retrying");
                return None;
            }
        }
    }
    None
}

fn freed(unit: Unit, outcome: Result<(), Error>) -> Freed {
    match outcome {
        Ok(()) => Freed::Due,
        Err(error) if error.class() == Class::Conflict => Freed::Held,
        Err(error) => {
            warn!(%unit, %error, "the blocks of unit {unit}, whose owner is gone, could not be made due");
            Freed::Failed
        }
    }
}
