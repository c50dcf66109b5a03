//! Publishing into streams: pipelined, in the order of the calls, with one answer each, over an inbox of its own.

use crate::{
    Connection, Error, Headers, Kind, Message, Result,
    connection::{Core, Replies, answered},
    error::ApiError,
};
use async_nats::{HeaderMap, Subject};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};
use wh_types::Mono;

/// Messages sent and not answered, at most. More gains nothing and only makes a break worse.
pub const WINDOW: usize = 1024;

/// Publishes. Cloning it is cheap; the clones share one order.
#[derive(Clone, Debug)]
pub struct Publisher {
    line: mpsc::UnboundedSender<Outgoing>,
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

#[derive(Debug)]
struct Outgoing {
    number: u64,
    subject: Subject,
    headers: HeaderMap,
    body: Bytes,
    deadline: Mono,
    to: oneshot::Sender<Result<Message>>,
}

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
        let (line, outgoing) = mpsc::unbounded_channel();
        core.spawn("nats/publisher", write(core.clone(), replies.clone(), outgoing));
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
        let (to, mut answer) = oneshot::channel();
        let deadline = self.connection.options().clock.now() + timeout;
        let subject = Subject::from(subject);
        let number = ticket.number();
        let headers = headers.into_map();
        let queued = self.line.send(Outgoing { number, subject: subject.clone(), headers, body, deadline, to });
        let streams = self.streams.clone();
        async move {
            let ticket = ticket;
            if queued.is_err() {
                return Err(Error::new(subject.as_str(), Kind::Closed));
            }
            let answer = match tokio::time::timeout_at(deadline, &mut answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => return Err(Error::new(subject.as_str(), Kind::Closed)),
                Err(_) if ticket.give_up() => return Err(Error::new(subject.as_str(), Kind::Timeout)),
                // it came in this moment, or it was never sent
                Err(_) => answer.try_recv().unwrap_or_else(|_| Err(Error::new(subject.as_str(), Kind::Unsent))),
            };
            streams.read(&subject, answered(&subject, answer?)?.body())
        }
    }
}

/// Sends what is in line, one after another, while the window has room.
async fn write(core: Arc<Core>, replies: Arc<Replies>, mut line: mpsc::UnboundedReceiver<Outgoing>) {
    loop {
        let outgoing = tokio::select! {
            biased;
            () = core.stop.wait() => return,
            outgoing = line.recv() => outgoing,
        };
        let Some(Outgoing { number, subject, headers, body, deadline, to }) = outgoing else { return };
        tokio::select! {
            biased;
            () = replies.below(WINDOW) => {}
            () = core.stop.wait() => return,
        }
        if deadline <= core.options.clock.now() {
            _ = to.send(Err(Error::new(subject.as_str(), Kind::Unsent)));
            continue;
        }
        let slot = match core.connected(&subject) {
            Ok(slot) => slot,
            Err(error) => {
                _ = to.send(Err(error));
                continue;
            }
        };
        // before it is sent: from here on its outcome is not known
        if !replies.put(number, subject.clone(), to) {
            continue;
        }
        let reply = replies.reply(number);
        if let Err(error) = slot.send(subject.clone(), Some(reply), Some(headers), body).await {
            replies.fail(number, error);
        } else if slot.lost.given() {
            replies.fail(number, Error::new(subject.as_str(), Kind::Interrupted));
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
