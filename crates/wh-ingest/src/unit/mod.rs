//! One unit's loop: takes blocks, lets each table decide, runs its inserts, settles. Decides nothing about rows itself.

mod backing;
mod ending;
mod marks;
mod orders;
mod tables;

pub(crate) use orders::{Orders, Wish};

use crate::{
    marking::Marking,
    metrics::{self, Raised},
    table::{Load, TableRows},
    work::{Key, Running},
    worker::{Shared, never},
};
use backing::Paused;
use ending::Phase;
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use marks::Teller;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;
use tracing::error;
use wh_coord::Term;
use wh_mq::{Budget, Error, Feed, Settle, Unit};
use wh_types::{Mono, Table, Tenant};

/// How long after a takeover tables that come up flush their first batch at once (decision D14).
const FRESH: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Slot {
    rows: TableRows,
    timer: Option<Mono>,
    /// Its first batch is not waited for: its owner before us died.
    fresh: bool,
    /// Waits for a gate to open, not only for its timer.
    gated: bool,
    /// Fails while others of its unit do not: until when its gate is shut.
    failing_until: Option<Mono>,
    /// Its table is not there.
    missing: Option<Raised>,
    /// How far it is, as others are told.
    marking: Marking,
    _active: Raised,
    /// When parked rows were last logged, and how many were parked since.
    told: Option<Mono>,
    untold: u64,
}

pub(crate) struct UnitLoop {
    shared: Arc<Shared>,
    unit: Unit,
    budget: Budget,
    orders: watch::Receiver<Orders>,
    /// Nothing is begun once it is over.
    term: Option<Term>,
    phase: Phase,
    fresh_until: Option<Mono>,
    feed: Box<dyn Feed>,
    settle: Arc<dyn Settle>,
    tables: Vec<Option<Slot>>,
    free: Vec<Key>,
    by_name: HashMap<(Tenant, Table), Key>,
    timers: BTreeSet<(Mono, Key)>,
    held: Load,
    /// As the gauge has it.
    told_rows: usize,
    /// Slots with a `failing_until`.
    failing: usize,
    /// It takes nothing while its pool fails.
    paused: Option<Paused>,
    /// Most blocks that may be unsettled.
    max_unsettled: Option<usize>,
    /// Blocks given back until later: they count as unsettled.
    away: HashSet<u64>,
    near_stall: Option<Raised>,
    running: FuturesUnordered<Running>,
    acks: FuturesUnordered<BoxFuture<'static, ()>>,
    /// Set once no more comes: flush all, wait for no gate.
    flushing: bool,
    teller: Teller,
}

/// Under what a unit is worked on.
#[derive(Debug)]
pub(crate) struct Terms {
    /// What is wanted of it.
    pub(crate) orders: watch::Receiver<Orders>,
    /// The member's term, where there are others.
    pub(crate) term: Option<Term>,
    /// Its owner before us died.
    pub(crate) orphan: bool,
}

impl UnitLoop {
    pub(crate) fn new(shared: Arc<Shared>, feed: Box<dyn Feed>, terms: Terms) -> Self {
        let budget = terms.orders.borrow().budget;
        let fresh_until = terms.orphan.then(|| shared.parts.clock.now() + FRESH);
        Self {
            unit: feed.unit(),
            budget,
            orders: terms.orders,
            term: terms.term,
            phase: Phase::Working,
            fresh_until,
            settle: feed.settle(),
            max_unsettled: feed.max_unsettled(),
            teller: Teller::new(&shared, feed.began()),
            feed,
            tables: Vec::new(),
            free: Vec::new(),
            by_name: HashMap::new(),
            timers: BTreeSet::new(),
            held: Load::default(),
            told_rows: 0,
            failing: 0,
            paused: None,
            away: HashSet::new(),
            near_stall: None,
            running: FuturesUnordered::new(),
            acks: FuturesUnordered::new(),
            flushing: false,
            shared,
        }
    }

    /// Works until it is told otherwise, or delivery ends for good. Gives whether the unit was left in order.
    pub(crate) async fn run(mut self) -> (bool, Result<(), Error>) {
        let mut opens = pin!(self.shared.gates.opens());
        let every = (self.shared.options.ack_wait / 3).max(Duration::from_millis(10));
        let mut keep_alive = self.now() + every;
        let (mut delivering, mut outcome, mut heard) = (true, Ok(()), true);
        // orders may have come before the first look
        self.orders.mark_changed();
        while !self.is_done(delivering) {
            self.tell_held();
            self.resume();
            let now = self.now();
            let timer = self.timers.first().map_or_else(|| never(now), |(at, _)| *at);
            let deadline = self.phase.deadline().unwrap_or_else(|| never(now));
            let beat = self.teller.next_beat().unwrap_or_else(|| never(now));
            self.teller.begin_nothing(matches!(self.phase, Phase::Ending { .. }));
            tokio::select! {
                biased;
                changed = self.orders.changed(), if heard => {
                    heard = changed.is_ok();
                    if !self.obey(heard).await && delivering {
                        delivering = false;
                        self.flush();
                    }
                }
                () = tokio::time::sleep_until(deadline) => if self.out_of_time() {
                    break;
                },
                Some(ended) = self.running.next() => self.finished(ended),
                Some(()) = self.acks.next() => {}
                () = &mut opens => {
                    // listened for anew before anything is tried
                    opens.set(self.shared.gates.opens());
                    self.wake_gated();
                }
                () = tokio::time::sleep_until(timer) => self.fire(),
                () = tokio::time::sleep_until(beat) => self.beat(),
                floor = self.teller.floor() => self.teller.learn(floor),
                () = tokio::time::sleep_until(keep_alive) => {
                    keep_alive = self.now() + every;
                    self.keep_alive();
                }
                next = self.feed.next(), if delivering => match next {
                    Ok(Some(delivery)) => self.accept(delivery),
                    Ok(None) => {
                        delivering = false;
                        self.closed();
                    }
                    Err(error) => {
                        error!(unit = %self.unit, %error, "delivery of unit {} ended", self.unit);
                        delivering = false;
                        outcome = Err(error);
                        self.closed();
                    }
                },
            }
        }
        (self.end().await, outcome)
    }

    fn now(&self) -> Mono {
        self.shared.parts.clock.now()
    }

    /// Nothing comes any more, asked for or not.
    fn closed(&mut self) {
        if self.phase == Phase::Working {
            let (now, bound) = (self.now(), self.shared.options.stop_budget);
            self.phase = Phase::Draining { until: now + bound, ends: now + bound };
        }
        self.flush();
    }

    /// Whether an insert may begin: not once the term is over, whoever says so first.
    fn may_begin(&self, now: Mono) -> bool {
        !matches!(self.phase, Phase::Ending { .. }) && self.term.as_ref().is_none_or(|term| term.is_live(now))
    }

    /// Brings the gauges of what is held up to date.
    fn tell_held(&mut self) {
        if self.told_rows != self.held.rows {
            metrics::held(self.told_rows, self.held.rows);
            self.told_rows = self.held.rows;
        }
        self.tell_stall();
    }
}
