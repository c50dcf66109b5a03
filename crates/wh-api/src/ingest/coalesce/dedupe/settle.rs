//! Committing and releasing claims, whoever still waits: once at once, and again by itself where the store did not answer.

use super::Claims;
use crate::ingest::coalesce::Publishing;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use wh_dedupe::{Error, Kind, Result, Retention, Ticket};
use wh_types::{Backoff, Class, Mono};

const DELAYS: Backoff = Backoff::half_jitter(Duration::from_millis(200), Duration::from_secs(5));

/// What becomes of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Their rows are stored.
    Commit,
    /// Their rows are not stored and never will be under their block.
    Release,
}

impl Act {
    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Release => "release",
        }
    }
}

/// Claims of a block.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Of events' ids.
    pub(super) events: Vec<Ticket>,
    /// Of records of requests with an `Idempotency-Key`.
    pub(super) records: Vec<Ticket>,
    /// How long the events' ids are known.
    pub(super) retention: Option<Retention>,
}

impl Held {
    pub(super) fn new(retention: Option<Retention>) -> Self {
        Self { retention, ..Self::default() }
    }

    pub(super) fn add(&mut self, ticket: Ticket, record: bool) {
        if record { self.records.push(ticket) } else { self.events.push(ticket) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.records.is_empty()
    }

    fn len(&self) -> usize {
        self.events.len() + self.records.len()
    }
}

impl Claims {
    /// Does it once. Gives the claims of which it is not known, or that the store could not take.
    pub(crate) async fn attempt(&self, publishing: &Publishing, act: Act, held: Held) -> Held {
        let Held { events, records, retention } = held;
        let window = Retention::For(self.with.idempotency_window);
        let (events, records) = tokio::join!(
            self.each(publishing, act, events, retention.unwrap_or(Retention::Forever)),
            self.each(publishing, act, records, window),
        );
        Held { events, records, retention }
    }

    async fn each(&self, publishing: &Publishing, act: Act, held: Vec<Ticket>, retention: Retention) -> Vec<Ticket> {
        if held.is_empty() {
            return held;
        }
        // after it nobody knows what became of it
        let (store, most) = (&self.with.store, publishing.options.publish_timeout);
        let answers = match act {
            Act::Commit => timeout(most, store.commit(&held, retention)).await,
            Act::Release => timeout(most, store.release(&held)).await,
        };
        let mut answers = answers.unwrap_or_default().into_iter();
        let mut left = Vec::new();
        for ticket in held {
            match read(answers.next()) {
                Reading::Done => {}
                // a release that is repeated finds nothing to release
                Reading::Lost if act == Act::Commit => publishing.meters.claims_lost(),
                Reading::Lost => {}
                Reading::Again => left.push(ticket),
            }
        }
        left
    }

    /// Releases at once; gives whether all of it is known to be free.
    pub(super) async fn free(&self, publishing: &Publishing, tickets: Vec<Ticket>) -> bool {
        if tickets.is_empty() {
            return true;
        }
        let answers =
            timeout(publishing.options.publish_timeout, self.with.store.release(&tickets)).await.unwrap_or_default();
        // one that is another's by now is not ours under this block either
        let gone = |answer: &Result<()>| answer.as_ref().err().is_none_or(|error| error.class() == Class::Fenced);
        answers.len() == tickets.len() && answers.iter().all(gone)
    }

    /// Does it, and again in the background until it is known or the claims are over.
    pub(crate) async fn settle(self: &Arc<Self>, publishing: &Arc<Publishing>, act: Act, held: Held, until: Mono) {
        let left = self.attempt(publishing, act, held).await;
        if left.is_empty() {
            return;
        }
        let Ok(permit) = Arc::clone(&publishing.probes).try_acquire_owned() else {
            return publishing.meters.claims_unsettled(act.name(), left.len());
        };
        let (claims, shared) = (Arc::clone(self), Arc::clone(publishing));
        drop(publishing.tasks.spawn("dedupe", async move {
            claims.insist(&shared, act, left, until).await;
            drop(permit);
        }));
    }

    /// Does it until it is known or the claims are over.
    pub(crate) async fn insist(&self, publishing: &Publishing, act: Act, mut held: Held, until: Mono) {
        let Publishing { clock, entropy, stop, meters, .. } = publishing;
        for failures in 1.. {
            let delay = DELAYS.delay(failures, &**entropy);
            if clock.now() + delay >= until {
                break;
            }
            let stopping = tokio::select! {
                () = tokio::time::sleep(delay) => false,
                () = stop.wait() => true,
            };
            held = self.attempt(publishing, act, held).await;
            if held.is_empty() {
                return;
            }
            if stopping {
                break;
            }
        }
        meters.claims_unsettled(act.name(), held.len());
    }
}

/// What the answer for one claim says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Done,
    /// It is not ours any more.
    Lost,
    Again,
}

fn read(answer: Option<Result<()>>) -> Reading {
    let error = match answer {
        Some(Ok(())) => return Reading::Done,
        Some(Err(error)) => error,
        None => Error::new("settle", Kind::Unknown),
    };
    if error.class() == Class::Fenced { Reading::Lost } else { Reading::Again }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_is_not_ours_is_given_up_and_any_other_failure_is_tried_again() {
        let failed = |kind| Some(Err(Error::new("commit", kind)));
        assert_eq!(read(Some(Ok(()))), Reading::Done);
        assert_eq!(read(failed(Kind::Lost)), Reading::Lost);
        for kind in [Kind::Unavailable, Kind::Unknown, Kind::Denied("x".into())] {
            assert_eq!(read(failed(kind)), Reading::Again);
        }
        assert_eq!(read(None), Reading::Again);
    }
}
