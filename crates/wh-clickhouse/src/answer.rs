//! An answer that is still being read. Dropping it closes the connection, by which ClickHouse cancels a read.

use crate::{Error, Kind, Result, error::Purpose, exception::Scanner, inflate::Inflate};
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, ready};
use http::HeaderMap;
use http_body::Body;
use hyper::body::Incoming;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{sync::OwnedSemaphorePermit, time::Sleep};
use wh_types::Secret;

/// The start of a good answer: its headers, and the body to come.
#[derive(Debug)]
pub struct Answer {
    headers: HeaderMap,
    body: AnswerStream,
}

/// The body of an answer, decompressed, piece by piece. Ends with an error where ClickHouse fails half-way, where the
/// connection breaks, and where time runs out; a stream that ends without one is complete.
pub struct AnswerStream {
    status: u16,
    purpose: Purpose,
    secret: Option<Secret>,
    stage: Stage,
}

enum Stage {
    Reading(Box<Reading>),
    Done,
}

struct Reading {
    body: Incoming,
    inflate: Option<Inflate>,
    scanner: Scanner,
    deadline: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

/// ClickHouse's count of what a query did (`X-ClickHouse-Summary`), as far as it had got when the answer began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows read.
    pub read_rows: u64,
    /// Bytes read, uncompressed.
    pub read_bytes: u64,
    /// Rows written, views included.
    pub written_rows: u64,
    /// Bytes written, uncompressed.
    pub written_bytes: u64,
    /// Nanoseconds since the start.
    pub elapsed_ns: u64,
}

impl Summary {
    fn parse(text: &str) -> Option<Self> {
        let counts: std::collections::HashMap<&str, &str> = serde_json::from_str(text).ok()?;
        let count = |name| counts.get(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Some(Self {
            read_rows: count("read_rows"),
            read_bytes: count("read_bytes"),
            written_rows: count("written_rows"),
            written_bytes: count("written_bytes"),
            elapsed_ns: count("elapsed_ns"),
        })
    }
}

impl Answer {
    /// Whether it has a header that only ClickHouse sends.
    pub(crate) fn is_clickhouse(&self) -> bool {
        self.headers.keys().any(|name| name.as_str().starts_with("x-clickhouse-"))
    }

    pub(crate) fn new(
        response: http::Response<Incoming>,
        purpose: Purpose,
        secret: Option<Secret>,
        deadline: Pin<Box<Sleep>>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self> {
        let (head, body) = response.into_parts();
        let status = head.status.as_u16();
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let inflate = match header("content-encoding") {
            None | Some("identity") => None,
            Some("zstd") => Some(Inflate::new().map_err(|cause| {
                Error::new(Kind::Malformed, purpose, "no zstd decoder").status_was(status).caused(cause)
            })?),
            // a proxy's error page: its status is enough
            Some(_) if !head.status.is_success() => None,
            Some(other) => {
                let text = format!("the answer is compressed with {other:?}, which was not asked for");
                return Err(Error::new(Kind::Malformed, purpose, text).status_was(status));
            }
        };
        let scanner = Scanner::new(header("x-clickhouse-exception-tag"));
        let reading = Reading { body, inflate, scanner, deadline, _permit: permit };
        let body = AnswerStream { status, purpose, secret, stage: Stage::Reading(Box::new(reading)) };
        Ok(Self { headers: head.headers, body })
    }

    /// The format of the body (`X-ClickHouse-Format`): tells whether the text had a FORMAT of its own.
    #[must_use]
    pub fn format(&self) -> Option<&str> {
        self.header("x-clickhouse-format")
    }

    /// The body's media type.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.header("content-type")
    }

    /// ClickHouse's id of the query.
    #[must_use]
    pub fn query_id(&self) -> Option<&str> {
        self.header("x-clickhouse-query-id")
    }

    /// The server's time zone.
    #[must_use]
    pub fn timezone(&self) -> Option<&str> {
        self.header("x-clickhouse-timezone")
    }

    /// What the query did so far; complete only with [`Query::wait_end`](crate::Query::wait_end).
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        self.header("x-clickhouse-summary").and_then(Summary::parse)
    }

    pub(crate) fn status(&self) -> u16 {
        self.body.status
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The whole body, at most `limit` bytes of it after decompression.
    ///
    /// # Errors
    /// [`Kind::TooLarge`] beyond the limit, and whatever ends the stream early.
    ///
    /// # Cancel safety
    /// Detached: dropping the future closes the connection; a read is then cancelled, a write may go on.
    pub async fn bytes(self, limit: usize) -> Result<Bytes> {
        let mut body = self.body;
        let mut first = match body.next().await {
            None => return Ok(Bytes::new()),
            Some(piece) => piece?,
        };
        let mut rest = BytesMut::new();
        loop {
            if first.len() + rest.len() > limit {
                let text = format!("the answer is larger than {limit} bytes");
                return Err(Error::new(Kind::TooLarge, body.purpose, text).status_was(body.status));
            }
            match body.next().await {
                // most answers come in one piece, which is then not copied
                None if rest.is_empty() => return Ok(first),
                None => return Ok(rest.freeze()),
                Some(piece) => {
                    if rest.is_empty() {
                        rest.extend_from_slice(&first);
                        first = Bytes::new();
                    }
                    rest.extend_from_slice(&piece?);
                }
            }
        }
    }

    /// The body, piece by piece, without a bound on its whole.
    #[must_use]
    pub fn stream(self) -> AnswerStream {
        self.body
    }

    /// What can be read of the body of a bad answer, at most `limit` bytes from its end. Whatever breaks the reading
    /// ends it.
    pub(crate) async fn remains(self, limit: usize) -> Bytes {
        let Self { body: AnswerStream { stage: Stage::Reading(mut reading), .. }, .. } = self else {
            return Bytes::new();
        };
        let mut kept = BytesMut::new();
        while let Some(Ok(piece)) = std::future::poll_fn(|cx| reading.poll_raw(cx)).await {
            kept.extend_from_slice(&piece);
            if kept.len() > limit * 2 {
                drop(kept.split_to(kept.len() - limit));
            }
        }
        drop(kept.split_to(kept.len().saturating_sub(limit)));
        kept.freeze()
    }
}

/// How a body breaks off.
enum Break {
    Late,
    Lost(hyper::Error),
    Garbled(std::io::Error),
}

impl Reading {
    /// The next decompressed bytes, exceptions and all.
    fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Break>>> {
        if self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Break::Late)));
        }
        loop {
            if let Some(inflate) = &mut self.inflate {
                match inflate.next() {
                    Ok(plain) if !plain.is_empty() => return Poll::Ready(Some(Ok(plain))),
                    Ok(_) => {}
                    Err(cause) => return Poll::Ready(Some(Err(Break::Garbled(cause)))),
                }
            }
            let piece = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => break,
                Some(Err(cause)) => return Poll::Ready(Some(Err(Break::Lost(cause)))),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            match &mut self.inflate {
                Some(inflate) => inflate.push(piece),
                None if piece.is_empty() => {}
                None => return Poll::Ready(Some(Ok(piece))),
            }
        }
        match &self.inflate {
            Some(inflate) if !inflate.whole() => {
                let cause = std::io::Error::other("the compressed body is cut short");
                Poll::Ready(Some(Err(Break::Garbled(cause))))
            }
            _ => Poll::Ready(None),
        }
    }
}

impl AnswerStream {
    fn broken(&self, cause: Break) -> Error {
        let error = |kind, text: &str| Error::new(kind, self.purpose, text).status_was(self.status);
        match cause {
            Break::Late => error(Kind::Timeout, "time ran out while reading the answer"),
            Break::Lost(cause) => error(Kind::Lost, "the answer broke off").caused(cause),
            Break::Garbled(cause) => error(Kind::Malformed, "the answer cannot be decompressed").caused(cause),
        }
    }
}

impl Stream for AnswerStream {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let Stage::Reading(reading) = &mut this.stage else { return Poll::Ready(None) };
            let end = match ready!(reading.poll_raw(cx)) {
                Some(Ok(piece)) => {
                    let data = reading.scanner.pass(piece);
                    if data.is_empty() {
                        continue;
                    }
                    return Poll::Ready(Some(Ok(data)));
                }
                end => end.and_then(Result::err),
            };
            // a connection that was cut behind an exception ends with the exception, not with the cut
            let last = reading.scanner.end(end.is_none());
            this.stage = Stage::Done;
            return Poll::Ready(match (last, end) {
                (Err(exception), _) => {
                    let error = Error::exception(this.purpose, this.status, exception.without(this.secret.as_ref()));
                    Some(Err(error))
                }
                (Ok(_), Some(cause)) => Some(Err(this.broken(cause))),
                (Ok(data), None) if data.is_empty() => None,
                (Ok(data), None) => Some(Ok(data)),
            });
        }
    }
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = matches!(self.stage, Stage::Done);
        f.debug_struct("AnswerStream").field("status", &self.status).field("done", &done).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_and_what_is_missing_is_zero() {
        let text = r#"{"read_rows":"2","written_rows":"18446744073709551615","elapsed_ns":"7021535","x":"y"}"#;
        let summary = Summary::parse(text).unwrap();
        assert_eq!((summary.read_rows, summary.written_rows, summary.read_bytes), (2, u64::MAX, 0));
        assert_eq!(Summary::parse("no"), None);
    }
}
