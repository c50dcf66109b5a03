//! A failed request, before it has its id. The edge turns it into the one envelope.

use crate::{
    codes::{self, Code},
    ingest::Summary,
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use std::{sync::Arc, time::Duration};
use utoipa::ToSchema;

/// Most bytes of a text in an answer that came from outside.
const ECHO_LIMIT: usize = 128;

/// What is answered instead of what was asked for.
#[derive(Clone, Debug)]
pub(crate) struct ApiError(Arc<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    code: &'static Code,
    status: u16,
    message: String,
    retry_after: Option<u32>,
    summary: Option<Summary>,
}

/// Every answer of 400 and above.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Envelope<'a> {
    #[serde(flatten)]
    #[schema(ignore)]
    summary: Option<&'a Summary>,
    /// What went wrong, for people.
    error: &'a str,
    /// Stable: decide by it, never by the text.
    code: &'a str,
    /// Whether the same request may succeed later; `Retry-After` says when.
    retryable: bool,
    /// As in `X-Request-ID`.
    request_id: &'a str,
}

impl ApiError {
    pub(crate) fn new(code: &'static Code, message: impl Into<String>) -> Self {
        let (status, retry_after) = (code.status, code.retry_after);
        Self(Arc::new(Inner { code, status, message: message.into(), retry_after, summary: None }))
    }

    /// With another status than the code's own.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        Arc::make_mut(&mut self.0).status = status;
        self
    }

    /// With its text in other words.
    pub(crate) fn reworded(mut self, words: impl FnOnce(&str) -> String) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.message = words(&inner.message);
        self
    }

    /// With the delay the failure itself named. A code that allows no retry stays so.
    pub(crate) fn with_retry_after(mut self, delay: Duration) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        if inner.code.retryable() {
            inner.retry_after = Some(whole_seconds(delay));
        }
        self
    }

    /// Never to be retried, whatever the code says: for calls whose repeat would act twice.
    pub(crate) fn without_retry(mut self) -> Self {
        Arc::make_mut(&mut self.0).retry_after = None;
        self
    }

    /// With the outcome of each record.
    pub(crate) fn with_summary(mut self, summary: Summary) -> Self {
        Arc::make_mut(&mut self.0).summary = Some(summary);
        self
    }

    /// With a summary of no records, if it has none: where a path promises one.
    pub(crate) fn with_some_summary(self) -> Self {
        if self.0.summary.is_some() { self } else { self.with_summary(Summary::default()) }
    }

    pub(crate) fn code(&self) -> &'static Code {
        self.0.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// The envelope with the id of the request.
    pub(crate) fn body(&self, request_id: &str) -> Vec<u8> {
        let Inner { code, message, retry_after, summary, .. } = &*self.0;
        let retryable = retry_after.is_some();
        let summary = summary.as_ref();
        let envelope = Envelope { summary, error: message, code: code.name, retryable, request_id };
        serde_json::to_vec(&envelope).unwrap_or_default()
    }
}

impl IntoResponse for ApiError {
    /// Without a body: the edge, which knows the request's id, writes it.
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if let Some(seconds) = self.0.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.0.status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Operator"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Rounded up, at least 1.
fn whole_seconds(delay: Duration) -> u32 {
    u32::try_from(delay.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1)
}

/// A name from outside as it is shown in a text: quoted, escaped and bounded.
pub(crate) fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(&name[..name.len().min(ECHO_LIMIT)]);
    let more = if name.len() > ECHO_LIMIT { "…" } else { "" };
    format!("{text:?}{more}")
}

/// A fault of ours.
pub(crate) fn internal() -> ApiError {
    ApiError::new(&codes::INTERNAL, "internal server error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_has_four_members_and_the_headers_follow_the_code() {
        let full = ApiError::new(&codes::QUEUE_FULL, "full").with_retry_after(Duration::from_millis(1_200));
        let body: serde_json::Value = serde_json::from_slice(&full.body("id-1")).unwrap();
        let expected =
            serde_json::json!({"error": "full", "code": "queue.full", "retryable": true, "request_id": "id-1"});
        assert_eq!(body, expected);
        let response = full.into_response();
        assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (503, &HeaderValue::from(2)));

        let bad = ApiError::new(&codes::JSON_MALFORMED, "x").with_retry_after(Duration::from_secs(1)).into_response();
        assert!(!bad.headers().contains_key("retry-after"));
    }

    #[test]
    fn names_from_outside_are_bounded_and_escaped() {
        assert_eq!(shown(b"a\"\n"), r#""a\"\n""#);
        assert!(shown(&[b'x'; 5_000]).len() < 150);
        assert_eq!(shown(&[0xff, b'a']), "\"\u{fffd}a\"");
    }
}
