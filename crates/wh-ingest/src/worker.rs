//! The worker: one loop per unit, all under one stop signal. Which units are ours is a later part's question; alone in
//! a process it takes them all.

use crate::{gate::Gates, metrics, options::Options, sink::Sinks, unit::UnitLoop};
use futures::{StreamExt, stream::FuturesUnordered};
use std::sync::Arc;
use tracing::{info, warn};
use wh_mq::{Broker, Budget, Error, Feed, Unit};
use wh_types::{Class, Clock, Entropy, Mono, Stop, Tasks};

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
}

/// What all units of one worker share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) parts: Parts,
    pub(crate) options: Options,
    pub(crate) gates: Gates,
}

impl Worker {
    /// A worker that has not begun.
    #[must_use]
    pub fn new(parts: Parts, options: Options) -> Self {
        metrics::describe();
        Self { parts, options }
    }

    /// Takes every unit of the broker and works until `stop` is given, then flushes what it holds, gives back the rest
    /// and releases the units, within `Options::stop_budget`.
    ///
    /// # Errors
    /// Delivery of a unit ended for good (its stream is gone or corrupt). What was held is flushed first.
    /// # Cancel safety
    /// Detached: blocks that were held come back after the queue's `ack_wait`. Give `stop` instead.
    pub async fn run(self, stop: Stop) -> Result<(), Error> {
        let units = self.parts.broker.units();
        let budget = share(&self.options, units.len());
        let shared = Arc::new(Shared { parts: self.parts, options: self.options, gates: Gates::new() });
        let (tasks, failed) = (Tasks::new(), stop.child());
        let mut ends = FuturesUnordered::new();
        for unit in units {
            let (shared, stop) = (shared.clone(), failed.clone());
            ends.push(tasks.spawn("ingest/unit", async move { run_unit(shared, unit, budget, stop).await }));
        }
        info!(units = ends.len(), "ingest worker started");
        let mut outcome = Ok(());
        while let Some(end) = ends.next().await {
            let end = end.unwrap_or_else(|panic| {
                Err(Error::new("ingest", wh_mq::Kind::Bug("a unit's task panicked".into())).with_source(panic))
            });
            if let Err(error) = end {
                // One unit that ended for good ends the worker: a process that ingests half its tables looks healthy.
                failed.give();
                outcome = Err(error);
            }
        }
        outcome
    }
}

/// An even part of what the process may hold, never under two full batches.
fn share(options: &Options, units: usize) -> Budget {
    let units = units.max(1);
    let least = usize::try_from(options.batch_rows.saturating_mul(2)).unwrap_or(usize::MAX);
    // Batches are counted in decoded bytes, budgets in compressed ones, so two batches always fit in this.
    let least_bytes = usize::try_from(options.batch_bytes.saturating_mul(2)).unwrap_or(usize::MAX);
    Budget { rows: (options.held_rows / units).max(least), bytes: (options.held_bytes / units).max(least_bytes) }
}

async fn run_unit(shared: Arc<Shared>, unit: Unit, budget: Budget, stop: Stop) -> Result<(), Error> {
    let Some(feed) = bind(&shared, unit, budget, &stop).await? else { return Ok(()) };
    UnitLoop::new(shared, feed, budget).run(stop).await
}

/// Takes the unit, waiting while the queue cannot be reached. `None`: stopped meanwhile.
async fn bind(shared: &Shared, unit: Unit, budget: Budget, stop: &Stop) -> Result<Option<Box<dyn Feed>>, Error> {
    let mut failures = 0;
    loop {
        let error = match shared.parts.broker.feed(unit, budget).await {
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
        let delay = shared.options.backoff.delay(failures, &*shared.parts.entropy);
        warn!(unit = %unit, %error, retry_ms = delay.as_millis(), "unit {unit} could not be taken, retrying");
        tokio::select! {
            () = stop.wait() => return Ok(None),
            () = tokio::time::sleep(delay) => {}
        }
    }
}

/// A moment that never comes, for a timer with nothing to wait for.
pub(crate) fn never(now: Mono) -> Mono {
    now + std::time::Duration::from_secs(86_400 * 365)
}

#[cfg(test)]
#[path = "worker_tests.rs"]
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
