//! Which units this worker works on now, and that something may be to do for them.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::Notify;
use wh_coord::Term;
use wh_mq::Unit;
use wh_types::Mono;

/// The units of a worker.
#[derive(Debug, Default)]
pub(crate) struct Owned {
    units: Mutex<HashMap<Unit, Option<Term>>>,
    news: Notify,
}

/// A unit is worked on for as long as this lives.
#[derive(Debug)]
pub(crate) struct Own {
    owned: Arc<Owned>,
    unit: Unit,
}

impl Owned {
    /// Says that a unit is worked on, as long as its term is live.
    pub(crate) fn take(self: &Arc<Self>, unit: Unit, term: Option<Term>) -> Own {
        self.units.lock().insert(unit, term);
        self.news.notify_one();
        Own { owned: self.clone(), unit }
    }

    /// Says that rows were held just now.
    pub(crate) fn held(&self) {
        self.news.notify_one();
    }

    /// Whether a unit is ours at this moment.
    pub(crate) fn has(&self, unit: Unit, now: Mono) -> bool {
        self.units.lock().get(&unit).is_some_and(|term| term.as_ref().is_none_or(|term| term.is_live(now)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.units.lock().is_empty()
    }

    /// Returns once a unit was taken or rows were held since the last time.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.owned.units.lock().remove(&self.unit);
    }
}
