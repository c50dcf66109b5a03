//! Publishing into streams: pipelined, in the order of the calls, with one answer each, over an inbox of its own.

mod line;

use crate::{
    Connection, Error, Headers, Kind, Result,
    connection::{Replies, answered},
    error::ApiError,
};
use async_nats::Subject;
use bytes::Bytes;
use line::{Line, Outgoing};
use parking_lot::Mutex;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// Messages sent and not answered, at most. More gains nothing and only makes a break worse.
pub const WINDOW: usize = 1024;

/// Publishes. Cloning it is cheap; the clones share one order.
#[derive(Clone, Debug)]
pub struct Publisher {
    line: Arc<Line>,
    replies: Arc<Replies>,
    streams: Arc<Streams>,
    connection: Connection,
}

/// Where a message was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PubAck {
    /// The stream.
    pub stream: Arc<str>,
    /// Its sequence there; of a duplicate, the first one's.
    pub sequence: u64,
    /// Whether its id was known: nothing was stored.
    pub duplicate: bool,
}

/// The names seen in answers, so that each is allocated once.
#[derive(Debug, Default)]
struct Streams(Mutex<Vec<Arc<str>>>);

impl Publisher {
    /// Subscribes its inbox.
    ///
    /// # Errors
    /// [`Kind::Closed`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn open(connection: &Connection) -> Result<Self> {
        let core = connection.core();
        if core.stop.given() {
            return Err(Error::new("publish", Kind::Closed));
        }
        let replies = core.add_replies().await;
        let line = Line::open(core, &replies);
        Ok(Self { line, replies, streams: Arc::default(), connection: connection.clone() })
    }

    /// Publishes a message and waits until a stream has stored it. The order of the calls is the order on the wire,
    /// whether the futures are polled or not. At most [`WINDOW`] are under way; the others wait in memory, so callers
    /// bound what they have open.
    ///
    /// # Errors
    /// Nothing was stored: [`Kind::Disconnected`], [`Kind::Unsent`], [`Kind::TooLarge`], [`Kind::Refused`],
    /// [`Kind::NoResponders`] (no stream takes the subject, or none that has a leader now), [`Kind::Api`] by its number.
    /// It may have been stored: [`Kind::Timeout`], [`Kind::Interrupted`], [`Kind::BadAnswer`].
    ///
    /// # Cancel safety
    /// Detached: it may be stored. Publish it again under the same id.
    pub fn publish(
        &self,
        subject: &str,
        headers: Headers,
        body: Bytes,
        timeout: Duration,
    ) -> impl Future<Output = Result<PubAck>> + Send + use<> {
        // dropped after the receiver
        let ticket = self.replies.ticket();
        let (to, answer) = oneshot::channel();
        let deadline = self.connection.options().clock.now() + timeout;
        let subject = Subject::from(subject);
        let number = ticket.number();
        let headers = headers.into_map();
        let outgoing = Outgoing { number, subject: subject.clone(), headers, body, deadline, to };
        let queued = self.line.add(self.connection.core(), &self.replies, outgoing);
        let streams = self.streams.clone();
        async move {
            let ticket = ticket;
            if !queued {
                return Err(Error::new(subject.as_str(), Kind::Closed));
            }
            // whose time is over is told by the writer
            let answer = answer.await.unwrap_or_else(|_| Err(Error::new(subject.as_str(), Kind::Closed)));
            ticket.done();
            streams.read(&subject, answered(&subject, answer?)?.body())
        }
    }
}

#[derive(serde::Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    stream: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    seq: u64,
    #[serde(default)]
    duplicate: bool,
    #[serde(default)]
    error: Option<ApiError>,
}

impl Streams {
    fn read(&self, subject: &Subject, body: &[u8]) -> Result<PubAck> {
        let unreadable = |what: &str| Error::bad_answer(subject.as_str(), what);
        let answer: Answer<'_> =
            serde_json::from_slice(body).map_err(|cause| unreadable("no answer of a stream").caused(cause))?;
        if let Some(error) = answer.error {
            return Err(Error::new(subject.as_str(), Kind::Api(error)));
        }
        let name = answer.stream.filter(|name| !name.is_empty()).ok_or_else(|| unreadable("it names no stream"))?;
        Ok(PubAck { stream: self.intern(&name), sequence: answer.seq, duplicate: answer.duplicate })
    }

    fn intern(&self, name: &str) -> Arc<str> {
        let mut known = self.0.lock();
        if let Some(found) = known.iter().find(|known| &***known == name) {
            return found.clone();
        }
        let name: Arc<str> = name.into();
        if known.len() < 1024 {
            known.push(name.clone());
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PubAck> {
        Streams::default().read(&Subject::from("wh.ingest.0.0.t.x"), text.as_bytes())
    }

    #[test]
    fn answers_of_streams_are_read() {
        let stored = read(r#"{"stream":"WH_INGEST_0","domain":"hub","seq":7}"#).unwrap();
        assert_eq!(stored, PubAck { stream: "WH_INGEST_0".into(), sequence: 7, duplicate: false });
        assert!(read(r#"{"stream":"WH_INGEST_0","seq":7,"duplicate":true}"#).unwrap().duplicate);
        assert_eq!(&*read(r#"{"stream":"\u0057","seq":1}"#).unwrap().stream, "W");
        let full =
            r#"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"X","seq":0}"#;
        assert!(read(full).unwrap_err().is_api(10_077));
        for bad in ["", "x", "{}", r#"{"stream":"","seq":1}"#] {
            assert!(matches!(read(bad).unwrap_err().kind(), Kind::BadAnswer(_)), "{bad}");
        }
    }
}
