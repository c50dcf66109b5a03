//! Who may have how many streams, why one ends, and what is counted while it is open. Not what it sends.

use crate::{app::App, codes, error::ApiError, metrics::Meters, served::TenantState};
use std::{future::pending, sync::Arc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use wh_clickhouse::Schema;
use wh_types::{Clock, Mono};

/// Why the server ends a stream: `reason` of its `end`, and of `wavehouse_sse_streams_ended_total`.
///
/// What a client may do from one moment to the next (a token that runs out, a policy, a tenant) is asked once, when the
/// stream is opened: whoever makes it change while streams are open adds its reason here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The process stops.
    Stopping,
    /// The queue closed.
    Closed,
    /// A table of the stream is not there any more.
    TableGone,
    /// What the stream shows, or its filter, cannot be had of a changed table any more.
    ViewGone,
    /// It was too slow, and its client asked to be told so by its end.
    Slow,
    /// What it missed could not be read for a minute.
    HistoryUnavailable,
}

impl Reason {
    /// As clients see it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stopping => "stopping",
            Self::Closed => "closed",
            Self::TableGone => "table_gone",
            Self::ViewGone => "view_gone",
            Self::Slow => "slow",
            Self::HistoryUnavailable => "history_unavailable",
        }
    }
}

/// A place among the streams of a tenant and of the process.
#[derive(Debug)]
pub(super) struct Place {
    _tenant: OwnedSemaphorePermit,
    _process: OwnedSemaphorePermit,
}

impl Place {
    /// Takes one, or says what is full. The tenant's share is looked at first: one that is full is nobody else's.
    pub(super) fn take(app: &App, tenant: &TenantState) -> Result<Self, ApiError> {
        let take = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().ok();
        let Some(of_tenant) = take(&tenant.streams) else {
            app.meters.stream_refused("tenant");
            let most = tenant.runtime.limits.max_streams;
            let text = format!("this tenant has as many open streams as it may ({most}); try again later");
            return Err(ApiError::new(&codes::STREAM_TENANT_TOO_MANY, text));
        };
        let Some(of_process) = take(&app.streams) else {
            app.meters.stream_refused("process");
            let text = "this process has as many open streams as it allows; try again later";
            return Err(ApiError::new(&codes::STREAM_TOO_MANY, text));
        };
        Ok(Self { _tenant: of_tenant, _process: of_process })
    }
}

/// Counts a stream while it is open.
pub(super) struct Open {
    pub(super) meters: Arc<Meters>,
    clock: Arc<dyn Clock>,
    since: Mono,
    ended: Option<Reason>,
    _place: Place,
}

impl Open {
    pub(super) fn new(app: &App, place: Place) -> Self {
        let (meters, clock) = (Arc::clone(&app.meters), Arc::clone(&app.publishing.clock));
        meters.streams.increment(1.0);
        Self { since: clock.now(), meters, clock, ended: None, _place: place }
    }

    /// The server ends it. Without this word it was the client that went.
    pub(super) fn ends(&mut self, reason: Reason) {
        self.ended = Some(reason);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.meters.streams.decrement(1.0);
        self.meters.stream_seconds.record(self.clock.now().duration_since(self.since).as_secs_f64());
        self.meters.stream_ended(self.ended.map_or("client", Reason::name));
    }
}

/// Looks whether the tables of a stream are still there.
#[derive(Debug)]
pub(super) struct Tables {
    schema: watch::Receiver<Option<Arc<Schema>>>,
    names: Box<[Box<str>]>,
}

impl Tables {
    /// These are there now.
    pub(super) fn new<'a>(tenant: &TenantState, names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { schema: tenant.runtime.schema.watch(), names: names.into_iter().map(Into::into).collect() }
    }

    /// Returns once one is not, and says which.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn gone(&mut self) -> Box<str> {
        loop {
            if let Some(name) = self.missing() {
                return name;
            }
            if self.schema.changed().await.is_err() {
                // nobody reads the tables any more: this process stops
                return pending().await;
            }
        }
    }

    fn missing(&mut self) -> Option<Box<str>> {
        let schema = self.schema.borrow_and_update();
        let schema = schema.as_ref()?;
        self.names.iter().find(|name| schema.table(name).is_none()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages that say what a reason means.
    const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations/streams.md");

    #[test]
    fn every_reason_is_documented() {
        use Reason::{Closed, HistoryUnavailable, Slow, Stopping, TableGone, ViewGone};
        let text = std::fs::read_to_string(GUIDE).unwrap();
        for reason in [Stopping, Closed, TableGone, ViewGone, Slow, HistoryUnavailable] {
            assert!(text.contains(&format!("| `{}` |", reason.name())), "{GUIDE} does not say what {reason:?} means");
        }
    }
}
