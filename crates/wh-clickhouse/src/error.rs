//! The one error of this crate, and what it means. Vendor errors stop here.

use crate::{
    Failure, QueryFailure, RoleCaps,
    codes::{self, note},
    exception::{self, Exception},
};
use std::{error::Error as StdError, fmt};
use wh_types::Class;

/// Most bytes kept of an exception's text.
pub const MESSAGE_LIMIT: usize = 4096;

/// What to say of a user whose setting `readonly` is not 0.
pub const READ_ONLY_USER: &str = "WaveHouse's ClickHouse user is read-only: set its setting readonly to 0 \
    (1 refuses every insert and every setting that queries need, 2 refuses every insert)";

/// What this crate's calls give.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// ClickHouse's code for what a read-only user may not do.
const READONLY: i32 = 164;

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// ClickHouse answered with an exception.
    Exception,
    /// An answer that is not good and has no exception code: a proxy's, or a server that is starting.
    Status,
    /// No connection was made: nothing was sent.
    Connect,
    /// Time ran out while waiting for a free connection: nothing was sent.
    Busy,
    /// The request was (at least partly) sent and its answer never came, or broke off.
    Lost,
    /// Time ran out after something was sent.
    Timeout,
    /// The answer is larger than the caller allowed.
    TooLarge,
    /// The answer cannot be read as what it should be.
    Malformed,
    /// The options or the request cannot be put into HTTP.
    Invalid,
    /// Whoever does this work is stopping.
    Stopping,
}

/// What a request is for, as far as its errors need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Purpose {
    /// `insert`, `query`, `execute`, `ping` or `discover`.
    pub(crate) op: &'static str,
    /// Whether it may change something: then a lost answer leaves a doubt.
    pub(crate) effect: bool,
}

/// A failed request: its kind, ClickHouse's code where it gave one, and a bounded text without secrets.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    purpose: Purpose,
    code: Option<i32>,
    status: Option<u16>,
    message: String,
    row_hint: Option<u64>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: Kind, purpose: Purpose, message: impl Into<String>) -> Self {
        let message = bounded(message.into());
        Self(Box::new(Inner { kind, purpose, code: None, status: None, message, row_hint: None, source: None }))
    }

    /// From what ClickHouse said.
    pub(crate) fn exception(purpose: Purpose, status: u16, exception: Exception) -> Self {
        let row_hint = exception::row_hint(&exception.text);
        let read_only = exception.code == READONLY && purpose.op == "insert";
        let text = if read_only { format!("{READ_ONLY_USER}: {}", exception.text) } else { exception.text };
        let mut error = Self::new(Kind::Exception, purpose, text).status_was(status);
        error.0.code = Some(exception.code);
        error.0.row_hint = row_hint;
        error
    }

    pub(crate) fn caused(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub(crate) fn status_was(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// How the request failed.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What was being done: `insert`, `query`, `execute`, `ping`, `discover` or `options`.
    #[must_use]
    pub fn op(&self) -> &'static str {
        self.0.purpose.op
    }

    /// ClickHouse's exception code; 0 for one whose text was cut off before its code.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.0.code
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// ClickHouse's own text, or ours, at most [`MESSAGE_LIMIT`] bytes. May quote the values of rows.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The shared class.
    #[must_use]
    pub fn class(&self) -> Class {
        if self.in_doubt() {
            return Class::Unknown;
        }
        match self.0.kind {
            Kind::Exception if self.unknown_table() => Class::NotFound,
            Kind::Exception | Kind::Status => match self.failure() {
                Failure::Unavailable => Class::Unavailable,
                Failure::Rejected => Class::Invalid,
                // no code, no doubt: an address that is not ClickHouse's, or a proxy's refusal
                Failure::Denied | Failure::Unknown => Class::Denied,
            },
            Kind::Connect | Kind::Busy | Kind::Lost | Kind::Timeout | Kind::Malformed => Class::Unavailable,
            Kind::TooLarge | Kind::Invalid => Class::Invalid,
            Kind::Stopping => Class::Stopping,
        }
    }

    /// What it means for the rows of a failed insert.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self.0.kind {
            Kind::Exception => self.listed().map_or(Failure::Rejected, |code| code.failure),
            Kind::Status => self.0.status.map_or(Failure::Unknown, codes::by_status),
            Kind::Connect | Kind::Busy | Kind::Stopping => Failure::Unavailable,
            Kind::Lost | Kind::Timeout | Kind::TooLarge | Kind::Malformed => Failure::Unknown,
            Kind::Invalid => Failure::Rejected,
        }
    }

    /// What it means for who asked a query, given the caps that were sent for their role.
    #[must_use]
    pub fn query_failure(&self, caps: RoleCaps) -> QueryFailure {
        match (self.0.kind, self.0.code) {
            (Kind::Exception, Some(497)) => QueryFailure::AccessDenied,
            (Kind::Exception, Some(159 | 160)) if caps.time => QueryFailure::Limit,
            (Kind::Exception, Some(241)) if caps.memory => QueryFailure::Limit,
            // the profile of our own user forbids what a read needs
            (Kind::Exception, Some(READONLY)) => QueryFailure::Misconfigured,
            (Kind::Exception, _) if self.noted(note::LIMIT) => QueryFailure::Limit,
            (Kind::Status, _) if matches!(self.0.status, Some(status) if status < 500) => match self.failure() {
                Failure::Unavailable => QueryFailure::Unavailable,
                Failure::Rejected => QueryFailure::Rejected,
                Failure::Denied | Failure::Unknown => QueryFailure::Misconfigured,
            },
            (Kind::Exception | Kind::Status, _) => match self.failure() {
                Failure::Unavailable => QueryFailure::Unavailable,
                Failure::Denied => QueryFailure::Misconfigured,
                Failure::Unknown => QueryFailure::Unknown,
                Failure::Rejected => QueryFailure::Rejected,
            },
            (Kind::Connect | Kind::Busy | Kind::Lost | Kind::Timeout | Kind::Stopping, _) => QueryFailure::Unavailable,
            (Kind::TooLarge, _) => QueryFailure::TooLarge,
            (Kind::Malformed, _) => QueryFailure::Unknown,
            (Kind::Invalid, _) => QueryFailure::Rejected,
        }
    }

    /// It may have happened nevertheless: freeze the batch and repeat exactly it under the same token.
    #[must_use]
    pub fn in_doubt(&self) -> bool {
        self.0.purpose.effect
            && match self.0.kind {
                Kind::Exception => self.noted(note::DOUBT),
                Kind::Status => self.0.status.is_some_and(codes::doubtful_status),
                Kind::Lost | Kind::Timeout | Kind::TooLarge | Kind::Malformed => true,
                Kind::Connect | Kind::Busy | Kind::Invalid | Kind::Stopping => false,
            }
    }

    /// Fewer rows at once may pass: halve the batch (241 memory limit, 252 too many partitions in one block). 252 from
    /// merges that do not keep up is not: splitting would make more parts.
    #[must_use]
    pub fn splittable(&self) -> bool {
        self.noted(note::SPLIT) && (self.0.code != Some(252) || self.0.message.contains("single INSERT block"))
    }

    /// Only this table is in trouble: back off it alone.
    #[must_use]
    pub fn table_scoped(&self) -> bool {
        self.noted(note::TABLE)
    }

    /// The table (60) or its database (81) is not there.
    #[must_use]
    pub fn unknown_table(&self) -> bool {
        self.noted(note::NO_TABLE)
    }

    /// A named column may not be there, or not be writable (8, 16, 47, 117): the schema may have moved. 117 has other
    /// causes too.
    #[must_use]
    pub fn unknown_column(&self) -> bool {
        self.noted(note::NO_COLUMN)
    }

    /// The user may not do this (164): its setting `readonly` is not 0, or the request itself made it so.
    #[must_use]
    pub fn read_only_user(&self) -> bool {
        self.0.kind == Kind::Exception && self.0.code == Some(READONLY)
    }

    /// The number of the bad row, counted from 1 over all frames, where ClickHouse names it. A hint: rows with a stray
    /// bracket are named one too late, so check before relying on it.
    #[must_use]
    pub fn row_hint(&self) -> Option<u64> {
        self.0.row_hint
    }

    fn listed(&self) -> Option<&'static codes::Code> {
        self.0.code.and_then(codes::find)
    }

    fn noted(&self, bit: u8) -> bool {
        self.listed().is_some_and(|code| code.notes & bit != 0)
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MESSAGE_LIMIT {
        let cut = (0..=MESSAGE_LIMIT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(cut);
    }
    text
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, purpose, code, status, message, source, .. } = &*self.0;
        let mut shown = f.debug_struct("Error");
        shown.field("op", &purpose.op).field("kind", kind).field("code", code).field("status", status);
        shown.field("message", message).field("source", source).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.purpose.op, self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests;
