//! Settling a delivered message: the subject it came with, and the bodies the server knows.

use async_nats::Subject;
use bytes::Bytes;
use std::{fmt, time::Duration};
use wh_types::Timestamp;

/// Where a delivered message is settled. It also says which delivery it was.
#[derive(Clone, PartialEq, Eq)]
pub struct AckSubject(Subject);

/// What an ack subject says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivery<'a> {
    pub(crate) stream: &'a str,
    pub(crate) durable: &'a str,
    pub(crate) deliveries: u64,
    pub(crate) stream_seq: u64,
    pub(crate) consumer_seq: u64,
    pub(crate) time: Timestamp,
    pub(crate) pending: u64,
}

/// How a message is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ack {
    /// Done: it leaves the work queue.
    Ack,
    /// Not done: it comes back, at once or after the delay.
    Nak(Option<Duration>),
    /// Still at work: the time until it comes back starts anew.
    InProgress,
    /// Never deliver it again.
    Term,
}

impl AckSubject {
    pub(crate) fn new(subject: Subject) -> Self {
        Self(subject)
    }

    /// The subject.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.0
    }

    /// Reads both layouts: `$JS.ACK.<stream>.<durable>.<deliveries>.<stream seq>.<consumer seq>.<ns>.<pending>`, and the
    /// one with domain and account hash before the stream, which may end in a token of chance.
    pub(crate) fn read(&self) -> Option<Delivery<'_>> {
        let mut tokens = [""; 12];
        let mut count = 0;
        for token in self.0.strip_prefix("$JS.ACK.")?.split('.') {
            *tokens.get_mut(count)? = token;
            count += 1;
        }
        let tokens = match count {
            7 => &tokens[..7],
            9 | 10 => &tokens[2..9],
            _ => return None,
        };
        let number = |at: usize| tokens[at].parse::<u64>().ok();
        Some(Delivery {
            stream: tokens[0],
            durable: tokens[1],
            deliveries: number(2)?,
            stream_seq: number(3)?,
            consumer_seq: number(4)?,
            time: Timestamp::from_nanos(tokens[5].parse().ok()?),
            pending: number(6)?,
        })
    }
}

impl fmt::Debug for AckSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ack {
    pub(crate) fn body(self) -> Bytes {
        match self {
            Self::Ack => Bytes::from_static(b"+ACK"),
            Self::Nak(None) => Bytes::from_static(b"-NAK"),
            Self::Nak(Some(delay)) => format!("-NAK {{\"delay\":{}}}", delay.as_nanos()).into(),
            Self::InProgress => Bytes::from_static(b"+WPI"),
            Self::Term => Bytes::from_static(b"+TERM"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Option<(String, String, u64, u64, u64, i64, u64)> {
        let subject = AckSubject::new(Subject::from(text));
        let d = subject.read()?;
        let names = (d.stream.to_owned(), d.durable.to_owned());
        Some((names.0, names.1, d.deliveries, d.stream_seq, d.consumer_seq, d.time.as_nanos(), d.pending))
    }

    #[test]
    fn both_layouts_say_the_same() {
        let said = ("WH_INGEST_0".to_owned(), "wh-ingest-3".to_owned(), 2, 17, 5, 1_750_000_000_000_000_001, 9);
        let tail = "WH_INGEST_0.wh-ingest-3.2.17.5.1750000000000000001.9";
        assert_eq!(read("$JS.ACK.WH_INGEST_0.wh-ingest-3.2.17.5.1750000000000000001.9"), Some(said.clone()));
        for form in [format!("$JS.ACK._.szMpdrwD.{tail}"), format!("$JS.ACK.hub.szMpdrwD.{tail}.x7Yz")] {
            assert_eq!(read(Box::leak(form.into_boxed_str())), Some(said.clone()));
        }
    }

    #[test]
    fn other_subjects_are_none() {
        for text in [
            "",
            "$JS.ACK",
            "$JS.ACK.a.b.1.2.3.4",
            "$JS.ACK.a.b.1.2.3.4.x",
            "$JS.ACK.a.b.1.2.3.4.5.6",
            "$JS.ACK.a.b.c.d.e.f.1.2.3.4.5.6.7",
            "wh.ingest.0.0.t.x",
            "_INBOX_wh.1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn bodies_are_what_the_server_knows() {
        let body = |ack: Ack| String::from_utf8(ack.body().to_vec()).unwrap();
        assert_eq!(body(Ack::Ack), "+ACK");
        assert_eq!(body(Ack::Nak(None)), "-NAK");
        assert_eq!(body(Ack::Nak(Some(Duration::from_millis(2)))), r#"-NAK {"delay":2000000}"#);
        assert_eq!(body(Ack::InProgress), "+WPI");
        assert_eq!(body(Ack::Term), "+TERM");
    }
}
