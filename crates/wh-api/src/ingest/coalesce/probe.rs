//! Settles what became of a block whose publish stayed unanswered: an empty block under its id (decision D4).
//!
//! Claims on its rows are committed or released by what is found. Where there are none the probe still makes sure that the
//! block is not stored *after* its client was told to send again.

use super::{
    Publishing,
    attempt::Times,
    dedupe::{Act, Claims, Held, Limit},
};
use std::{sync::Arc, time::Duration};
use wh_mq::Receipt;
use wh_types::{Backoff, Block, Class, Cursor, Mono};

const DELAYS: Backoff = Backoff::half_jitter(Duration::from_millis(500), Duration::from_secs(5));

/// What became of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its rows are in the queue.
    Stored,
    /// Its rows never were stored and never will be.
    Released,
    /// Nobody can tell: the queue forgot the id, or did not answer in time.
    Lost,
}

impl Fate {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Released => "released",
            Self::Lost => "lost",
        }
    }
}

/// What the answer to one probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Fate(Fate),
    /// It may be an earlier probe of ours that is the duplicate: look at what is stored there.
    LookUp(Cursor),
    Again,
}

/// Claims on the rows of a block whose outcome is not known.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) claims: Arc<Claims>,
    pub(super) held: Held,
    pub(super) limit: Limit,
}

/// `first`: no probe of this block was sent before this one, by anybody.
fn read(first: bool, answer: Option<wh_mq::Result<Receipt>>) -> Reading {
    match answer {
        Some(Ok(Receipt::Stored(_))) => Reading::Fate(Fate::Released),
        Some(Ok(Receipt::Duplicate(_))) if first => Reading::Fate(Fate::Stored),
        Some(Ok(Receipt::Duplicate(at))) => Reading::LookUp(at),
        Some(Err(error)) if error.class() == Class::Stopping => Reading::Fate(Fate::Lost),
        Some(Err(_)) | None => Reading::Again,
    }
}

/// Probes until there is an answer or `until`.
pub(super) async fn settle(publishing: Arc<Publishing>, block: Block, until: Mono, doubt: Option<Doubt>) {
    let alone_until = doubt.as_ref().map(|doubt| doubt.limit.proves_until);
    let fate = fate(&publishing, &block.probe(), until, alone_until).await;
    publishing.meters.unknown_resolved(fate.name());
    tracing::info!(block = %block.id, table = %block.table, fate = fate.name(), "unanswered block resolved");
    let act = match fate {
        Fate::Stored => Act::Commit,
        Fate::Released => Act::Release,
        // whoever sends the rows again asks again
        Fate::Lost => return,
    };
    if let Some(Doubt { claims, held, .. }) = doubt {
        let left = claims.attempt(&publishing, act, held).await;
        if !left.is_empty() {
            claims.insist(&publishing, act, left, until).await;
        }
    }
}

/// `alone_until`: from then on others may probe the block too.
async fn fate(publishing: &Publishing, probe: &Block, until: Mono, alone_until: Option<Mono>) -> Fate {
    let Publishing { broker, clock, entropy, options, stop, .. } = publishing;
    let time = Times::of(&**broker, options.publish_timeout).call;
    for sent in 1.. {
        let answer = tokio::time::timeout(time, broker.publish(std::slice::from_ref(probe))).await;
        let alone = alone_until.is_none_or(|until| clock.now() < until);
        let mut reading = read(sent == 1 && alone, answer.ok().and_then(|mut outcomes| outcomes.pop()));
        if let Reading::LookUp(at) = reading {
            let rows = broker.stored_rows(&probe.tenant, &probe.table, probe.id, at);
            reading = match tokio::time::timeout(options.publish_timeout, rows).await {
                Ok(Ok(Some(0))) => Reading::Fate(Fate::Released),
                Ok(Ok(Some(_))) => Reading::Fate(Fate::Stored),
                Ok(Ok(None)) => Reading::Fate(Fate::Lost),
                Ok(Err(_)) | Err(_) => Reading::Again,
            };
        }
        if let Reading::Fate(fate) = reading {
            return fate;
        }
        let delay = DELAYS.delay(sent, &**entropy);
        if clock.now() + delay >= until {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = stop.wait() => break,
        }
    }
    Fate::Lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_mq::{Error, Kind};
    use wh_types::Epoch;

    #[test]
    fn only_the_first_probe_takes_duplicate_for_proof() {
        let at = Cursor { epoch: Epoch(1), sequence: 9 };
        let (stored, duplicate) = (|| Some(Ok(Receipt::Stored(at))), || Some(Ok(Receipt::Duplicate(at))));
        let failed = |kind| Some(Err(Error::new("publish", kind)));
        assert_eq!(read(true, stored()), Reading::Fate(Fate::Released));
        assert_eq!(read(false, stored()), Reading::Fate(Fate::Released));
        assert_eq!(read(true, duplicate()), Reading::Fate(Fate::Stored));
        assert_eq!(read(false, duplicate()), Reading::LookUp(at));
        assert_eq!(read(true, None), Reading::Again);
        assert_eq!(read(true, failed(Kind::Unknown)), Reading::Again);
        assert_eq!(read(false, failed(Kind::NoSpace)), Reading::Again);
        assert_eq!(read(true, failed(Kind::Stopping)), Reading::Fate(Fate::Lost));
    }
}
