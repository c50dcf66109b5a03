//! The one error of this crate, and what it means. Vendor errors stop here.

use crate::{Failure, QueryFailure, RoleCaps};
use std::{error::Error as StdError, fmt};
use wh_types::Class;

/// Most bytes kept of an exception's text.
pub const MESSAGE_LIMIT: usize = 4096;

/// What this crate's calls give.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// ClickHouse answered with an exception code.
    Exception,
    /// An answer that is not good and has no exception code: a proxy's, or a server that is starting.
    Status,
    /// No connection was made: nothing was sent.
    Connect,
    /// The request was (at least partly) sent and its answer never came, or broke off.
    Lost,
    /// Time ran out after something was sent.
    Timeout,
    /// Time ran out while waiting for a free connection: nothing was sent.
    Busy,
    /// The answer is larger than the caller allowed.
    TooLarge,
    /// The answer cannot be read as what it should be.
    Malformed,
    /// The options or the request cannot be put into HTTP.
    Invalid,
}

/// A failed request: its kind, ClickHouse's code where it gave one, and a bounded text without secrets.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    op: &'static str,
    code: Option<i32>,
    status: Option<u16>,
    message: String,
    effect: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// How the request failed.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What was being done: `insert`, `query`, `execute`, `ping` or `discover`.
    #[must_use]
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// ClickHouse's exception code.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.0.code
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// ClickHouse's own text, or ours, at most [`MESSAGE_LIMIT`] bytes.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The shared class.
    #[must_use]
    pub fn class(&self) -> Class {
        Class::Bug
    }

    /// What it means for the rows of a failed insert.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure::Unknown
    }

    /// What it means for who asked a query, given the caps that were sent for their role.
    #[must_use]
    pub fn query_failure(&self, _caps: RoleCaps) -> QueryFailure {
        QueryFailure::Unknown
    }

    /// The insert may have happened: freeze the batch and repeat exactly it under the same token.
    #[must_use]
    pub fn in_doubt(&self) -> bool {
        self.0.effect
    }

    /// Fewer rows at once may pass: halve the batch (241 memory limit, 252 too many partitions in one block).
    #[must_use]
    pub fn splittable(&self) -> bool {
        false
    }

    /// Only this table is in trouble: back off it alone.
    #[must_use]
    pub fn table_scoped(&self) -> bool {
        false
    }

    /// The table (60) or its database (81) is not there.
    #[must_use]
    pub fn unknown_table(&self) -> bool {
        false
    }

    /// A named column is not there or cannot be written (8, 16, 47, 117): the schema may have moved.
    #[must_use]
    pub fn unknown_column(&self) -> bool {
        false
    }

    /// The number of the bad row, counted from 1 over all frames, where ClickHouse names it.
    #[must_use]
    pub fn row_hint(&self) -> Option<u64> {
        None
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, op, code, status, message, effect, source } = &*self.0;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("op", op)
            .field("code", code)
            .field("status", status)
            .field("message", message)
            .field("effect", effect)
            .field("source", source)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.op, self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}
