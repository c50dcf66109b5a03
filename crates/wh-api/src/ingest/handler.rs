//! The handler: what is asked of a request, in what order, and the walk from its body to its answer.

use super::{
    answer::{Listing, Summary, conclude},
    coalesce::{Failure, Outcome, Stamp},
    format::declared,
    judge::{Judge, Refusal},
    plan::Plan,
    records::{Form, Records, Walk},
};
use crate::{
    app::App,
    body::{self, Bounds},
    codes,
    error::ApiError,
    params::Params,
    served::TableState,
};
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;

/// `POST /v1/ingest?table=`.
pub(crate) async fn ingest(State(app): State<Arc<App>>, request: Request) -> Response {
    match run(&app, request).await {
        Ok(response) => response,
        Err(error) => error.with_summary(Summary::default()).into_response(),
    }
}

async fn run(app: &App, request: Request) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let tenant = app.served.of_headers(&head.headers)?;
    app.key.allow(&head.headers, &app.meters)?;
    let params = Params::new(&head.uri);
    let (table, plan) = tenant.table(&params.table()?, &app.publishing)?;
    let listing = match params.get("results")?.as_deref() {
        None | Some("failed") => Listing::Failed,
        Some("all") => Listing::All,
        Some(_) => return Err(ApiError::new(&codes::REQUEST_INVALID, "\"results\" is \"failed\" or \"all\"")),
    };
    let form = declared(&head.headers)?;
    let bounds = Bounds { cap: app.options.ingest_body_bytes, time: app.options.body_timeout, share: 2 };
    let taken = body::take(&head.headers, body, bounds, &app.budget).await?;
    let stamp = Stamp { received: app.publishing.clock.wall(), trace: traceparent(&head.headers) };
    drop(head);

    let records = judged(app, &table, &plan, form, &taken.bytes, tenant.runtime.limits.max_row_bytes).await?;
    if records.accepted() == 0 {
        return Ok(conclude(&records, &[], listing));
    }
    let pending = table.coalescer.hand_over(records.rows(&taken.bytes), &stamp, taken.held).map_err(|_| {
        ApiError::new(&codes::SERVER_BUSY, "too many rows of this table wait to be stored; try again later")
    })?;
    drop(taken.bytes);
    let mut outcomes = Vec::with_capacity(pending.len());
    for part in pending {
        let outcome = part.outcome.await.unwrap_or_else(|_| Outcome::Unknown(Failure::unknown()));
        outcomes.push((part.rows, outcome));
    }
    Ok(conclude(&records, &outcomes, listing))
}

/// Judges a body, pausing between windows so that a large one does not hold its thread.
async fn judged(
    app: &App,
    table: &TableState,
    plan: &Plan,
    form: Form,
    body: &Bytes,
    max_row: usize,
) -> Result<Records, ApiError> {
    let whole = |refusal: Refusal| ApiError::new(refusal.code, refusal.reason);
    let mut records = Records::default();
    let mut judge = Judge::new(plan);
    let mut walk = Walk::begin(form, body, max_row).map_err(whole)?;
    while walk.step(&mut judge, &mut records).map_err(whole)? {
        tokio::task::yield_now().await;
    }
    for (column, values) in plan.columns.iter().zip(judge.undecided).filter(|(_, values)| *values > 0) {
        column.undecided.get_or_init(|| app.meters.undecided(&column.type_text)).increment(values.into());
    }
    for (code, count) in records.refused_by_code() {
        table.coalescer.meters().rejected(code, count);
    }
    Ok(records)
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
        for bad in ["", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", &good[1..], &format!("{good}0")] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
