//! The worker: one loop per unit. Alone in a process it takes every unit; with claims it takes those that are its share.

use crate::{
    claim::{self, ClaimOptions},
    gate::Gates,
    metrics,
    options::Options,
    replay,
    sink::Sinks,
    unit::{Orders, Terms, UnitLoop, Wish},
};
use futures::{StreamExt, stream::FuturesUnordered};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::sync::watch;
use tracing::{error, info, warn};
use wh_coord::Leases;
use wh_mq::{Broker, Budget, Error, Feed, Kind, Unit};
use wh_types::{Class, Clock, Entropy, Mono, Stop, Tasks};

/// A unit that cannot be taken for so long is an error, not a warning.
const BIND_PATIENCE: Duration = Duration::from_mins(1);
/// How soon a unit is tried again that somebody else still has.
const HELD_AGAIN: Duration = Duration::from_millis(500);

/// What a worker works with.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Rows come from here.
    pub broker: Arc<dyn Broker>,
    /// Rows go there.
    pub sinks: Arc<dyn Sinks>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance, for jitter.
    pub entropy: Arc<dyn Entropy>,
}

/// Moves rows from a queue into sinks until it is stopped.
#[derive(Debug)]
pub struct Worker {
    parts: Parts,
    options: Options,
    claims: Option<(Arc<dyn Leases>, ClaimOptions)>,
    tasks: Tasks,
}

/// What all units of one worker share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) parts: Parts,
    pub(crate) options: Options,
    pub(crate) gates: Gates,
    /// The units worked on now.
    pub(crate) owned: Arc<replay::Owned>,
    pub(crate) tasks: Tasks,
}

impl Worker {
    /// A worker that has not begun.
    #[must_use]
    pub fn new(parts: Parts, options: Options) -> Self {
        metrics::describe();
        Self { parts, options, claims: None, tasks: Tasks::new() }
    }

    /// The same, one of several over one queue: it takes part in sharing out the units by leases, and works on those
    /// that are its own.
    #[must_use]
    pub fn with_claims(mut self, leases: Arc<dyn Leases>, options: ClaimOptions) -> Self {
        self.claims = Some((leases, options));
        self
    }

    /// The same, with its tasks in a group of the caller's.
    #[must_use]
    pub fn with_tasks(mut self, tasks: Tasks) -> Self {
        self.tasks = tasks;
        self
    }

    /// Works until `stop` is given, then flushes what it holds, gives back the rest and releases its units, within
    /// `Options::stop_budget`. Without claims it takes every unit of the broker. With claims it ends its membership as
    /// the last thing; leases are given to it and not closed by it.
    ///
    /// # Errors
    /// Delivery of a unit ended for good (its stream is gone or corrupt). What was held is flushed first.
    /// # Cancel safety
    /// Detached: its units stop by themselves; blocks that were held come back after the queue's `ack_wait` at the
    /// latest. Give `stop` instead.
    pub async fn run(self, stop: Stop) -> Result<(), Error> {
        let Self { parts, options, claims, tasks } = self;
        let shared = {
            // nothing tried takes longer than an insert and what its sink does around it
            let gates = Gates::new(options.insert_timeout * 2);
            Arc::new(Shared { parts, options, gates, owned: Arc::default(), tasks })
        };
        let held = replay::run(shared.clone(), stop.clone());
        let work = async {
            match claims {
                None => run_all(shared, stop).await,
                Some((leases, options)) => claim::run(shared, leases, options, stop).await,
            }
        };
        let (mut held, mut work) = (pin!(held), pin!(work));
        tokio::select! {
            biased;
            outcome = &mut work => outcome,
            () = &mut held => work.await,
        }
    }
}

async fn run_all(shared: Arc<Shared>, stop: Stop) -> Result<(), Error> {
    let units = shared.parts.broker.units();
    let (orders, _) = watch::channel(Orders::work(share(&shared.options, units.len())));
    let mut ends = FuturesUnordered::new();
    for unit in units {
        let terms = Terms { orders: orders.subscribe(), term: None, orphan: false };
        ends.push(spawn_unit(&shared, unit, terms));
    }
    info!(units = ends.len(), "ingest worker started");
    let mut outcome = Ok(());
    loop {
        let end = tokio::select! {
            biased;
            () = stop.wait(), if orders.borrow().wish < Wish::Stop => {
                orders.send_modify(|orders| orders.wish(Wish::Stop));
                continue;
            }
            end = ends.next() => end,
        };
        match end.map(|end| end.outcome) {
            None => return outcome,
            Some(Ok(())) => {}
            Some(Err(error)) => {
                // One unit that ended for good ends the worker: a process that ingests half its tables looks healthy.
                orders.send_modify(|orders| orders.wish(Wish::Stop));
                outcome = Err(error);
            }
        }
    }
}

/// An even part of what the process may hold, never under two full batches.
pub(crate) fn share(options: &Options, units: usize) -> Budget {
    let units = units.max(1);
    let least = usize::try_from(options.batch_rows.saturating_mul(2)).unwrap_or(usize::MAX);
    // Batches are counted in decoded bytes, budgets in compressed ones, so two batches always fit in this.
    let least_bytes = usize::try_from(options.batch_bytes.saturating_mul(2)).unwrap_or(usize::MAX);
    Budget { rows: (options.held_rows / units).max(least), bytes: (options.held_bytes / units).max(least_bytes) }
}

/// How the task of a unit ended.
#[derive(Debug)]
pub(crate) struct UnitEnd {
    /// Whether the queue heard of everything: nothing is left that its next owner must make due.
    pub(crate) in_order: bool,
    /// Whether delivery ended for good.
    pub(crate) outcome: Result<(), Error>,
}

/// Starts the task of a unit. The future gives how it ended.
pub(crate) fn spawn_unit(
    shared: &Arc<Shared>,
    unit: Unit,
    terms: Terms,
) -> impl Future<Output = UnitEnd> + Send + use<> {
    let own = shared.clone();
    let task = shared.tasks.spawn("ingest/unit", async move { run_unit(own, unit, terms).await });
    async move {
        let panicked = |panic| {
            let error = Error::new("ingest", Kind::Bug("a unit's task panicked".into())).with_source(panic);
            UnitEnd { in_order: false, outcome: Err(error) }
        };
        task.await.unwrap_or_else(panicked)
    }
}

async fn run_unit(shared: Arc<Shared>, unit: Unit, mut terms: Terms) -> UnitEnd {
    let feed = match bind(&shared, unit, &mut terms).await {
        Ok(Some(feed)) => feed,
        Ok(None) => return UnitEnd { in_order: true, outcome: Ok(()) },
        Err(error) => return UnitEnd { in_order: true, outcome: Err(error) },
    };
    metrics::unit_event("taken");
    let _own = shared.owned.take(unit, terms.term.clone());
    let (in_order, outcome) = UnitLoop::new(shared, feed, terms).run().await;
    metrics::unit_event("released");
    UnitEnd { in_order, outcome }
}

/// Takes the unit, waiting while the queue cannot be reached. `None`: not wanted any more.
async fn bind(shared: &Shared, unit: Unit, terms: &mut Terms) -> Result<Option<Box<dyn Feed>>, Error> {
    let (mut failures, began) = (0, shared.parts.clock.now());
    loop {
        let orders = *terms.orders.borrow_and_update();
        if orders.wish > Wish::Work {
            return Ok(None);
        }
        let error = match shared.parts.broker.feed(unit, orders.budget).await {
            Ok(feed) => return Ok(Some(feed)),
            Err(error) => error,
        };
        let class = error.class();
        if class == Class::Stopping {
            return Ok(None);
        }
        if !class.retryable() && class != Class::Conflict {
            return Err(error);
        }
        failures += 1;
        metrics::unit_event("bind_failed");
        let mut delay = shared.options.backoff.delay(failures, &*shared.parts.entropy);
        if class == Class::Conflict && terms.term.is_some() {
            delay = delay.min(HELD_AGAIN);
        }
        let (retry_ms, for_ms) = (delay.as_millis(), (shared.parts.clock.now() - began).as_millis());
        if for_ms < BIND_PATIENCE.as_millis() {
            warn!(%unit, %error, retry_ms, "unit {unit} could not be taken, retrying");
        } else {
            error!(%unit, %error, retry_ms, for_ms, "unit {unit} cannot be taken");
        }
        tokio::select! {
            biased;
            // orders that have no giver any more are those to stop
            changed = terms.orders.changed() => if changed.is_err() {
                return Ok(None);
            },
            () = tokio::time::sleep(delay) => {}
        }
    }
}

/// A moment that never comes, for a timer with nothing to wait for.
pub(crate) fn never(now: Mono) -> Mono {
    now + Duration::from_secs(86_400 * 365)
}

#[cfg(test)]
#[path = "worker_tests/mod.rs"]
mod worker_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_units_share_is_even_and_never_under_two_batches() {
        let options = Options::default();
        assert_eq!(share(&options, 1).rows, 200_000);
        assert_eq!(share(&options, 32).rows, 20_000);
        assert_eq!(share(&options, 1).bytes, 256 << 20);
        assert_eq!(share(&options, 1_000).bytes, 16 << 20);
        assert_eq!(share(&options, 0).rows, 200_000);
    }
}
