//! Claiming: read, judge, write at the revision that was read, and read back what is not certain.

use super::{Entry, Shared, Store, held::Claiming, renew, value::Value};
use crate::{Claim, Error, Key, Kind, Lease, Result, Seen};
use std::sync::Arc;
use wh_types::{Mono, Stop};

pub(super) async fn claim<S: Store>(shared: &Arc<Shared<S>>, key: &Key, note: &str) -> Result<Claim> {
    let over = shared.held.saw_the_end(key, shared.now());
    let _waited = tokio::time::timeout(shared.options.request(), over).await;
    // one claim of a key at a time, and none while its term lives
    let Some(claiming) = shared.held.claiming(key) else {
        return held_here(shared, key).await;
    };
    let before = shared.read("claim", key).await?;
    let (mut over, mut value) = (None, shared.value(note, None));
    if let Some(entry) = &before {
        let seen = shared.seen(key, entry);
        if seen.session != shared.session {
            if seen.is_live(shared.now()) || seen.revision != entry.revision {
                return Ok(Claim::Held(seen));
            }
            value = shared.value(note, Some(&seen.session));
            over = Some(seen);
        } else {
            // a term that we gave up, or a claim whose answer was lost
            value = shared.value(note, seen.over.as_ref());
        }
    }
    let (expected, sent) = (before.as_ref().map(|entry| entry.revision), shared.now());
    let error = match shared.write("claim", key, &value, expected).await {
        Ok(revision) => return Ok(won(shared, claiming, value, Stored { revision, sent, whole: true }, over)),
        Err(error) => error,
    };
    if !matches!(error.kind(), Kind::Conflict | Kind::Unknown) {
        return Err(error);
    }
    // the store may have taken it and the answer be lost
    match shared.read("claim", key).await {
        Ok(Some(Entry { value: stored, revision }))
            if expected.is_none_or(|expected| revision > expected)
                && Value::read(&stored, shared.options.duration).session == value.session =>
        {
            let whole = Value::read(&stored, shared.options.duration) == value;
            Ok(won(shared, claiming, value, Stored { revision, sent, whole }, over))
        }
        Ok(Some(entry)) if *error.kind() == Kind::Conflict => Ok(Claim::Held(shared.seen(key, &entry))),
        Ok(_) | Err(_) if *error.kind() == Kind::Conflict => Err(Error::new("claim", Kind::Unavailable)),
        Ok(_) | Err(_) => Err(error),
    }
}

/// Our own term, or our own claim that is under way.
async fn held_here<S: Store>(shared: &Arc<Shared<S>>, key: &Key) -> Result<Claim> {
    match shared.read("claim", key).await? {
        Some(entry) => Ok(Claim::Held(shared.seen(key, &entry))),
        None => Err(Error::new("claim", Kind::Unavailable)),
    }
}

/// A claim as it is in the store.
struct Stored {
    revision: u64,
    /// When the write was sent.
    sent: Mono,
    /// Whether it is the value that was to be stored, and not an older one of ours.
    whole: bool,
}

fn won<S: Store>(
    shared: &Arc<Shared<S>>,
    claiming: Claiming<'_>,
    value: Value,
    stored: Stored,
    over: Option<Seen>,
) -> Claim {
    let dropped = Stop::new();
    let own = claiming.won(stored.revision, stored.sent + shared.options.deadline());
    let lease = Lease::new(own.key.clone(), own.fence, own.term.clone(), dropped.clone());
    renew::spawn(shared, own, value, dropped, stored.whole);
    shared.changed();
    Claim::Won { lease, over }
}
