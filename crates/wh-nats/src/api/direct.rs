//! Direct gets: stored messages without a consumer, one, many, or the last of each subject.
//!
//! Any replica may answer, also one that lags behind: an empty answer proves nothing of the stream's end.

use super::Api;
use crate::{Error, Kind, Message, Result, connection::answered, error::ApiError};
use async_nats::Subject;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use wh_types::Timestamp;

/// A stored message. Where it was republished from another stream, the first values of `Nats-Sequence` and its like are
/// that stream's; the last are this one's.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The subject it is stored under.
    pub subject: String,
    /// Its sequence in the stream that was asked.
    pub sequence: u64,
    /// When it was stored there.
    pub time: Timestamp,
    message: Message,
}

impl Stored {
    fn read(message: Message) -> Result<Self> {
        let header = |name: &'static str| {
            let missing = || Error::bad_answer(message.subject(), format!("a stored message without {name}"));
            message.header(name).ok_or_else(missing)
        };
        let unreadable = |name: &str| Error::bad_answer(message.subject(), format!("{name} cannot be read"));
        let subject = header("Nats-Subject")?.to_owned();
        let sequence = header("Nats-Sequence")?.parse().map_err(|_| unreadable("Nats-Sequence"))?;
        let time = header("Nats-Time-Stamp")?.parse().map_err(|_| unreadable("Nats-Time-Stamp"))?;
        Ok(Self { subject, sequence, time, message })
    }

    /// The last value of a header: this stream's word.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.message.header(name)
    }

    /// The first value of a header: the word of the stream it was stored in first.
    #[must_use]
    pub fn header_first(&self, name: &str) -> Option<&str> {
        self.message.header_first(name)
    }

    /// Every header with its first value, in no order.
    pub fn headers_first(&self) -> impl Iterator<Item = (&str, &str)> {
        self.message.headers_first()
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        self.message.body()
    }

    /// The message as it came; its subject is our inbox.
    #[must_use]
    pub fn into_message(self) -> Message {
        self.message
    }

    /// The message as it came; its subject is our inbox.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }
}

/// Which stored message.
#[derive(Clone, Copy, Debug)]
pub enum DirectGet<'a> {
    /// The one of this sequence.
    Sequence(u64),
    /// The last of this subject.
    LastOf(&'a str),
    /// The first of this subject, or of a pattern, at this sequence or after.
    NextOf {
        /// The sequence.
        seq: u64,
        /// The subject.
        subject: &'a str,
    },
}

/// Which stored messages.
#[derive(Clone, Debug, Default)]
pub struct DirectBatch {
    /// Messages at most; 0: as the server likes, which for `multi_last` is 1,024.
    pub batch: u32,
    /// Where to begin.
    pub start: BatchStart,
    /// Only this subject, or this pattern.
    pub next_by_subj: Option<String>,
    /// Bytes at most; one message comes in any case.
    pub max_bytes: Option<u64>,
    /// The last message of each subject that one of these patterns matches.
    pub multi_last: Vec<String>,
    /// With `multi_last`: as it was at this sequence.
    pub up_to_seq: Option<u64>,
}

/// Where a batch begins.
#[derive(Clone, Copy, Debug, Default)]
pub enum BatchStart {
    /// At the first message.
    #[default]
    First,
    /// At this sequence, or the next there is.
    Sequence(u64),
    /// At the first message stored at this time or after.
    Time(Timestamp),
}

/// A batch.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The messages, in the order of the stream.
    pub messages: Vec<Stored>,
    /// Messages that match and come after these, as far as the answering replica knows.
    pub pending: u64,
    /// The last sequence that the answer looks up to, where the server says it.
    pub up_to_seq: Option<u64>,
}

impl DirectBatch {
    fn body(&self) -> Value {
        let mut body = Map::new();
        let mut set = |name: &str, value: Value| _ = body.insert(name.to_owned(), value);
        if self.batch > 0 {
            set("batch", self.batch.into());
        }
        match self.start {
            BatchStart::First => {
                if self.multi_last.is_empty() {
                    set("seq", 1.into());
                }
            }
            BatchStart::Sequence(seq) => set("seq", seq.max(1).into()),
            BatchStart::Time(time) => set("start_time", time.to_string().into()),
        }
        if let Some(subject) = &self.next_by_subj {
            set("next_by_subj", subject.as_str().into());
        }
        if let Some(bytes) = self.max_bytes {
            set("max_bytes", bytes.into());
        }
        if !self.multi_last.is_empty() {
            set("multi_last", json!(self.multi_last));
        }
        if let Some(seq) = self.up_to_seq {
            set("up_to_seq", seq.into());
        }
        Value::Object(body)
    }
}

impl Api {
    /// One stored message. None where there is none, as far as the answering replica knows.
    ///
    /// # Errors
    /// As [`crate::Connection::request`]. A stream without `allow_direct`, and one that does not exist, has no
    /// responders.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn direct_get(&self, stream: &str, which: DirectGet<'_>) -> Result<Option<Stored>> {
        let body = match which {
            DirectGet::Sequence(seq) => json!({"seq": seq}),
            DirectGet::LastOf(subject) => json!({"last_by_subj": subject}),
            DirectGet::NextOf { seq, subject } => json!({"seq": seq.max(1), "next_by_subj": subject}),
        };
        self.direct_one(&format!("DIRECT.GET.{stream}"), body.to_string().into()).await
    }

    pub(crate) async fn direct_one(&self, tail: &str, body: Bytes) -> Result<Option<Stored>> {
        let subject = self.connection().api_subject(tail);
        let message = self.connection().request(&subject, None, body, self.timeout()).await?;
        match message.status() {
            None => Stored::read(message).map(Some),
            Some((404, _)) => Ok(None),
            Some((code, text)) => Err(refused(&subject, code, text)),
        }
    }

    /// Many stored messages. The time runs anew with every message.
    ///
    /// # Errors
    /// As [`Self::direct_get`]. [`Kind::BadAnswer`] where messages of the answer were lost on the way.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn direct_batch(&self, stream: &str, which: &DirectBatch) -> Result<Batch> {
        let body = which.body().to_string().into();
        let subject = self.connection().api_subject(&format!("DIRECT.GET.{stream}"));
        let (_ticket, mut answers) = self.connection().request_many(&subject, body).await?;
        let (mut batch, mut last) = (Batch::default(), 0);
        loop {
            let answer = tokio::time::timeout(self.timeout(), answers.recv());
            let message = match answer.await {
                Ok(Some(answer)) => answered(&Subject::from(subject.as_str()), answer?)?,
                Ok(None) => return Err(Error::new(subject, Kind::Interrupted)),
                Err(_) => return Err(Error::new(subject, Kind::Timeout)),
            };
            let number = |name: &str| message.header(name).and_then(|value| value.parse::<u64>().ok());
            match message.status() {
                None => {
                    // the server chains the messages of an answer
                    if number("Nats-Last-Sequence").is_some_and(|before| before != last && last != 0) {
                        return Err(Error::bad_answer(subject, "messages of a batch are missing"));
                    }
                    batch.pending = number("Nats-Num-Pending").unwrap_or(0);
                    let stored = Stored::read(message)?;
                    last = stored.sequence;
                    batch.messages.push(stored);
                }
                Some((204, _)) => {
                    if number("Nats-Last-Sequence").is_some_and(|end| end != last && last != 0) {
                        return Err(Error::bad_answer(subject, "messages of a batch are missing"));
                    }
                    batch.pending = number("Nats-Num-Pending").unwrap_or(0);
                    batch.up_to_seq = number("Nats-UpTo-Sequence");
                    return Ok(batch);
                }
                Some((404, _)) => return Ok(batch),
                Some((code, text)) => return Err(refused(&subject, code, text)),
            }
        }
    }
}

/// A direct get has no JSON error: its status is all there is.
fn refused(subject: &str, code: u16, text: &str) -> Error {
    let error = ApiError { code, err_code: 0, description: text.to_owned() };
    Error::new(subject, Kind::Api(error))
}
