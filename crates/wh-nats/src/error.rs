//! What can go wrong between us and a NATS server. The vendor's errors are translated here and nowhere else.

use std::{error::Error as StdError, fmt, time::Duration};
use wh_types::Class;

/// What this crate's calls return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate. No secret is ever in its text.
pub struct Error(Box<Inner>);

struct Inner {
    op: String,
    kind: Kind,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// There is no connection; nothing was sent.
    Disconnected,
    /// The time ran out before it was sent; nothing was sent.
    Unsent,
    /// It was handed to a connection that then broke: it may have been done.
    Interrupted,
    /// No answer in time: it may have been done.
    Timeout,
    /// Nobody serves the subject: no such object, or none that leads it at the moment.
    NoResponders,
    /// The server does not let this identity use the subject.
    Refused {
        /// The subject, as the server named it.
        subject: String,
    },
    /// JetStream answered with an error.
    Api(ApiError),
    /// More bytes than the server takes in one message.
    TooLarge {
        /// Bytes of headers and body.
        bytes: usize,
        /// The server's limit.
        limit: usize,
    },
    /// An answer that cannot be read.
    BadAnswer(String),
    /// The caller's argument cannot work.
    Invalid(String),
    /// The options, or the files they name, cannot work.
    Config(String),
    /// The connection was closed by us.
    Closed,
}

/// JetStream's own error.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct ApiError {
    /// A status as in HTTP.
    #[serde(default)]
    pub code: u16,
    /// The server's number for this error. Decide by it, never by the text.
    #[serde(default)]
    pub err_code: u64,
    /// The server's text, for people.
    #[serde(default)]
    pub description: String,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.description, self.code, self.err_code)
    }
}

/// Numbers of JetStream errors that are decided on.
pub mod err_code {
    /// A limit of the account.
    pub const ACCOUNT_LIMIT: u64 = 10_002;
    /// No leader for the whole of JetStream.
    pub const NO_LEADER: u64 = 10_008;
    /// No such consumer.
    pub const CONSUMER_NOT_FOUND: u64 = 10_014;
    /// The server's store is full.
    pub const NO_RESOURCES: u64 = 10_023;
    /// A request body that cannot be read.
    pub const BAD_REQUEST: u64 = 10_025;
    /// No such message.
    pub const MESSAGE_NOT_FOUND: u64 = 10_037;
    /// No message of this sequence, for a delete.
    pub const SEQUENCE_NOT_FOUND: u64 = 10_043;
    /// The store cannot reserve what a stream asks for.
    pub const NO_STORAGE: u64 = 10_047;
    /// A message larger than the stream takes.
    pub const MESSAGE_TOO_LARGE: u64 = 10_054;
    /// A delete of a message failed: also of one before a stream's first, or after its last.
    pub const DELETE_FAILED: u64 = 10_057;
    /// No such stream.
    pub const STREAM_NOT_FOUND: u64 = 10_059;
    /// The stream is another one than the publisher expected.
    pub const OTHER_STREAM: u64 = 10_060;
    /// The last sequence is another one than the writer expected.
    pub const WRONG_LAST_SEQUENCE: u64 = 10_071;
    /// A limit of the stream or of the subject.
    pub const STREAM_FULL: u64 = 10_077;
    /// The same message id is being stored right now.
    pub const ID_IN_PROCESS: u64 = 10_158;
    /// The same as [`WRONG_LAST_SEQUENCE`], where the server does not say which sequence it is.
    pub const WRONG_LAST_SEQUENCE_UNSAID: u64 = 10_164;
}

/// When to try a full store again.
const FULL_RETRY: Duration = Duration::from_secs(30);

impl ApiError {
    /// The class, by number.
    #[must_use]
    pub fn class(&self) -> Class {
        use err_code::{
            ACCOUNT_LIMIT, ID_IN_PROCESS, MESSAGE_TOO_LARGE, NO_LEADER, NO_RESOURCES, NO_STORAGE, OTHER_STREAM,
            STREAM_FULL, WRONG_LAST_SEQUENCE, WRONG_LAST_SEQUENCE_UNSAID,
        };
        match self.err_code {
            ACCOUNT_LIMIT | NO_RESOURCES | NO_STORAGE | STREAM_FULL => Class::Exhausted { retry_after: FULL_RETRY },
            ID_IN_PROCESS => Class::Unknown,
            NO_LEADER | OTHER_STREAM => Class::Unavailable,
            WRONG_LAST_SEQUENCE | WRONG_LAST_SEQUENCE_UNSAID => Class::Conflict,
            MESSAGE_TOO_LARGE => Class::Invalid,
            _ => match self.code {
                500..=599 => Class::Unavailable,
                404 => Class::NotFound,
                401 | 403 => Class::Denied,
                429 => Class::Exhausted { retry_after: Duration::from_secs(1) },
                _ => Class::Invalid,
            },
        }
    }
}

impl Error {
    pub(crate) fn new(op: impl Into<String>, kind: Kind) -> Self {
        Self(Box::new(Inner { op: op.into(), kind, source: None }))
    }

    pub(crate) fn config(what: impl Into<String>) -> Self {
        Self::new("options", Kind::Config(what.into()))
    }

    pub(crate) fn bad_answer(op: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(op, Kind::BadAnswer(what.into()))
    }

    pub(crate) fn caused(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// What was attempted, as a rule the subject.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.0.op
    }

    /// The class: what to do about it follows.
    #[must_use]
    pub fn class(&self) -> Class {
        match &self.0.kind {
            Kind::Disconnected | Kind::Unsent | Kind::NoResponders => Class::Unavailable,
            Kind::Interrupted | Kind::Timeout | Kind::BadAnswer(_) => Class::Unknown,
            Kind::Refused { .. } => Class::Denied,
            Kind::Api(error) => error.class(),
            Kind::TooLarge { .. } | Kind::Invalid(_) | Kind::Config(_) => Class::Invalid,
            Kind::Closed => Class::Stopping,
        }
    }

    /// The error with its causes, for a log.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(inner) = cause {
            let said = inner.to_string();
            if !text.ends_with(&said) {
                text = format!("{text}: {said}");
            }
            cause = inner.source();
        }
        text
    }

    /// A stable name for logs and metrics.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match &self.0.kind {
            Kind::Disconnected => "nats.disconnected",
            Kind::Unsent => "nats.unsent",
            Kind::Interrupted => "nats.interrupted",
            Kind::Timeout => "nats.timeout",
            Kind::NoResponders => "nats.no_responders",
            Kind::Refused { .. } => "nats.refused",
            Kind::Api(_) => "nats.jetstream",
            Kind::TooLarge { .. } => "nats.too_large",
            Kind::BadAnswer(_) => "nats.bad_answer",
            Kind::Invalid(_) => "nats.invalid",
            Kind::Config(_) => "nats.config",
            Kind::Closed => "nats.closed",
        }
    }

    /// JetStream's error, where it answered with one.
    #[must_use]
    pub fn api(&self) -> Option<&ApiError> {
        if let Kind::Api(error) = &self.0.kind { Some(error) } else { None }
    }

    /// Whether JetStream answered with this number.
    #[must_use]
    pub fn is_api(&self, err_code: u64) -> bool {
        self.api().is_some_and(|error| error.err_code == err_code)
    }

    /// Whether JetStream said that the stream or the consumer does not exist. Nothing else proves it: a missing object
    /// and one without a leader look the same to every other request.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is_api(err_code::CONSUMER_NOT_FOUND) || self.is_api(err_code::STREAM_NOT_FOUND)
    }

    /// Whether it is certain that the server did nothing of it.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        matches!(self.0.kind, Kind::Disconnected | Kind::Unsent | Kind::TooLarge { .. } | Kind::Invalid(_))
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self::new("", kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected => f.write_str("not connected"),
            Self::Unsent => f.write_str("not sent in time"),
            Self::Interrupted => f.write_str("the connection broke before the answer"),
            Self::Timeout => f.write_str("no answer in time"),
            Self::NoResponders => f.write_str("nobody serves it at the moment"),
            Self::Refused { subject } => write!(f, "the server refuses {subject} to this user"),
            Self::Api(error) => error.fmt(f),
            Self::TooLarge { bytes, limit } => write!(f, "{bytes} bytes, but the server takes {limit}"),
            Self::BadAnswer(what) => write!(f, "unreadable answer: {what}"),
            Self::Invalid(what) | Self::Config(what) => f.write_str(what),
            Self::Closed => f.write_str("the connection is closed"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.op.is_empty() { self.0.kind.fmt(f) } else { write!(f, "{}: {}", self.0.op, self.0.kind) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { op, kind, source } = &*self.0;
        f.debug_struct("Error").field("op", op).field("kind", kind).field("source", source).finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(code: u16, err_code: u64) -> &'static str {
        ApiError { code, err_code, description: String::new() }.class().name()
    }

    #[test]
    fn jetstream_errors_are_judged_by_number() {
        for (code, err_code, expected) in [
            (503, 10_077, "exhausted"),
            (500, 10_047, "exhausted"),
            (503, 10_023, "exhausted"),
            (400, 10_002, "exhausted"),
            (503, 10_008, "unavailable"),
            (400, 10_060, "unavailable"),
            (409, 10_158, "unknown"),
            (400, 10_071, "conflict"),
            (400, 10_164, "conflict"),
            (400, 10_054, "invalid"),
            (404, 10_014, "not_found"),
            (404, 10_059, "not_found"),
            (503, 10_039, "unavailable"),
            (500, 1, "unavailable"),
            (599, 99_999, "unavailable"),
            (400, 10_025, "invalid"),
            (403, 2, "denied"),
            (429, 0, "exhausted"),
            (408, 0, "invalid"),
        ] {
            assert_eq!(class(code, err_code), expected, "{code} {err_code}");
        }
    }

    #[test]
    fn every_kind_has_a_class_and_a_code_of_its_own() {
        let api = ApiError { code: 404, err_code: 10_014, description: "consumer not found".into() };
        let kinds = [
            (Kind::Disconnected, "unavailable", true),
            (Kind::Unsent, "unavailable", true),
            (Kind::Interrupted, "unknown", false),
            (Kind::Timeout, "unknown", false),
            (Kind::NoResponders, "unavailable", false),
            (Kind::Refused { subject: "a".into() }, "denied", false),
            (Kind::Api(api), "not_found", false),
            (Kind::TooLarge { bytes: 2, limit: 1 }, "invalid", true),
            (Kind::BadAnswer("x".into()), "unknown", false),
            (Kind::Invalid("x".into()), "invalid", true),
            (Kind::Config("x".into()), "invalid", false),
            (Kind::Closed, "stopping", false),
        ];
        let mut codes = std::collections::BTreeSet::new();
        for (kind, class, unsent) in kinds {
            let error = Error::new("op", kind);
            assert_eq!((error.class().name(), error.is_unsent()), (class, unsent), "{error}");
            assert!(codes.insert(error.code()), "{error}");
            assert!(error.to_string().starts_with("op: "), "{error}");
        }
    }

    #[test]
    fn only_an_answer_says_that_something_is_gone() {
        let gone = |kind: Kind| Error::new("op", kind).is_gone();
        let api = |err_code| Kind::Api(ApiError { code: 404, err_code, description: String::new() });
        assert!(gone(api(10_014)) && gone(api(10_059)));
        assert!(!gone(api(10_037)) && !gone(Kind::NoResponders) && !gone(Kind::Timeout));
    }
}
