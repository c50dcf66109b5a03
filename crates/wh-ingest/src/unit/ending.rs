//! How a unit ends: halted, flushed as far as its time goes, what is left given back in order, released.

use super::{UnitLoop, Wish};
use crate::{metrics, table::Load};
use futures::StreamExt;
use std::{pin::pin, time::Duration};
use tokio::time::timeout;
use tracing::{debug, info, warn};
use wh_mq::Verdict;
use wh_types::Mono;

/// How long halting and giving back may take each: the queue frees what it does not hear of.
const WITHIN: Duration = Duration::from_secs(5);
/// How long a release is waited for. It goes on beyond.
const RELEASE_WITHIN: Duration = Duration::from_secs(10);

/// Where a unit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It takes blocks and inserts them.
    Working,
    /// It takes no more, and begins inserts until the moment given.
    Draining { until: Mono, ends: Mono },
    /// It begins nothing and awaits what is in flight.
    Ending { ends: Mono },
}

impl Phase {
    /// When it changes by time alone.
    pub(super) fn deadline(self) -> Option<Mono> {
        match self {
            Self::Working => None,
            Self::Draining { until, .. } => Some(until),
            Self::Ending { ends } => Some(ends),
        }
    }
}

impl UnitLoop {
    /// Does what the orders say. Gives whether blocks may still come that were taken already.
    pub(super) async fn obey(&mut self, heard: bool) -> bool {
        let mut orders = *self.orders.borrow_and_update();
        if !heard {
            // whoever gave the orders is gone: nobody wants the unit worked on
            orders.wish(Wish::Stop);
        }
        if orders.budget != self.budget {
            self.budget = orders.budget;
            if self.paused.is_none() {
                self.feed.set_budget(orders.budget);
            }
        }
        let (now, options) = (self.now(), &self.shared.options);
        let (bound, insert) = (options.stop_budget, options.insert_timeout);
        // what is begun must have its time before the stop is over
        let window = bound.saturating_sub(insert).max(bound / 10);
        let next = match (self.phase, orders.wish) {
            (_, Wish::Work) | (Phase::Draining { .. }, Wish::HandOver) => return true,
            (Phase::Ending { ends }, Wish::Stop) => Phase::Ending { ends: ends.min(now + bound) },
            (Phase::Ending { .. }, Wish::HandOver | Wish::GiveUp) => return false,
            (Phase::Working, Wish::HandOver) => {
                let until = now + options.handover_bound;
                Phase::Draining { until, ends: until + insert }
            }
            (Phase::Working, Wish::Stop) => Phase::Draining { until: now + window, ends: now + bound },
            (Phase::Draining { until, ends }, Wish::Stop) => {
                Phase::Draining { until: until.min(now + window), ends: ends.min(now + bound) }
            }
            (Phase::Working | Phase::Draining { .. }, Wish::GiveUp) => Phase::Ending { ends: now + insert },
        };
        let working = self.phase == Phase::Working;
        self.phase = next;
        let halted = !working || self.halt().await;
        // what comes after a term is over is not begun any more
        halted && !matches!(self.phase, Phase::Ending { .. })
    }

    /// Time is over for what the unit was doing. Gives whether all of it is.
    pub(super) fn out_of_time(&mut self) -> bool {
        match self.phase {
            Phase::Working => false,
            Phase::Draining { ends, .. } => {
                warn!(unit = %self.unit, rows = self.held.rows, "unit {} is released before its rows are settled", self.unit);
                metrics::unit_event("handover_timeout");
                self.phase = Phase::Ending { ends };
                false
            }
            Phase::Ending { .. } => {
                warn!(unit = %self.unit, rows = self.held.rows, "an insert of unit {} was not answered in time", self.unit);
                true
            }
        }
    }

    /// Whether nothing is left to wait for.
    pub(super) fn is_done(&self, delivering: bool) -> bool {
        match self.phase {
            Phase::Working => false,
            Phase::Draining { .. } => !delivering && self.running.is_empty() && !self.awaits_an_answer(),
            Phase::Ending { .. } => self.running.is_empty(),
        }
    }

    /// Whether a batch whose outcome is not known waits for its next try: given up, it may double.
    fn awaits_an_answer(&self) -> bool {
        self.tables.iter().flatten().any(|slot| slot.gated && slot.rows.in_doubt())
    }

    /// Takes no more blocks. Inserts go on meanwhile. Gives whether the queue did so.
    async fn halt(&mut self) -> bool {
        let (mut ended, unit) = (Vec::new(), self.unit);
        let halted = {
            let mut halt = pin!(timeout(WITHIN, self.feed.halt()));
            loop {
                tokio::select! {
                    biased;
                    halted = &mut halt => break halted,
                    Some(end) = self.running.next() => ended.push(end),
                    Some(()) = self.acks.next() => {}
                }
            }
        };
        for end in ended {
            self.finished(end);
        }
        match halted {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                debug!(%unit, %error, "halting unit {unit} failed");
                false
            }
            Err(_) => {
                debug!(%unit, "halting unit {unit} took too long");
                false
            }
        }
    }

    /// From here on every table inserts what it has, and none waits for a gate but for an answer it must have.
    pub(super) fn flush(&mut self) {
        self.flushing = true;
        (0..self.tables.len()).for_each(|key| self.consider(key, true));
    }

    /// Gives back what is still held, in order, and releases the unit. Gives whether the queue heard all of it: else what
    /// we held waits for its time to pass, unless the next owner makes it due.
    pub(super) async fn end(mut self) -> bool {
        let unit = self.unit;
        metrics::doubt(self.tables.iter().flatten().map(|slot| slot.rows.doubtful_rows()).sum());
        self.settled_all().await;
        let mut rest = self.tables.iter().flatten().flat_map(|slot| slot.rows.tokens()).collect::<Vec<_>>();
        rest.sort_unstable_by_key(|token| token.sequence);
        let mut heard = true;
        if !rest.is_empty() {
            info!(%unit, blocks = rest.len(), rows = self.held.rows, "unit {unit} gives back what it did not insert");
            self.settle_later(rest, Verdict::Nak { delay: Duration::ZERO });
            heard = self.settled_all().await;
        }
        self.held = Load::default();
        self.tell_held();
        let release = self.shared.tasks.spawn("ingest/release", self.feed.release());
        match timeout(RELEASE_WITHIN, release).await {
            Ok(Ok(Ok(()))) => return heard,
            Ok(Err(error)) => debug!(%unit, %error, "releasing unit {unit} was cut short"),
            Ok(Ok(Err(error))) => debug!(%unit, %error, "releasing unit {unit} failed; it frees itself later"),
            Err(_) => debug!(%unit, "releasing unit {unit} took too long; it frees itself later"),
        }
        false
    }

    async fn settled_all(&mut self) -> bool {
        let unit = self.unit;
        let settled = timeout(WITHIN, async { while self.acks.next().await.is_some() {} }).await.is_ok();
        if !settled {
            debug!(%unit, "settling on unit {unit} took too long");
            self.acks.clear();
        }
        settled
    }
}
