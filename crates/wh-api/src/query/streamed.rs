//! An answer that is passed on as it comes. It ends well, or its transfer is broken off: never short and well.
//!
//! Lines of JSON are passed on whole; where they break off, a last line says why, in the form of every error.

use super::{format::Format, run::Ask};
use crate::error::ApiError;
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use std::{future::Future, io};
use wh_clickhouse::{Answer, AnswerStream, Error};

/// What an answer is streamed of.
pub(crate) trait Streams: Send + Sync + 'static {
    /// Begins the read.
    fn begin(&self) -> impl Future<Output = Result<Answer, ApiError>> + Send;
    /// What a failure of it means.
    fn failed(&self, error: &Error) -> ApiError;
    /// In which form it comes.
    fn format(&self) -> Format;
    /// Which request asked for it.
    fn request_id(&self) -> &str;
}

impl Streams for Ask {
    async fn begin(&self) -> Result<Answer, ApiError> {
        Self::begin(self).await
    }

    fn failed(&self, error: &Error) -> ApiError {
        Self::failed(self, error)
    }

    fn format(&self) -> Format {
        self.plan.form.format
    }

    fn request_id(&self) -> &str {
        &self.request_id
    }
}

/// The rest of an answer whose beginning is known to be good.
struct Passing<S> {
    ask: S,
    body: AnswerStream,
    first: Option<Bytes>,
    /// A line that has not ended yet. Of other forms: nothing.
    line: BytesMut,
    state: State,
}

enum State {
    Passing,
    /// The last line was given; its reader is owed a broken transfer.
    Broken(ApiError),
    Over,
}

/// Waits for the first bytes, of CSV for those behind its line of names, so that a query that fails before its first row has
/// an error for an answer.
///
/// # Errors
/// It failed before the first bytes.
pub(crate) async fn begin<S: Streams>(ask: S) -> Result<impl Stream<Item = io::Result<Bytes>> + Send, ApiError> {
    let mut body = ask.begin().await?.stream();
    let mut first = body.next().await.transpose().map_err(|error| ask.failed(&error))?;
    while ask.format() == Format::Csv
        && let Some(names) = first.take_if(|first| is_names(first))
        && let more = body.next().await.transpose().map_err(|error| ask.failed(&error))?
    {
        let Some(more) = more else {
            first = Some(names);
            break;
        };
        first = Some([names, more].concat().into());
    }
    let state = if first.is_some() { State::Passing } else { State::Over };
    let passing = Passing { ask, body, first, line: BytesMut::new(), state };
    let pieces = stream::unfold(passing, |mut passing| async move {
        let item = passing.next().await?;
        Some((item, passing))
    });
    // who compresses it asks once more behind its end
    Ok(pieces.fuse())
}

/// Whether there is no row yet: only the line of names, or a part of it.
fn is_names(bytes: &[u8]) -> bool {
    memchr::memchr(b'\n', bytes).is_none_or(|end| end + 1 == bytes.len())
}

impl<S: Streams> Passing<S> {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => return None,
            State::Broken(error) => {
                // what was given before goes out first
                tokio::task::yield_now().await;
                return Some(Err(io::Error::other(error.code().name)));
            }
            State::Passing => self.state = State::Passing,
        }
        loop {
            let piece = match self.first.take() {
                Some(first) => Some(Ok(first)),
                None => self.body.next().await,
            };
            match piece {
                None => {
                    self.state = State::Over;
                    let rest = self.line.split().freeze();
                    return (!rest.is_empty()).then_some(Ok(rest));
                }
                Some(Ok(piece)) => {
                    let piece = self.whole_lines(piece);
                    if !piece.is_empty() {
                        return Some(Ok(piece));
                    }
                }
                Some(Err(error)) => return Some(self.broken(self.ask.failed(&error))),
            }
        }
    }

    fn broken(&mut self, error: ApiError) -> io::Result<Bytes> {
        if self.ask.format() != Format::Ndjson {
            self.state = State::Over;
            return Err(io::Error::other(error.code().name));
        }
        let mut last = error.body(self.ask.request_id());
        last.push(b'\n');
        self.state = State::Broken(error);
        Ok(last.into())
    }

    /// What of a piece can be given now.
    fn whole_lines(&mut self, piece: Bytes) -> Bytes {
        if self.ask.format() != Format::Ndjson {
            return piece;
        }
        let Some(end) = memchr::memrchr(b'\n', &piece) else {
            self.line.extend_from_slice(&piece);
            return Bytes::new();
        };
        let rest = piece.slice(end + 1..);
        let whole = piece.slice(..=end);
        let whole = if self.line.is_empty() {
            whole
        } else {
            self.line.extend_from_slice(&whole);
            self.line.split().freeze()
        };
        self.line.extend_from_slice(&rest);
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_names_is_no_row() {
        for (text, names) in
            [("", true), ("\"a\"", true), ("\"a\",\"b\"\n", true), ("\"a\"\n1", false), ("\"a\"\n1\n", false)]
        {
            assert_eq!(is_names(text.as_bytes()), names, "{text:?}");
        }
    }
}
