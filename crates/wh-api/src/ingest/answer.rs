//! What a sender is told: one outcome for each record, and the status that follows from them (decision D22). Pure.

use super::{
    coalesce::{Failure, Outcome},
    records::{MAX_RESULTS, Records, Refused},
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
use std::time::Duration;
use utoipa::ToSchema;
use wh_types::Class;

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
    /// The records that were not accepted (with `results=all`: all), by index; at most 10,000.
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
    code: Option<&'static str>,
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
    /// Where a refused record begins in the decoded body, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    offset: Option<usize>,
}

/// `accepted`: durable. `duplicate`: a record with its id is, from before. `rejected`: refused. `in_flight`: it may be stored. `not_attempted`: it is certainly not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = IngestStatus)]
#[serde(rename_all = "snake_case")]
enum Status {
    Accepted,
    Duplicate,
    Rejected,
    InFlight,
    NotAttempted,
}

impl Entry {
    fn stored(index: u32, status: Status, unchecked: bool) -> Self {
        Self { index, status, code: None, column: None, reason: None, unchecked, offset: None }
    }

    fn failed(index: u32, status: Status, failure: &Failure) -> Self {
        let (code, reason) = (Some(failure.code.name), Some((*failure.reason).into()));
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

/// Puts together what became of every record. `outcomes`: of the accepted rows, in order, by consecutive rows.
pub(crate) fn conclude(records: &Records, outcomes: &[(u32, Outcome)], listing: Listing) -> Response {
    if listing == Listing::Failed
        && records.refusals.is_empty()
        && outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Stored(_)))
    {
        return all_accepted(records.total);
    }
    let mut tally = Tally::default();
    let mut refusals = records.refusals.iter().peekable();
    let mut fates = outcomes.iter().flat_map(|(rows, outcome)| std::iter::repeat_n(outcome, *rows as usize));
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
                code: Some(refusal.code.name),
                column: refusal.column.clone(),
                reason: Some(refusal.reason.clone()),
                ..Entry::stored(*index, Status::Rejected, false)
            });
        } else if let Some((index, outcome)) = rows.next() {
            tally.row(index, outcome, listing);
        }
    }
    tally.answer(records)
}

#[derive(Default)]
struct Tally {
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

impl Tally {
    fn list(&mut self, entry: impl FnOnce() -> Entry) {
        if self.results.len() < MAX_RESULTS {
            self.results.push(entry());
        } else {
            self.truncated = true;
        }
    }

    fn row(&mut self, index: u32, outcome: &Outcome, listing: Listing) {
        let (status, failure) = match outcome {
            Outcome::Stored(_) | Outcome::Unchecked(_) | Outcome::Replayed => {
                let unchecked = matches!(outcome, Outcome::Unchecked(_));
                self.accepted += 1;
                self.unchecked += u32::from(unchecked);
                self.replayed |= matches!(outcome, Outcome::Replayed);
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

    fn answer(self, records: &Records) -> Response {
        let rejected = records.rejected() + self.unfit;
        let summary = Summary {
            total: records.total,
            accepted: self.accepted,
            duplicates: self.duplicates,
            unchecked: self.unchecked,
            rejected,
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
            let status = if rejected == 0 { StatusCode::OK } else { StatusCode::MULTI_STATUS };
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
