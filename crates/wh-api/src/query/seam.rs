//! How far a table was when it was read (decision D32): up to where the answer has everything for sure, and beyond where it
//! has nothing for sure. Where both are equal, a stream from there goes on exactly behind the answer.

use crate::app::App;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use std::{collections::HashMap, future::Future, time::Duration};
use wh_clickhouse::TableSchema;
use wh_mq::Progress;
use wh_types::{Cursor, Mono, Table, Tenant};

static COMMITTED: HeaderName = HeaderName::from_static("x-wh-committed");
static INSERTING: HeaderName = HeaderName::from_static("x-wh-inserting");

/// Most time for a question about marks.
const PATIENCE: Duration = Duration::from_secs(1);
/// On a shared queue marks come over several servers: one that was the last for so long is the last.
const SETTLES: Duration = Duration::from_secs(1);
/// Tables whose last marks are remembered; beyond it all are forgotten.
const MOST: usize = 10_000;
/// Engines that no rows are queued for under their own name.
const TAKES_NO_ROWS: &[&str] = &["View", "MaterializedView", "LiveView", "WindowView", "Merge", "Dictionary"];

/// Since when the last mark of a table is known, on a shared queue.
#[derive(Debug, Default)]
pub(crate) struct Seams(Mutex<HashMap<(Tenant, Table), Last>>);

#[derive(Clone, Copy, Debug)]
struct Last {
    owner: u64,
    number: u64,
    since: Mono,
}

/// What a read begins with.
#[derive(Debug)]
pub(super) struct Seam {
    tenant: Tenant,
    table: Table,
    /// Everything up to here is in the answer.
    committed: Cursor,
}

impl Seam {
    /// As it is before the read. `None`: nothing is known of the table, or it has no rows of its own.
    pub(super) async fn before(app: &App, tenant: &Tenant, table: &TableSchema) -> Option<Self> {
        if TAKES_NO_ROWS.contains(&table.engine.as_str()) {
            return None;
        }
        let table = Table::new(&table.name).ok()?;
        let marks = app.publishing.broker.marks();
        let reader = marks.watch(tenant, &table).ok()?;
        let known = match reader.latest() {
            Some(known) => known,
            None => {
                // readers of the table get the answer as a mark
                within(marks.floor(tenant, &table)).await?;
                reader.latest()?
            }
        };
        let committed = Cursor { epoch: known.epoch, sequence: known.committed };
        Some(Self { tenant: tenant.clone(), table, committed })
    }

    /// What is told of an answer whose end is not known yet.
    pub(super) fn open(&self) -> Option<(HeaderName, HeaderValue)> {
        told(&COMMITTED, self.committed)
    }

    /// What is told of an answer that was read to its end.
    pub(super) async fn after(&self, app: &App) -> Vec<(HeaderName, HeaderValue)> {
        self.open().into_iter().chain(self.inserting(app).await.and_then(|at| told(&INSERTING, at))).collect()
    }

    async fn inserting(&self, app: &App) -> Option<Cursor> {
        let marks = app.publishing.broker.marks();
        within(marks.hear()).await?;
        let known = marks.watch(&self.tenant, &self.table).ok()?.latest()?;
        let settled = !app.options.shared_queue || app.seams.settled(&known, app.publishing.clock.now());
        inserting(self.committed, &known, settled)
    }
}

/// Beyond where nothing is in the answer, where that can be said. Pure.
fn inserting(committed: Cursor, known: &Progress, settled: bool) -> Option<Cursor> {
    let at = Cursor { epoch: known.epoch, sequence: known.inserting };
    let sound = at.epoch == committed.epoch && at.sequence >= committed.sequence;
    (sound && (settled || at != committed)).then_some(at)
}

fn told(name: &HeaderName, at: Cursor) -> Option<(HeaderName, HeaderValue)> {
    HeaderValue::from_str(&at.to_string()).ok().map(|value| (name.clone(), value))
}

async fn within<T>(question: impl Future<Output = wh_mq::Result<T>>) -> Option<T> {
    tokio::time::timeout(PATIENCE, question).await.ok()?.ok()
}

impl Seams {
    /// Whether this has been the last mark for a while.
    fn settled(&self, known: &Progress, now: Mono) -> bool {
        let mut all = self.0.lock();
        if all.len() >= MOST {
            all.clear();
        }
        let new = Last { owner: known.owner, number: known.number, since: now };
        let last = all.entry((known.tenant.clone(), known.table.clone())).or_insert(new);
        if (last.owner, last.number) != (new.owner, new.number) {
            *last = new;
        }
        now.saturating_duration_since(last.since) >= SETTLES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Clock, Epoch, SystemClock};

    fn known(epoch: u32, committed: u64, inserting: u64, number: u64) -> Progress {
        Progress {
            tenant: Tenant::default(),
            table: Table::new("t").unwrap(),
            epoch: Epoch(epoch),
            committed,
            inserting,
            parked: Vec::new(),
            named_after: 0,
            owner: 1,
            number,
        }
    }

    #[test]
    fn the_end_is_told_where_it_is_known() {
        let committed = Cursor { epoch: Epoch(1), sequence: 5 };
        let of = |known: Progress, settled| inserting(committed, &known, settled).map(|at| at.sequence);
        assert_eq!(of(known(1, 5, 5, 1), true), Some(5), "nothing was under way");
        assert_eq!(of(known(1, 5, 5, 1), false), None, "another mark may still come");
        assert_eq!(of(known(1, 6, 9, 1), false), Some(9), "an interval");
        assert_eq!(of(known(2, 6, 9, 1), true), None, "another history");
    }

    #[test]
    fn a_mark_settles_while_no_other_comes() {
        let (seams, now) = (Seams::default(), SystemClock.now());
        let later = |ms| now + Duration::from_millis(ms);
        assert!(!seams.settled(&known(1, 5, 5, 1), now));
        assert!(!seams.settled(&known(1, 5, 5, 1), later(900)));
        assert!(seams.settled(&known(1, 5, 5, 1), later(1_000)));
        assert!(!seams.settled(&known(1, 6, 6, 2), later(1_100)));
        assert!(!seams.settled(&known(1, 6, 6, 2), later(2_000)));
        assert!(seams.settled(&known(1, 6, 6, 2), later(2_100)));
    }
}
