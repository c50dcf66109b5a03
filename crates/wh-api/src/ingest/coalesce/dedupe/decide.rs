//! What a row's keys say about it. Pure: verdicts in, what to do out.

use super::once::Ruling;
use bytes::Bytes;
use std::time::Duration;
use wh_dedupe::Ticket;

/// What a key is, once no claim on it is in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Claimed by us, under this block.
    Ours(Ticket),
    /// Somebody else is at it.
    Busy { retry_after: Duration, payload: Bytes },
    /// A row of this key is stored.
    Seen { payload: Bytes },
}

impl Standing {
    /// Our claim, where it is one.
    pub(super) fn ticket(self) -> Option<Ticket> {
        match self {
            Self::Ours(ticket) => Some(ticket),
            Self::Busy { .. } | Self::Seen { .. } => None,
        }
    }
}

/// What becomes of a row before its block is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays in the block, under its claims.
    Keep,
    /// It was stored before, under the same id.
    Duplicate,
    /// It was stored before, by a request with the same `Idempotency-Key` and body.
    Replayed,
    /// Somebody else is storing a row of its id.
    Busy(Duration),
    /// All rows of its request are said the same.
    Request(Ruling),
}

/// What is done with a claim of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It goes with the block.
    Hold,
    /// The row is stored already.
    Commit,
    /// The row leaves the block and is not stored.
    Release,
}

/// The keys of one row, each where it has one.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) event: Option<Standing>,
    pub(super) record: Option<Standing>,
}

/// Judges one row. `body`: what its request keeps with each record.
///
/// A record that is known says what became of the row; only then does its event's id.
pub(super) fn judge(keys: &Keys, body: &[u8]) -> Verdict {
    match &keys.record {
        Some(Standing::Seen { payload } | Standing::Busy { payload, .. }) if payload != body => {
            return Verdict::Request(Ruling::Mismatch);
        }
        Some(Standing::Seen { .. }) => return Verdict::Replayed,
        Some(Standing::Busy { retry_after, .. }) => return Verdict::Request(Ruling::Running(*retry_after)),
        Some(Standing::Ours(_)) | None => {}
    }
    match &keys.event {
        Some(Standing::Seen { .. }) => Verdict::Duplicate,
        Some(Standing::Busy { retry_after, .. }) => Verdict::Busy(*retry_after),
        Some(Standing::Ours(_)) | None => Verdict::Keep,
    }
}

/// The same under what another record of its request decided.
pub(super) fn under(verdict: Verdict, ruling: Option<Ruling>) -> Verdict {
    match (ruling, verdict) {
        (Some(Ruling::Mismatch), _) => Verdict::Request(Ruling::Mismatch),
        (Some(running), Verdict::Keep | Verdict::Busy(_)) => Verdict::Request(running),
        (_, own) => own,
    }
}

/// What is done with the claims of a row that is judged so. A row that is stored is known by every key of it; committing
/// a claim of one is true whatever becomes of the block.
pub(super) fn claim(verdict: Verdict) -> Claim {
    match verdict {
        Verdict::Keep => Claim::Hold,
        Verdict::Duplicate | Verdict::Replayed => Claim::Commit,
        Verdict::Busy(_) | Verdict::Request(_) => Claim::Release,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use wh_dedupe::{Dedupe as _, Row, Scope, Under, sim};
    use wh_types::{BlockId, Epoch, SeededEntropy, SystemClock, Table, Tenant};

    pub(in super::super) async fn ours() -> Standing {
        let options = sim::Options {
            clock: std::sync::Arc::new(SystemClock),
            entropy: std::sync::Arc::new(SeededEntropy::new(1)),
        };
        let store = sim::Shared::new().join(options);
        let key = Scope::new(&Tenant::default(), &Table::new("t").unwrap()).event("x").unwrap();
        let under = Under { stream: 0, epoch: Epoch(1), block: BlockId([0; 16]), lease: Duration::from_secs(30) };
        let verdict = store.reserve(&[Row::new(key)], &under).await.unwrap().remove(0);
        let wh_dedupe::Verdict::New(ticket) = verdict else { panic!("{verdict:?}") };
        Standing::Ours(ticket)
    }

    #[tokio::test]
    async fn a_known_record_decides_before_its_id() {
        const AT: Duration = Duration::from_secs(7);
        let busy = |payload: &'static [u8]| Standing::Busy { retry_after: AT, payload: payload.into() };
        let seen = |payload: &'static [u8]| Standing::Seen { payload: payload.into() };
        let ours = ours().await;
        let other = Verdict::Request(Ruling::Mismatch);
        let running = Verdict::Request(Ruling::Running(AT));
        let cases = [
            (None, None, Verdict::Keep),
            (Some(ours.clone()), None, Verdict::Keep),
            (Some(seen(b"")), None, Verdict::Duplicate),
            (Some(busy(b"")), None, Verdict::Busy(AT)),
            (None, Some(ours.clone()), Verdict::Keep),
            (Some(ours.clone()), Some(ours.clone()), Verdict::Keep),
            (Some(seen(b"")), Some(ours.clone()), Verdict::Duplicate),
            (Some(busy(b"")), Some(ours.clone()), Verdict::Busy(AT)),
            (Some(ours.clone()), Some(seen(b"h")), Verdict::Replayed),
            (Some(seen(b"")), Some(seen(b"h")), Verdict::Replayed),
            (Some(ours.clone()), Some(seen(b"g")), other),
            (Some(ours.clone()), Some(busy(b"g")), other),
            (Some(ours.clone()), Some(busy(b"h")), running),
            (Some(seen(b"")), Some(busy(b"h")), running),
        ];
        for (event, record, expected) in cases {
            let keys = Keys { event, record };
            assert_eq!(judge(&keys, b"h"), expected, "{keys:?}");
        }
        assert_eq!(under(Verdict::Keep, Some(Ruling::Running(AT))), running);
        assert_eq!(under(Verdict::Duplicate, Some(Ruling::Running(AT))), Verdict::Duplicate);
        assert_eq!(under(Verdict::Duplicate, Some(Ruling::Mismatch)), other);
        assert_eq!(claim(Verdict::Keep), Claim::Hold);
        assert_eq!(claim(Verdict::Replayed), Claim::Commit);
        assert_eq!(claim(other), Claim::Release);
    }
}
