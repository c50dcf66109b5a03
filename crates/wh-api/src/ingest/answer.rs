//! What a sender is told: one outcome for each record, and the status that follows from them (decision D22). Pure.

use super::{
    coalesce::{Failure, Outcome},
    records::{MAX_RESULTS, Records, Refused},
    wait::{Verdict, Verdicts},
};
use crate::{
    codes::{self, Code},
    error::ApiError,
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::{borrow::Cow, time::Duration};
use utoipa::ToSchema;
use wh_types::{Class, RowCursor};

/// Said where an earlier request with the same `Idempotency-Key` stored some of the records.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// What became of the records of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = IngestSummary)]
pub(crate) struct Summary {
    /// Records in the body, as far as it was read.
    total: u32,
    /// Durable in the queue.
    accepted: u32,
    /// Stored before under the same id.
    duplicates: u32,
    /// Refused; they will not do as they are.
    rejected: u32,
    /// How many of the accepted were not looked up, because the store of ids was away: they may double.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    unchecked: u32,
    /// With `wait=committed`: how many of the accepted are in ClickHouse.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    committed: Option<u32>,
    /// With `wait=committed`: how many of the accepted ClickHouse refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    parked: Option<u32>,
    /// Of a 202: the place of the last record that is not known to be committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cursor: Option<String>,
    /// The records that were not accepted (with `results=all`: all; with `wait=committed` also those not known to be
    /// committed), by index; at most 10,000.
    results: Vec<Entry>,
    /// There are more than `results` lists. The counts are exact.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    results_truncated: bool,
}

/// What became of one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = IngestResult)]
struct Entry {
    /// Its number in the body, from 0.
    index: u32,
    status: Status,
    /// Why it was not stored: stable, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[schema(value_type = Option<String>)]
    code: Option<Cow<'static, str>>,
    /// The column at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    column: Option<Box<str>>,
    /// The same, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    reason: Option<Box<str>>,
    /// Accepted without being looked up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    unchecked: bool,
    /// With `wait=committed`: the place of a durable record, `<epoch>-<sequence>.<row>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cursor: Option<String>,
    /// Where a refused record begins in the decoded body, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    offset: Option<usize>,
}

/// `accepted`: durable. `committed`: in ClickHouse. `parked`: ClickHouse refused it. `duplicate`: a record with its id is, from before. `rejected`: refused. `in_flight`: it may be stored. `not_attempted`: it is certainly not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = IngestStatus)]
#[serde(rename_all = "snake_case")]
enum Status {
    Accepted,
    Committed,
    Parked,
    Duplicate,
    Rejected,
    InFlight,
    NotAttempted,
}

impl Entry {
    fn stored(index: u32, status: Status, unchecked: bool) -> Self {
        Self { index, status, code: None, column: None, reason: None, unchecked, cursor: None, offset: None }
    }

    fn failed(index: u32, status: Status, failure: &Failure) -> Self {
        let (code, reason) = (Some(failure.code.name.into()), Some((*failure.reason).into()));
        Self { code, reason, ..Self::stored(index, status, false) }
    }
}

/// Which records `results` lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Those not accepted.
    #[default]
    Failed,
    /// All.
    All,
}

/// Puts together what became of every record. `outcomes`: of the accepted rows, in order, by consecutive rows. `waited`:
/// what is known of them after a wait.
pub(crate) fn conclude(
    records: &Records,
    outcomes: &[(u32, Outcome)],
    listing: Listing,
    waited: Option<&Verdicts>,
) -> Response {
    if waited.is_none()
        && listing == Listing::Failed
        && records.refusals.is_empty()
        && outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Stored(_)))
    {
        return all_accepted(records.total);
    }
    let mut tally = Tally { waited, ..Tally::default() };
    let mut refusals = records.refusals.iter().peekable();
    let mut fates = outcomes.iter().flat_map(|(rows, outcome)| (0..*rows).map(move |number| (outcome, number)));
    let mut rows = records.indexes().zip(&mut fates).peekable();
    loop {
        let refusal_first = match (refusals.peek(), rows.peek()) {
            (Some(refused), Some((row, _))) => refused.index < *row,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => break,
        };
        if refusal_first {
            let Some(Refused { index, offset, refusal }) = refusals.next() else { break };
            tally.list(|| Entry {
                offset: Some(*offset),
                code: Some(refusal.code.name.into()),
                column: refusal.column.clone(),
                reason: Some(refusal.reason.clone()),
                ..Entry::stored(*index, Status::Rejected, false)
            });
        } else if let Some((index, (outcome, number))) = rows.next() {
            tally.row(index, outcome, number, listing);
        }
    }
    tally.answer(records)
}

#[derive(Default)]
struct Tally<'a> {
    waited: Option<&'a Verdicts>,
    committed: u32,
    parked: u32,
    /// Durable rows of which no more is known, and the last one's place.
    open: u32,
    last_open: Option<RowCursor>,
    accepted: u32,
    duplicates: u32,
    unchecked: u32,
    /// Some record was stored by an earlier request with the same key.
    replayed: bool,
    /// Rows that the queue refused for what they are.
    unfit: u32,
    unfit_code: Option<&'static Code>,
    /// The most doubtful failure of rows that may be sent again.
    failure: Option<(Failure, Status)>,
    retry_after: Duration,
    results: Vec<Entry>,
    truncated: bool,
}

impl Tally<'_> {
    fn list(&mut self, entry: impl FnOnce() -> Entry) {
        if self.results.len() < MAX_RESULTS {
            self.results.push(entry());
        } else {
            self.truncated = true;
        }
    }

    /// `number`: which of the rows that fared so.
    fn row(&mut self, index: u32, outcome: &Outcome, number: u32, listing: Listing) {
        let (status, failure) = match outcome {
            Outcome::Stored(_) | Outcome::Unchecked(_) | Outcome::Replayed => {
                let unchecked = matches!(outcome, Outcome::Unchecked(_));
                self.accepted += 1;
                self.unchecked += u32::from(unchecked);
                self.replayed |= matches!(outcome, Outcome::Replayed);
                if let Some(waited) = self.waited {
                    let place = outcome.place().map(|place| RowCursor { row: place.row + number, ..place });
                    return self.settled(Entry::stored(index, Status::Accepted, unchecked), place, listing, waited);
                }
                if listing == Listing::All {
                    self.list(|| Entry::stored(index, Status::Accepted, unchecked));
                }
                return;
            }
            Outcome::Duplicate => {
                self.duplicates += 1;
                self.list(|| Entry::stored(index, Status::Duplicate, false));
                return;
            }
            Outcome::Unknown(failure) => (Status::InFlight, failure),
            Outcome::Refused(failure) if failure.rejects() => (Status::Rejected, failure),
            Outcome::Refused(failure) => (Status::NotAttempted, failure),
        };
        self.list(|| Entry::failed(index, status, failure));
        if status == Status::Rejected {
            self.unfit += 1;
            self.unfit_code = Some(failure.code);
            return;
        }
        let seconds = failure.code.retry_after.unwrap_or(30).into();
        self.retry_after = self.retry_after.max(failure.class.retry_after().unwrap_or(Duration::from_secs(seconds)));
        let weight = |failure: &Failure, status| (failure.class == Class::Conflict, status == Status::InFlight);
        if self.failure.as_ref().is_none_or(|(last, was)| weight(failure, status) >= weight(last, *was)) {
            self.failure = Some((failure.clone(), status));
        }
    }

    /// A durable row of a request that waited. Of one that an earlier request stored, the place is not known.
    fn settled(&mut self, mut entry: Entry, place: Option<RowCursor>, listing: Listing, waited: &Verdicts) {
        match place.map_or(Verdict::Open, |place| waited.of(place)) {
            Verdict::Committed => {
                self.committed += 1;
                if listing == Listing::Failed {
                    return;
                }
                entry.status = Status::Committed;
            }
            Verdict::Parked(code) => {
                self.parked += 1;
                (entry.status, entry.code) = (Status::Parked, Some(code.to_owned().into()));
            }
            Verdict::Open => {
                self.open += 1;
                self.last_open = self.last_open.max(place);
            }
        }
        entry.cursor = place.map(|place| place.to_string());
        self.list(|| entry);
    }

    fn answer(self, records: &Records) -> Response {
        let rejected = records.rejected() + self.unfit;
        let summary = Summary {
            total: records.total,
            accepted: self.accepted,
            duplicates: self.duplicates,
            unchecked: self.unchecked,
            rejected,
            committed: self.waited.map(|_| self.committed),
            parked: self.waited.map(|_| self.parked),
            cursor: self.last_open.map(|place| place.to_string()),
            results_truncated: self.truncated || records.rejected() as usize > records.refusals.len(),
            results: self.results,
        };
        if let Some((failure, _)) = self.failure {
            let text = format!("not every record was stored: {}", failure.reason);
            let mut error = ApiError::new(failure.code, text);
            if failure.class != Class::Conflict {
                error = error.with_status(503).with_retry_after(self.retry_after);
            }
            return replayed(self.replayed, error.with_summary(summary).into_response());
        }
        if rejected == 0 || summary.accepted + summary.duplicates > 0 {
            let status = match (rejected + self.parked, self.open) {
                (0, 0) => StatusCode::OK,
                (0, _) => StatusCode::ACCEPTED,
                _ => StatusCode::MULTI_STATUS,
            };
            return replayed(self.replayed, json(status, serde_json::to_vec(&summary).unwrap_or_default()));
        }
        let refused = records.refusals.first().map(|first| (first.refusal.code, &*first.refusal.reason));
        let (code, reason) = match (refused, self.unfit_code) {
            (Some((code, reason)), None) if records.refused_by_code().count() == 1 => (code, reason),
            (None, Some(code)) => (code, "the queue cannot carry a record this large"),
            _ => (&codes::ALL_REJECTED, "see results"),
        };
        let text = if summary.total == 1 { reason.to_owned() } else { format!("every record was refused: {reason}") };
        ApiError::new(code, text).with_summary(summary).into_response()
    }
}

fn replayed(replayed: bool, mut response: Response) -> Response {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The answer of nearly every request.
fn all_accepted(total: u32) -> Response {
    let body = match total {
        1 => r#"{"total":1,"accepted":1,"duplicates":0,"rejected":0,"results":[]}"#.into(),
        _ => format!(r#"{{"total":{total},"accepted":{total},"duplicates":0,"rejected":0,"results":[]}}"#).into_bytes(),
    };
    json(StatusCode::OK, body)
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
