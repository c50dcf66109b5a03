//! When each lease was last seen to change, on our own clock. The only thing that says whether a holder is gone.

use super::{Entry, value::Value};
use crate::{Key, Seen};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use wh_types::Mono;

#[derive(Clone, Debug)]
struct Sighting {
    revision: u64,
    /// When this revision was first seen.
    since: Mono,
    value: Value,
}

#[derive(Debug, Default)]
pub(super) struct Sightings(Mutex<HashMap<Key, Sighting>>);

impl Sightings {
    /// Notes what was read at `now` and gives how it stands. A read that is older than what we saw (from a copy that
    /// lags behind) changes nothing.
    pub(super) fn see(&self, key: &Key, entry: &Entry, value: Value, now: Mono) -> Seen {
        let mut all = self.0.lock();
        let fresh = Sighting { revision: entry.revision, since: now, value };
        let known = all.entry(key.clone()).or_insert_with(|| fresh.clone());
        if known.revision < fresh.revision {
            *known = fresh;
        }
        let lapses = known.since + known.value.duration();
        known.value.clone().seen(known.revision, lapses)
    }

    /// Whether a value that was heard of says anything beyond that its holder lives.
    pub(super) fn is_news(&self, key: &Key, value: &Value) -> bool {
        self.0.lock().get(key).is_none_or(|known| known.value != *value)
    }

    /// Forgets what is below a prefix and was not read.
    pub(super) fn keep_only(&self, prefix: &Key, read: &BTreeMap<Key, Entry>) {
        self.0.lock().retain(|key, _| key.below(prefix).is_none() || read.contains_key(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::time::Duration;
    use wh_types::{Clock, SystemClock};

    fn entry(revision: u64, note: &str) -> (Entry, Value) {
        let value = Value {
            holder: "h".to_owned(),
            session: "s".to_owned(),
            duration_ms: 10_000,
            note: note.to_owned(),
            over: None,
        };
        (Entry { value: Bytes::new(), revision }, value)
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_lapses_when_its_revision_stood_still_for_its_own_length() {
        let (all, key, start) = (Sightings::default(), Key::new("a.k").unwrap(), SystemClock.now());
        let second = Duration::from_secs(1);
        let see = |revision, at| {
            let (entry, value) = entry(revision, "");
            all.see(&key, &entry, value, start + at * second).lapses.unwrap()
        };
        assert_eq!(see(5, 0), start + 10 * second, "the first sight starts the clock");
        assert_eq!(see(5, 7), start + 10 * second, "the same revision does not move it");
        assert_eq!(see(6, 8), start + 18 * second);
        assert_eq!(see(5, 9), start + 18 * second, "an old read from a copy that lags behind says nothing");
        all.keep_only(&Key::new("x").unwrap(), &BTreeMap::new());
        assert_eq!(see(6, 20), start + 18 * second, "another prefix does not forget it");
        all.keep_only(&Key::new("a").unwrap(), &BTreeMap::new());
        assert_eq!(see(6, 20), start + 30 * second, "what a whole read did not show is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_bare_renewal_is_no_news() {
        let (all, key, now) = (Sightings::default(), Key::new("k").unwrap(), SystemClock.now());
        let ((first, a), (_, b)) = (entry(1, "a"), entry(2, "b"));
        assert!(all.is_news(&key, &a), "a claim");
        all.see(&key, &first, a.clone(), now);
        assert!(!all.is_news(&key, &a), "a renewal");
        assert!(all.is_news(&key, &b), "a note");
    }
}
