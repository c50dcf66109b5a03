//! An answer of ClickHouse held whole, in bounded memory, and its rows as one JSON array.

use crate::{
    budget::{Budget, Held},
    clickhouse,
    error::ApiError,
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::StreamExt;
use http_body::{Frame, SizeHint};
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use wh_clickhouse::{Answer, Error};

/// What an answer is asked in: one JSON object a line, by the alias that tells it from an inline `FORMAT`.
pub(crate) const FORMAT: &str = "JSONLines";
/// How values are written: 64-bit numbers with all their digits, times in RFC 3339, text always as UTF-8.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("date_time_output_format", "iso"),
    ("output_format_json_quote_64bit_integers", "0"),
    ("output_format_json_quote_denormals", "0"),
    ("output_format_json_validate_utf8", "1"),
];

/// The body of an answer, and its share of the budget until it is sent.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    text: Vec<u8>,
    held: Option<Held>,
}

impl Whole {
    /// Reads an answer to its end, at most `limit` bytes. `failed` says what a failure of ClickHouse means.
    pub(crate) async fn read(
        answer: Answer,
        limit: usize,
        budget: &Budget,
        failed: impl Fn(&Error) -> ApiError,
    ) -> Result<Self, ApiError> {
        let mut body = answer.stream();
        let mut whole = Self::default();
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| failed(&error))?;
            let size = whole.text.len() + piece.len();
            if size > limit {
                return Err(clickhouse::too_large(limit));
            }
            let share = size.next_power_of_two().min(limit);
            match &mut whole.held {
                None => whole.held = Some(budget.take(share).await?),
                Some(held) => held.grow_to(share).await?,
            }
            whole.text.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// Keeps the first `most` lines; says whether there were more.
    pub(crate) fn keep_lines(&mut self, most: u64) -> bool {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let last = most.checked_sub(1).and_then(|last| memchr::memchr_iter(b'\n', &self.text).nth(last));
        let Some(end) = last else { return false };
        let more = end + 1 < self.text.len();
        self.text.truncate(end + 1);
        more
    }

    /// The last line, if there are `most` lines or more.
    pub(crate) fn last_of(&self, most: u64) -> Option<&[u8]> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let lines = self.text.strip_suffix(b"\n")?;
        let ends = memchr::memchr_iter(b'\n', lines);
        let (count, last) = ends.fold((1, 0), |(count, _), end| (count + 1, end + 1));
        (count >= most).then(|| &lines[last..])
    }

    /// Makes one array of JSON lines. A line feed inside a string is always escaped, so one outside ends a row.
    pub(crate) fn make_array(&mut self) {
        let lines = &mut self.text;
        while lines.last() == Some(&b'\n') {
            lines.pop();
        }
        for byte in lines.iter_mut().filter(|byte| **byte == b'\n') {
            *byte = b',';
        }
        lines.insert(0, b'[');
        lines.push(b']');
    }

    /// Its bytes, and its share of the budget.
    pub(crate) fn into_parts(self) -> (Bytes, Option<Arc<Held>>) {
        (self.text.into(), self.held.map(Arc::new))
    }
}

impl IntoResponse for Whole {
    fn into_response(self) -> Response {
        let (bytes, held) = self.into_parts();
        sending(bytes, held).into_response()
    }
}

/// A body of one piece that holds its share of a budget while it is sent.
pub(crate) fn sending(bytes: Bytes, held: Option<Arc<Held>>) -> Body {
    Body::new(Sending { bytes: Some(bytes), _held: held })
}

struct Sending {
    bytes: Option<Bytes>,
    _held: Option<Arc<Held>>,
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &str) -> Whole {
        Whole { text: lines.into(), held: None }
    }

    #[test]
    fn lines_become_an_array_and_are_cut_behind_the_last_one_kept() {
        for (lines, array) in
            [("", "[]"), ("{\"a\":1}\n{\"a\":2}\n", "[{\"a\":1},{\"a\":2}]"), ("{\"a\":1}", "[{\"a\":1}]")]
        {
            let mut whole = of(lines);
            whole.make_array();
            assert_eq!(whole.text, array.as_bytes());
        }
        for (most, left, cut) in
            [(1, "1\n", true), (2, "1\n2\n", true), (3, "1\n2\n3\n", false), (9, "1\n2\n3\n", false)]
        {
            let mut whole = of("1\n2\n3\n");
            assert_eq!((whole.keep_lines(most), whole.text.as_slice()), (cut, left.as_bytes()));
        }
        for (lines, most, last) in
            [("1\n2\n", 2, Some("2")), ("1\n2\n", 1, Some("2")), ("1\n", 1, Some("1")), ("1\n", 2, None), ("", 1, None)]
        {
            assert_eq!(of(lines).last_of(most), last.map(str::as_bytes), "{lines:?} {most}");
        }
    }
}
