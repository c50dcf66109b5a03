//! The loop that acts on what `step` decides: it reads the members, claims, tells, binds and hands over units.
//!
//! Nothing that a store may take its time for is awaited in the loop, so a slow one delays no handover and no stop.

use super::{
    note::Note,
    state::{Claims, Freed},
    step::step,
    view::{self, MEMBERS, Members, View},
};
use crate::{
    metrics,
    unit::Orders,
    worker::{Shared, UnitEnd, never, share},
};
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;
use tracing::{debug, error, info, warn};
use wh_coord::{Key, Lease, Leases, Seen};
use wh_mq::{Budget, Error, Unit};
use wh_types::{Mono, Stop};

/// Two reads that were hinted at are so far apart.
const HINT_SPACING: Duration = Duration::from_millis(20);
/// A read that failed is tried again so soon.
const READ_AGAIN: Duration = Duration::from_millis(250);
/// A step that is due by time alone comes no sooner than this after the last.
const STEP_SPACING: Duration = Duration::from_millis(10);
/// A unit that another says to have is taken anyway so long after the handover's bound.
const BEYOND_HANDOVER: Duration = Duration::from_secs(30);

/// Times of the claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimOptions {
    /// How long a lease lasts: a read that is older is not acted on.
    pub lease: Duration,
    /// How often the members are read when nothing is heard of changes.
    pub tick: Duration,
    /// How often the lowest member asks for units without an owner, and every member for units beyond the configured.
    pub survey: Duration,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        Self { lease: Duration::from_secs(15), tick: Duration::from_secs(2), survey: Duration::from_secs(15) }
    }
}

/// What happened.
pub(super) enum Event {
    Read(Mono, wh_coord::Result<BTreeMap<Key, Seen>>),
    Claimed(Option<(u32, Note, Lease)>),
    Told(u64, Note),
    Cleared,
    Freed(Unit, Freed),
    Ended(Unit, UnitEnd),
    Surveyed(Option<BTreeSet<Unit>>, Option<BTreeSet<Unit>>),
}

/// A unit that has a task.
pub(super) struct Task {
    pub(super) orders: watch::Sender<Orders>,
    /// When it was asked to end.
    pub(super) leaving: Option<Mono>,
}

pub(super) struct Membership {
    pub(super) slot: u32,
    pub(super) lease: Arc<Lease>,
}

pub(super) struct Loop {
    pub(super) shared: Arc<Shared>,
    pub(super) leases: Arc<dyn Leases>,
    pub(super) options: ClaimOptions,
    pub(super) prefix: Key,
    pub(super) claims: Claims,
    pub(super) members: Option<(Mono, Members)>,
    pub(super) membership: Option<Membership>,
    pub(super) tasks: BTreeMap<Unit, Task>,
    pub(super) acts: FuturesUnordered<BoxFuture<'static, Event>>,
    pub(super) budget: Budget,
    pub(super) reading: bool,
    pub(super) next_read: Mono,
    pub(super) last_read: Mono,
    /// No slot was to be had: the next read comes before the next try.
    pub(super) joinless: bool,
    pub(super) surveying: bool,
    pub(super) next_survey: Mono,
    /// Counts what was said, so that late answers count for nothing.
    pub(super) said: u64,
    pub(super) stored: u64,
    pub(super) stopping: bool,
    pub(super) outcome: Result<(), Error>,
}

/// Works on this process's share of the units until `stop` is given.
pub(crate) async fn run(
    shared: Arc<Shared>,
    leases: Arc<dyn Leases>,
    options: ClaimOptions,
    stop: Stop,
) -> Result<(), Error> {
    let bug = |error: wh_coord::Error| {
        Error::new("claim", wh_mq::Kind::Bug("a key of ours is none".into())).with_source(error)
    };
    let prefix = Key::new(MEMBERS).map_err(bug)?;
    let now = shared.parts.clock.now();
    let wait = shared.options.handover_bound + BEYOND_HANDOVER;
    let claims = Claims::new(leases.session(), shared.parts.broker.units(), wait);
    let all = Loop {
        budget: share(&shared.options, 1),
        shared,
        leases,
        options,
        prefix,
        claims,
        members: None,
        membership: None,
        tasks: BTreeMap::new(),
        acts: FuturesUnordered::new(),
        reading: false,
        next_read: now,
        last_read: now,
        joinless: false,
        surveying: false,
        next_survey: now,
        said: 0,
        stored: 0,
        stopping: false,
        outcome: Ok(()),
    };
    all.run(stop).await
}

impl Loop {
    async fn run(mut self, stop: Stop) -> Result<(), Error> {
        let mut changes = self.leases.changes();
        info!("ingest worker started, taking part in sharing out the units");
        loop {
            self.decide();
            if self.stopping && self.tasks.is_empty() {
                break;
            }
            let (now, wake) = (self.now(), self.wake());
            let term = self.membership.as_ref().map(|membership| membership.lease.term());
            tokio::select! {
                biased;
                () = stop.wait(), if !self.stopping => self.stopping = true,
                _ = async { match &term { Some(term) => term.ended().await, None => std::future::pending().await } } => {}
                Some(event) = self.acts.next() => self.happened(event),
                changed = changes.changed(), if !self.stopping => match changed {
                    Ok(()) => self.next_read = self.next_read.min(now.max(self.last_read + HINT_SPACING)),
                    // no hints any more: the ticks remain
                    Err(_) => changes = watch::Sender::new(0).subscribe(),
                },
                () = tokio::time::sleep_until(wake) => {}
            }
            self.read_and_survey();
        }
        self.leave().await;
        self.outcome
    }

    pub(super) fn now(&self) -> Mono {
        self.shared.parts.clock.now()
    }

    /// When something is due by time alone.
    fn wake(&self) -> Mono {
        let now = self.now();
        let read = if self.reading || self.stopping { never(now) } else { self.next_read };
        let survey = if self.surveying || self.stopping { never(now) } else { self.next_survey };
        let step = self.claims.wake().map_or_else(|| never(now), |at| at.max(now + STEP_SPACING));
        read.min(survey).min(step)
    }

    /// Steps, and starts what follows.
    fn decide(&mut self) {
        let now = self.now();
        let over = self.membership.as_ref().is_some_and(|membership| !membership.lease.term().is_live(now));
        if over {
            warn!("the membership is lost; its units are given up");
            metrics::unit_event("lost");
            self.membership = None;
            self.next_read = now;
        }
        let fresh = self.members.as_ref().filter(|(at, _)| now.saturating_duration_since(*at) < self.options.lease);
        let view = View {
            members: fresh.map(|(_, members)| members),
            slot: self.membership.as_ref().map(|membership| membership.slot),
            stopping: self.stopping,
        };
        let commands = step(&mut self.claims, now, &view);
        commands.into_iter().for_each(|command| self.act(command, now));
        metrics::membership(self.claims.owned(), self.claims.live());
        let budget = share(&self.shared.options, self.claims.shares());
        if budget != self.budget {
            self.budget = budget;
            self.tasks.values().for_each(|task| task.orders.send_modify(|orders| orders.budget = budget));
        }
    }

    fn happened(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Read(asked, read) => self.was_read(asked, read, now),
            Event::Claimed(Some((slot, note, lease))) => {
                info!(slot, "joined the members in slot {slot}");
                self.membership = Some(Membership { slot, lease: Arc::new(lease) });
                self.stored = self.said;
                self.claims.joined(Some((slot, note)), now);
            }
            Event::Claimed(None) => {
                self.joinless = true;
                self.next_read = self.next_read.min(now + READ_AGAIN);
            }
            Event::Told(said, note) if said > self.stored => {
                self.stored = said;
                self.claims.stored(note);
            }
            Event::Told(..) | Event::Cleared => {}
            Event::Freed(unit, freed) => {
                if freed == Freed::Due {
                    metrics::unit_event("reset");
                    info!(%unit, "the blocks of unit {unit}, whose owner is gone, are due");
                }
                self.claims.freed(unit, freed, now);
            }
            Event::Ended(unit, end) => self.ended(unit, end, now),
            Event::Surveyed(unowned, extras) => {
                self.surveying = false;
                self.next_survey = now + self.options.survey;
                if let Some(unowned) = unowned {
                    metrics::unowned(unowned.len());
                }
                if let Some(extras) = extras {
                    self.claims.set_extras(extras);
                }
            }
        }
    }

    fn was_read(&mut self, asked: Mono, read: wh_coord::Result<BTreeMap<Key, Seen>>, now: Mono) {
        self.reading = false;
        match read {
            Ok(seen) => {
                let members = view::members(seen, &self.prefix);
                // a lapse is acted on when it is due, after one more look
                let lapse = members.values().filter_map(|member| member.lapses).filter(|lapses| *lapses > now).min();
                self.next_read = (asked + self.options.tick).max(now).min(lapse.unwrap_or_else(|| never(now)));
                self.members = Some((asked, members));
                self.claims.was_read();
            }
            Err(error) => {
                debug!(%error, "reading the members failed");
                self.next_read = now + READ_AGAIN;
            }
        }
        if std::mem::take(&mut self.joinless) {
            self.claims.joined(None, now);
        }
    }

    fn ended(&mut self, unit: Unit, end: UnitEnd, now: Mono) {
        let task = self.tasks.remove(&unit);
        self.claims.ended(unit, end.in_order, now);
        let asked = task.and_then(|task| task.leaving);
        if let Some(asked) = asked {
            metrics::handed_over(now.saturating_duration_since(asked));
        }
        match end.outcome {
            // the queue closed under it
            Ok(()) if asked.is_none() => self.stopping = true,
            Ok(()) => {}
            Err(error) if self.claims.is_configured(unit) => {
                // One unit that ended for good ends the worker: a process that ingests half its share looks healthy.
                error!(%unit, %error, "unit {unit} cannot be worked on");
                self.outcome = Err(error);
                self.stopping = true;
            }
            Err(error) => info!(%unit, %error, "unit {unit}, which is not configured any more, is gone"),
        }
    }
}
