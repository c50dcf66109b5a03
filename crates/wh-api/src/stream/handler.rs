//! The handler: who may open a stream, and the body that never ends by itself.

use super::{
    frame::{self, Frames},
    hub::Reader,
};
use crate::{app::App, codes, error::ApiError, metrics::Meters, params::Params};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::Stream;
use http::{HeaderMap, header};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::sync::OwnedSemaphorePermit;
use wh_types::{Clock, Mono, RowCursor, Stop, Table, Timestamp};

/// `GET /v1/stream?table=`.
pub(crate) async fn stream(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let tenant = app.served.of_headers(request.headers())?;
    app.key.allow(request.headers(), &app.meters)?;
    let params = Params::new(request.uri());
    params.only(&["table", "since"])?;
    let name = params.table()?;
    tenant.table_schema(&name)?;
    let table = Table::new(&name).map_err(|why| ApiError::new(&codes::TABLE_NOT_FOUND, why.to_string()))?;
    let resume = resume(request.headers(), &params)?;
    let too_many = || ApiError::new(&codes::STREAM_TOO_MANY, "too many streams are open; try again later");
    let slot = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| too_many())?;
    let reader = app.hub.read(&tenant.runtime.tenant, &table).await?;
    let missed = resume.map(|from| frame::gap_between(from.as_deref(), None));
    let live = Live {
        reader,
        opening: [Some(frame::ready(&name)), missed.map(|gap| gap.bytes)],
        last: None,
        ended: false,
        keepalive: app.options.keepalive,
        stop: app.publishing.stop.clone(),
        _open: Open::new(Arc::clone(&app.meters), Arc::clone(&app.publishing.clock), slot),
    };
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(events(live))).into_response())
}

/// Where a client that comes back was. `Some(None)`: at a time, not at a row.
fn resume(headers: &HeaderMap, params: &Params<'_>) -> Result<Option<Option<String>>, ApiError> {
    let bad =
        |what: &str| ApiError::new(&codes::CURSOR_INVALID, format!("{what} cannot be read as a place in a stream"));
    if let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) {
        let id = id.to_str().ok().and_then(|id| id.parse::<RowCursor>().ok());
        return id.map(|id| Some(Some(id.to_string()))).ok_or_else(|| bad("Last-Event-ID"));
    }
    match params.get("since")? {
        None => Ok(None),
        Some(since) => match (since.parse::<RowCursor>(), since.parse::<Timestamp>()) {
            (Ok(id), _) => Ok(Some(Some(id.to_string()))),
            (_, Ok(_)) => Ok(Some(None)),
            (Err(_), Err(_)) => Err(bad("since")),
        },
    }
}

/// An open stream.
struct Live {
    reader: Reader,
    opening: [Option<Bytes>; 2],
    /// The block last sent whole.
    last: Option<String>,
    ended: bool,
    keepalive: Duration,
    stop: Stop,
    _open: Open,
}

fn events(live: Live) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures::stream::unfold(live, |mut live| async move {
        let bytes = live.next().await?;
        Some((Ok(bytes), live))
    })
}

impl Live {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.opening.iter_mut().find_map(Option::take) {
            return Some(bytes);
        }
        if self.ended {
            return None;
        }
        let reason = tokio::select! {
            biased;
            () = self.stop.wait() => "stopping",
            frames = tokio::time::timeout(self.keepalive, self.reader.next()) => match frames {
                Ok(Some(frames)) => return Some(self.send(frames)),
                Ok(None) => "closed",
                Err(_) => {
                    let meters = &self._open.meters.keepalives;
                    meters.frames.increment(1);
                    meters.bytes.increment(frame::KEEPALIVE.len() as u64);
                    return Some(frame::KEEPALIVE);
                }
            },
        };
        self.ended = true;
        Some(frame::end(reason, self.last.as_deref()))
    }

    fn send(&mut self, frames: Frames) -> Bytes {
        let meters = &self._open.meters;
        let kind = if frames.gap { &meters.gaps } else { &meters.events };
        kind.frames.increment(frames.count);
        kind.bytes.increment(frames.bytes.len() as u64);
        if let Some(cursor) = frames.cursor {
            let row = u32::try_from(frames.count.saturating_sub(1)).unwrap_or(u32::MAX);
            self.last = Some(RowCursor { block: cursor, row }.to_string());
        }
        frames.bytes
    }
}

/// Counts a stream while it is open.
struct Open {
    meters: Arc<Meters>,
    clock: Arc<dyn Clock>,
    since: Mono,
    _slot: OwnedSemaphorePermit,
}

impl Open {
    fn new(meters: Arc<Meters>, clock: Arc<dyn Clock>, slot: OwnedSemaphorePermit) -> Self {
        meters.streams.increment(1.0);
        Self { since: clock.now(), meters, clock, _slot: slot }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.meters.streams.decrement(1.0);
        self.meters.stream_seconds.record(self.clock.now().duration_since(self.since).as_secs_f64());
    }
}
