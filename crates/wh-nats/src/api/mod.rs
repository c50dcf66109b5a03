//! The JetStream API: requests and answers in JSON, errors by number.
//!
//! Answers are read as JSON values and the fields that matter are picked, so that a newer server's fields and values are
//! neither lost nor fatal.

mod consumer;
mod direct;
mod fields;
mod stream;

pub use consumer::{ConsumerInfo, ConsumerList, Progress};
pub use direct::{Batch, BatchStart, DirectBatch, DirectGet, Stored};
pub use stream::StreamState;

use crate::{Connection, Error, Kind, Result, error::ApiError};
use bytes::Bytes;
use serde_json::Value;
use std::time::Duration;

/// JetStream, over a connection.
#[derive(Clone, Debug)]
pub struct Api {
    connection: Connection,
}

/// Pages of a list, at most: far above anything a topology has.
const MAX_PAGES: usize = 10_000;

impl Api {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// The connection.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn timeout(&self) -> Duration {
        self.connection.options().request_timeout
    }

    /// A request of the JSON API. `tail` is what follows `$JS.API.`; [`Value::Null`] sends an empty body.
    ///
    /// # Errors
    /// [`Kind::Api`] with the server's error, and those of [`Connection::request`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn request_json(&self, tail: &str, body: &Value, timeout: Duration) -> Result<Value> {
        let text = self.request_text(tail, body, timeout).await?;
        parse(tail, &text)
    }

    /// The same, as the server wrote it. An error of the server is an error here, too.
    async fn request_text(&self, tail: &str, body: &Value, timeout: Duration) -> Result<Bytes> {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let subject = self.connection.api_subject(tail);
        Ok(self.connection.request(&subject, None, body, timeout).await?.into_body())
    }

    /// What this account may use. On a cluster only the leader of JetStream answers.
    ///
    /// # Errors
    /// As [`Self::request_json`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn account_info(&self) -> Result<Value> {
        self.request_json("INFO", &Value::Null, self.timeout()).await
    }
}

/// Reads an answer of the API.
fn parse(tail: &str, text: &[u8]) -> Result<Value> {
    let value: Value =
        serde_json::from_slice(text).map_err(|cause| Error::bad_answer(tail, "no JSON").caused(cause))?;
    match value.get("error") {
        None => Ok(value),
        Some(error) => Err(Error::new(tail, Kind::Api(api_error(error)))),
    }
}

pub(crate) fn api_error(error: &Value) -> ApiError {
    let number = |name: &str| error.get(name).and_then(Value::as_u64).unwrap_or(0);
    let description = error.get("description").and_then(Value::as_str).unwrap_or_default();
    ApiError {
        code: u16::try_from(number("code")).unwrap_or(0),
        err_code: number("err_code"),
        description: description.to_owned(),
    }
}

/// Where a list stands after a page: its total, and what the next page starts at.
fn next_offset(answer: &Value, offset: usize, found: usize) -> Option<usize> {
    let total = answer.get("total").and_then(Value::as_u64).unwrap_or(0);
    let next = offset + found;
    (found > 0 && (next as u64) < total).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::err_code;
    use wh_types::Class;

    #[test]
    fn errors_are_read_with_their_numbers() {
        let text = br#"{"type":"x","error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}"#;
        let error = parse("STREAM.INFO.X", text).unwrap_err();
        assert!(error.is_api(err_code::STREAM_FULL), "{error:?}");
        assert_eq!(error.class(), Class::Exhausted { retry_after: Duration::from_secs(30) });
        assert_eq!(error.to_string(), "STREAM.INFO.X: maximum bytes exceeded (503, 10077)");
        assert!(matches!(parse("X", b"no").unwrap_err().kind(), Kind::BadAnswer(_)));
    }

    #[test]
    fn a_list_ends_at_its_total_and_at_an_empty_page() {
        let page = serde_json::json!({"total": 300, "offset": 0, "limit": 256});
        assert_eq!(next_offset(&page, 0, 256), Some(256));
        assert_eq!(next_offset(&page, 256, 44), None);
        assert_eq!(next_offset(&page, 256, 0), None, "a total that is never reached ends too");
        assert_eq!(next_offset(&Value::Null, 0, 5), None);
    }
}
