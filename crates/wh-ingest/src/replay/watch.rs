//! Which tables have held rows, and when to look at what. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use wh_mq::DeadLetterId;
use wh_types::{Mono, Table, Tenant};

/// How often the store is asked which rows are held.
pub(super) const SCAN: Duration = Duration::from_secs(60);
/// How soon after a takeover, or after rows were held here.
pub(super) const SOON: Duration = Duration::from_millis(500);
/// How soon after a failure.
pub(super) const AGAIN: Duration = Duration::from_secs(10);
/// How often a table with held rows is asked for its columns.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// Columns of a table.
pub(super) type Columns = Arc<BTreeSet<String>>;
/// Whose table.
pub(super) type Key = (Tenant, Table);

/// What is known of one table with held rows.
#[derive(Debug, Default)]
struct Watched {
    /// With these columns everything was tried.
    tried: Option<Columns>,
    /// Not before this time, since something failed.
    after: Option<Mono>,
    /// Published, and not known to be removed. They are removed before anything else is published.
    left: Vec<DeadLetterId>,
}

/// The tables that are watched.
#[derive(Debug)]
pub(super) struct Watch {
    tables: BTreeMap<Key, Watched>,
    scan: Mono,
}

impl Watch {
    pub(super) fn new(now: Mono) -> Self {
        Self { tables: BTreeMap::new(), scan: now + SOON }
    }

    /// Something may have changed: the store is asked soon.
    pub(super) fn news(&mut self, now: Mono) {
        self.scan = self.scan.min(now + SOON);
    }

    pub(super) fn scan_is_due(&self, now: Mono) -> bool {
        now >= self.scan
    }

    /// The store said which tables have held rows. What was tried is tried again, in case somebody else's view lagged.
    pub(super) fn scanned(&mut self, held: &BTreeSet<Key>, now: Mono) {
        self.scan = now + SCAN;
        self.tables.retain(|key, watched| held.contains(key) || !watched.left.is_empty());
        for key in held {
            self.tables.entry(key.clone()).or_default().tried = None;
        }
    }

    /// The store did not answer.
    pub(super) fn scan_failed(&mut self, now: Mono) {
        self.scan = now + AGAIN;
    }

    /// When there is something to do next.
    pub(super) fn wake(&self, now: Mono) -> Mono {
        if self.tables.is_empty() { self.scan } else { self.scan.min(now + LOOK) }
    }

    /// The tables to be asked for their columns.
    pub(super) fn due(&self, now: Mono) -> Vec<Key> {
        let due = |watched: &Watched| watched.after.is_none_or(|after| now >= after);
        self.tables.iter().filter(|(_, watched)| due(watched)).map(|(key, _)| key.clone()).collect()
    }

    /// Whether held rows of a table are to be tried, given the columns it has.
    pub(super) fn wants(&self, key: &Key, columns: &Columns) -> bool {
        self.tables.get(key).is_some_and(|watched| watched.tried.as_ref() != Some(columns))
    }

    /// All of them were tried with these columns.
    pub(super) fn tried(&mut self, key: &Key, columns: Columns) {
        if let Some(watched) = self.tables.get_mut(key) {
            (watched.tried, watched.after) = (Some(columns), None);
        }
    }

    /// Something failed.
    pub(super) fn failed(&mut self, key: &Key, now: Mono) {
        if let Some(watched) = self.tables.get_mut(key) {
            watched.after = Some(now + AGAIN);
        }
    }

    /// Letters whose rows are in the queue and that are still to be removed.
    pub(super) fn left(&self, key: &Key) -> Vec<DeadLetterId> {
        self.tables.get(key).map(|watched| watched.left.clone()).unwrap_or_default()
    }

    pub(super) fn set_left(&mut self, key: &Key, left: Vec<DeadLetterId>) {
        if let Some(watched) = self.tables.get_mut(key) {
            watched.left = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Clock, Cursor, Epoch, RowCursor, SystemClock};

    #[test]
    fn a_table_is_tried_once_for_each_set_of_columns_and_again_after_a_scan() {
        let now = SystemClock.now();
        let key = (Tenant::default(), Table::new("t").unwrap());
        let columns = |names: &[&str]| Arc::new(names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>());
        let mut watch = Watch::new(now);
        assert!(!watch.scan_is_due(now) && watch.scan_is_due(now + SOON));
        watch.scanned(&BTreeSet::from([key.clone()]), now);
        assert_eq!((watch.wake(now), watch.due(now)), (now + LOOK, vec![key.clone()]));
        assert!(watch.wants(&key, &columns(&["a"])));
        watch.tried(&key, columns(&["a"]));
        assert!(!watch.wants(&key, &columns(&["a"])) && watch.wants(&key, &columns(&["a", "b"])));
        watch.failed(&key, now);
        assert!(watch.due(now).is_empty() && !watch.due(now + AGAIN).is_empty());
        watch.scanned(&BTreeSet::from([key.clone()]), now);
        assert!(watch.wants(&key, &columns(&["a"])));

        let id = DeadLetterId(RowCursor { block: Cursor { epoch: Epoch(1), sequence: 1 }, row: 0 });
        watch.set_left(&key, vec![id]);
        watch.scanned(&BTreeSet::new(), now);
        assert_eq!(watch.left(&key), [id], "what is to be removed is not forgotten");
        watch.set_left(&key, Vec::new());
        watch.scanned(&BTreeSet::new(), now);
        assert_eq!((watch.due(now + AGAIN), watch.wake(now)), (vec![], now + SCAN));
        watch.news(now);
        assert_eq!(watch.wake(now), now + SOON);
    }
}
