//! The handler: what is asked of a request, in what order, and the walk from its body to its answer.

use super::{
    answer::{Listing, Summary, conclude},
    coalesce::{Failure, Fates, Fresh, Once, Outcome, Pending, Publishing, Sender, Stamp},
    delimited::{Dialect, Piece, Sheet},
    format::declared,
    judge::{Judge, Refusal},
    plan::Plan,
    records::{Form, Records, Walk},
    wait::{self, Verdicts, Waiting},
};
use crate::{
    app::App,
    body::{self, Bounds, Taken},
    budget::Held,
    codes,
    error::ApiError,
    openapi::IngestProblem,
    params::Params,
    served::TableState,
};
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::HeaderMap;
use std::{sync::Arc, time::Duration};
use wh_types::{Class, Mono};

/// Stores records of one table.
///
/// The answer comes when they are durable in the queue. They are in ClickHouse about a second later.
#[utoipa::path(
    post, path = "/v1/ingest", operation_id = "ingest", tag = "events",
    params(
        ("table" = String, Query, description = "The table."),
        ("results" = Option<String>, Query, description = "`all`: `results` also lists the accepted records. Default \
            `failed`.", example = "all"),
        ("wait" = Option<String>, Query, description = "`committed`: answer once every durable record is in ClickHouse or \
            parked.", example = "committed"),
        ("timeout" = Option<String>, Query, description = "How long to wait at most, `1ms` to `30s`. Default `10s`.",
            example = "5s"),
        ("X-Tenant-ID" = String, Header, description = "The tenant; absent or empty means `0`."),
        ("X-Request-ID" = String, Header, description = "Echoed in the answer and in the log."),
        ("Idempotency-Key" = String, Header, description = "At most 255 bytes. The same body sent again under the same \
            key, to the same table, is stored once."),
        ("Content-Encoding" = String, Header, description = "`gzip`, `zstd` or `lz4` (frame), one of them."),
    ),
    request_body(
        description = "At most 16 MiB decoded (`ingest.max_body_bytes`). CSV and TSV take `; header=present` or \
            `; header=absent`.",
        content(
            (serde_json::Value = "application/json", example = json!([{"id": 1, "note": "one object, or an array"}])),
            (String = "application/x-ndjson", example = "{\"id\":1}\n{\"id\":2}\n"),
            (String = "text/csv", example = "id,note\n1,first\n"),
            (String = "text/tab-separated-values", example = "id\tnote\n1\tfirst\n"),
        ),
    ),
    responses(
        (status = 200, description = "Every record was accepted or is a duplicate.", body = Summary,
            headers(("Idempotency-Replayed" = bool, description = "`true`: an earlier request with this key stored some \
                of the records."))),
        (status = 202, description = "With `wait=committed`: every record is durable, and some are not known to be \
            committed yet.", body = Summary),
        (status = 207, description = "Some records were refused, or parked, the others accepted.", body = Summary),
        (status = 400, description = "Every record was refused, or the body as a whole.", body = IngestProblem),
        (status = 401, description = "A presented credential is wrong.", body = IngestProblem),
        (status = 404, description = "No such tenant or table.", body = IngestProblem),
        (status = 408, description = "The body arrived too slowly. Nothing was stored.", body = IngestProblem,
            headers(("Retry-After" = u32, description = "Seconds."))),
        (status = 409, description = "The `Idempotency-Key` came with another body before.", body = IngestProblem),
        (status = 413, description = "The body is too large, decoded, or has too many records.", body = IngestProblem),
        (status = 415, description = "The type or the encoding of the body is not taken.", body = IngestProblem),
        (status = 503, description = "Some record is `in_flight` or `not_attempted`, or nothing was read.",
            body = IngestProblem, headers(("Retry-After" = u32, description = "Seconds."))),
        (status = 501, description = "This server keeps no keys, so it takes no `Idempotency-Key`.", body = IngestProblem),
    ),
)]
pub(crate) async fn ingest(State(app): State<Arc<App>>, request: Request) -> Response {
    match run(&app, request).await {
        Ok(response) => response,
        Err(error) => error.with_summary(Summary::default()).into_response(),
    }
}

async fn run(app: &App, request: Request) -> Result<Response, ApiError> {
    let until = app.publishing.clock.now() + app.options.request_timeout;
    let (head, body) = request.into_parts();
    let tenant = app.served.of_headers(&head.headers)?;
    app.key.allow(&head.headers, &app.meters)?;
    let params = Params::new(&head.uri);
    params.only(&["table", "results", "wait", "timeout"])?;
    let (table, plan) = tenant.table(&params.table()?, &app.publishing)?;
    let listing = match params.get("results")?.as_deref() {
        None | Some("failed") => Listing::Failed,
        Some("all") => Listing::All,
        Some(_) => return Err(ApiError::new(&codes::REQUEST_INVALID, "\"results\" is \"failed\" or \"all\"")),
    };
    let wait = wait::asked(&params)?;
    let form = declared(&head.headers)?;
    let key = Once::key_of(&head.headers)?;
    if key.is_some() && app.publishing.claims.is_none() {
        let text = "Idempotency-Key is not supported: this server keeps no keys (dedupe.backend is none)";
        return Err(ApiError::new(&codes::IDEMPOTENCY_UNSUPPORTED, text));
    }
    // rows of cells are made a piece at a time, and counted then
    let share = if matches!(form, Form::Delimited(_)) { 1 } else { 2 };
    let bounds = Bounds { cap: app.options.ingest_body_bytes, time: app.options.body_timeout, share };
    let idle = app.options.body_idle_timeout;
    let taken = body::take_moving(&head.headers, body, bounds, idle, &tenant.budget).await?;
    let stamp = Stamp { received: app.publishing.clock.wall(), trace: traceparent(&head.headers) };
    drop(head);
    let once = match key {
        Some(key) => Some(Arc::new(Once::new(key, form, &taken.bytes).await)),
        None => None,
    };
    let writing = Writing { app, table, plan, stamp, once, until, wait, max_row: tenant.runtime.limits.max_row_bytes };
    match form {
        Form::Delimited(dialect) => writing.cells(dialect, taken, listing).await,
        Form::Document | Form::Lines => writing.objects(form, taken, listing).await,
    }
}

/// A request whose body is there.
struct Writing<'a> {
    app: &'a App,
    table: Arc<TableState>,
    plan: Arc<Plan>,
    stamp: Stamp,
    /// Where it may come again under a key.
    once: Option<Arc<Once>>,
    /// When the answer is due, whatever is known then.
    until: Mono,
    /// How long to wait for committed rows.
    wait: Option<Duration>,
    max_row: usize,
}

impl Writing<'_> {
    /// JSON objects: each row is its record's own text, and all are handed over at once.
    async fn objects(&self, form: Form, Taken { bytes, held }: Taken, listing: Listing) -> Result<Response, ApiError> {
        let (mut judge, mut records) = (Judge::new(&self.plan), Records::default());
        let mut walk = Walk::begin(form, &bytes, self.max_row).map_err(whole)?;
        while walk.step(&mut judge, &mut records).map_err(whole)? {
            // a large body does not hold its thread
            tokio::task::yield_now().await;
        }
        self.count(&judge, &records);
        if records.accepted() == 0 {
            return Ok(conclude(&records, &[], listing, self.wait(&[]).await.as_ref()));
        }
        let held = Arc::new(held);
        let handed = self.hand_over(records.fresh(&bytes), &held);
        drop(bytes);
        let outcomes = match handed {
            Ok(pending) => self.outcomes(pending).await,
            Err(failure) => vec![self.not_tried(records.accepted(), failure)],
        };
        // what is kept of a few records is little; of many it counts while they are waited for
        let _held = (records.total > wait::FEW).then_some(held);
        let waited = self.wait(&outcomes).await;
        Ok(conclude(&records, &outcomes, listing, waited.as_ref()))
    }

    /// Lines of cells: all are judged, and then the rows are made and stored, a piece after the other.
    async fn cells(&self, dialect: Dialect, taken: Taken, listing: Listing) -> Result<Response, ApiError> {
        let Taken { bytes, mut held } = taken;
        let (mut judge, mut records) = (Judge::new(&self.plan), Records::default());
        let mut sheet = Sheet::begin(dialect, &bytes, &self.plan, self.max_row).map_err(whole)?;
        let body = held.bytes();
        while sheet.step(&mut judge, &mut records).map_err(whole)? {
            held.grow_to(body + sheet.held()).await?;
            tokio::task::yield_now().await;
        }
        held.grow_to(body + sheet.held()).await?;
        self.count(&judge, &records);
        let held = Arc::new(held);
        let (mut places, mut piece, mut outcomes) = (records.places(), Piece::default(), Vec::new());
        let mut left = records.accepted();
        let mut indexes = records.indexes();
        while left > 0 {
            sheet.piece(&mut places, &mut judge, &mut piece);
            let failure = match self.hand_over(piece.fresh(indexes.by_ref()), &held) {
                Ok(pending) => {
                    left = left.saturating_sub(piece.len());
                    let part = self.outcomes(pending).await;
                    let failure = part.iter().find_map(|(_, outcome)| ends(outcome));
                    outcomes.extend(part);
                    failure
                }
                Err(failure) => Some(failure),
            };
            if let Some(failure) = failure {
                outcomes.push(self.not_tried(left, failure));
                break;
            }
        }
        drop((piece, sheet));
        drop(bytes);
        let _held = (records.total > wait::FEW).then_some(held);
        let waited = self.wait(&outcomes).await;
        Ok(conclude(&records, &outcomes, listing, waited.as_ref()))
    }

    fn count(&self, judge: &Judge<'_>, records: &Records) {
        for (column, values) in self.plan.columns.iter().zip(&judge.undecided).filter(|(_, values)| **values > 0) {
            let meter = column.undecided.get_or_init(|| self.app.meters.undecided(&column.type_text));
            meter.increment((*values).into());
        }
        if judge.without_id > 0 {
            self.table.coalescer.without_id(judge.without_id);
        }
        for (code, count) in records.refused_by_code() {
            self.table.coalescer.meters().rejected(code, count);
        }
    }

    fn hand_over<'r>(&self, rows: impl Iterator<Item = Fresh<'r>>, held: &Arc<Held>) -> Result<Vec<Pending>, Failure> {
        if self.app.publishing.clock.now() >= self.until {
            return Err(too_late("the request took too long"));
        }
        let from = Sender { stamp: &self.stamp, held, once: self.once.as_ref() };
        self.table.coalescer.hand_over(rows, &from).map_err(|_| {
            let after = codes::SERVER_BUSY.retry_after.unwrap_or_default();
            Failure {
                class: Class::Exhausted { retry_after: Duration::from_secs(after.into()) },
                code: &codes::SERVER_BUSY,
                reason: "too many rows of this table wait to be stored; try again later".into(),
            }
        })
    }

    /// Waits for durable rows to be committed, where that is asked for.
    async fn wait(&self, outcomes: &[(u32, Outcome)]) -> Option<Verdicts> {
        let within = self.wait?;
        let durable = outcomes.iter().filter_map(|(rows, outcome)| Some((outcome.place()?, *rows)));
        let rows: Vec<_> = durable.collect();
        let Publishing { broker, clock, stop, .. } = &*self.app.publishing;
        let (tenant, table) = self.table.coalescer.names();
        let waiting = Waiting { broker, clock: &**clock, stop, tenant, table };
        Some(waiting.until_committed(&self.app.waits, &rows, within).await)
    }

    fn not_tried(&self, rows: usize, failure: Failure) -> (u32, Outcome) {
        self.table.coalescer.meters().not_attempted(rows as u64);
        (u32::try_from(rows).unwrap_or(u32::MAX), Outcome::Refused(failure))
    }

    /// Waits for what became of each part; when the answer is due, what is not known then is told as such.
    async fn outcomes(&self, pending: Vec<Pending>) -> Vec<(u32, Outcome)> {
        let mut outcomes = Vec::with_capacity(pending.len());
        for part in pending {
            let fates = match tokio::time::timeout_at(self.until, part.outcome).await {
                Ok(fates) => fates.unwrap_or_else(|_| Fates::All(Outcome::Unknown(Failure::unknown()))),
                Err(_) => {
                    let failure = too_late("the request took too long to wait for its outcome");
                    Fates::All(Outcome::Unknown(failure))
                }
            };
            match fates {
                Fates::All(outcome) => outcomes.push((part.rows, outcome)),
                Fates::Each(each) => outcomes.extend(each),
            }
        }
        outcomes
    }
}

/// Why the rows behind one with this outcome are not tried: they would fare no better, or be stored before it.
fn ends(outcome: &Outcome) -> Option<Failure> {
    match outcome {
        Outcome::Stored(_) | Outcome::Unchecked(_) | Outcome::Duplicate | Outcome::Replayed => None,
        Outcome::Refused(failure) if failure.rejects() => None,
        // that is about this record alone
        Outcome::Unknown(failure) if failure.code == &codes::DEDUPE_BUSY => None,
        Outcome::Refused(failure) => Some(failure.clone()),
        Outcome::Unknown(failure) => {
            let reason = format!("not tried, because of a record before it: {}", failure.reason);
            Some(Failure { class: Class::Unavailable, code: failure.code, reason: reason.into() })
        }
    }
}

fn too_late(reason: &str) -> Failure {
    Failure { class: Class::Unavailable, code: &codes::REQUEST_TIMEOUT, reason: reason.into() }
}

fn whole(refusal: Refusal) -> ApiError {
    ApiError::new(refusal.code, refusal.reason)
}

/// The W3C trace context of a request, if it has a well-formed one.
fn traceparent(headers: &HeaderMap) -> Option<Arc<str>> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let digits = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let shape = |(at, b): (usize, u8)| if matches!(at, 2 | 35 | 52) { b == b'-' } else { digits(b) };
    (text.len() == 55 && text.bytes().enumerate().all(shape)).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_trace_context_is_taken_over_when_it_is_one() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", HeaderValue::from_str(text).unwrap());
            traceparent(&headers)
        };
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(of(good).as_deref(), Some(good));
        for bad in ["", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01", &good[1..], &format!("{good}0")] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
