//! What can go wrong at the queue, by kind. The class says what to do about it.

use std::{borrow::Cow, error::Error as StdError, time::Duration};
use wh_types::Class;

/// What a broker's method gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation on the queue: what failed, at what, and why.
#[derive(Debug, thiserror::Error)]
#[error("{op}: {kind}")]
pub struct Error {
    kind: Kind,
    op: &'static str,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kinds of failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Kind {
    /// The block breaks a bound of the port: too many rows, too large.
    #[error("the block is not acceptable: {0}")]
    BadBlock(Cow<'static, str>),
    /// No such unit, or no such dead letter.
    #[error("{0} does not exist")]
    NotFound(Cow<'static, str>),
    /// Another feed has the unit, or someone was active on it.
    #[error("unit {0} is held")]
    UnitHeld(crate::Unit),
    /// The tenant, or one table of it, is at its budget.
    #[error("the queue of {what} is full")]
    Full {
        /// Whose.
        what: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The store behind the queue has no room.
    #[error("the queue's store is out of space")]
    NoSpace,
    /// Not reached; nothing was stored.
    #[error("the queue cannot be reached")]
    Unavailable,
    /// The answer was lost; the block may be stored.
    #[error("whether the block was stored is not known")]
    Unknown,
    /// The feed was released, or its unit has another owner: this token settles nothing any more.
    #[error("this unit is no longer ours")]
    Fenced,
    /// The broker is closing.
    #[error("the queue is closing")]
    Stopping,
    /// The backend refuses us.
    #[error("the queue refuses us: {0}")]
    Denied(Cow<'static, str>),
    /// The backend has no such operation.
    #[error("this queue cannot {0}")]
    Unsupported(&'static str),
    /// Stored bytes cannot be read.
    #[error("stored bytes cannot be read: {0}")]
    Corrupt(Cow<'static, str>),
    /// The folder cannot be used: not writable, a file, or locked by another process.
    #[error("{0}")]
    Folder(String),
    /// An invariant of ours is broken.
    #[error("internal fault: {0}")]
    Bug(Cow<'static, str>),
}

impl Error {
    /// A failure of `op`.
    #[must_use]
    pub fn new(op: &'static str, kind: Kind) -> Self {
        Self { kind, op, source: None }
    }

    /// The same with the error that caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self.kind {
            Kind::BadBlock(_) => Class::Invalid,
            Kind::NotFound(_) => Class::NotFound,
            Kind::UnitHeld(_) => Class::Conflict,
            Kind::Full { retry_after, .. } => Class::Exhausted { retry_after },
            Kind::NoSpace => Class::Exhausted { retry_after: Duration::from_secs(30) },
            Kind::Unavailable => Class::Unavailable,
            Kind::Unknown => Class::Unknown,
            Kind::Fenced => Class::Fenced,
            Kind::Stopping => Class::Stopping,
            Kind::Denied(_) | Kind::Folder(_) => Class::Denied,
            Kind::Unsupported(_) => Class::Unsupported,
            Kind::Corrupt(_) => Class::Corrupt,
            Kind::Bug(_) => Class::Bug,
        }
    }

    /// The stable code of this failure in HTTP answers and logs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            Kind::BadBlock(_) => "queue.bad_block",
            Kind::NotFound(_) => "queue.not_found",
            Kind::UnitHeld(_) => "queue.unit_held",
            Kind::Full { .. } => "queue.full",
            Kind::NoSpace => "queue.no_space",
            Kind::Unavailable => "queue.unavailable",
            Kind::Unknown => "queue.outcome_unknown",
            Kind::Fenced => "queue.fenced",
            Kind::Stopping => "queue.stopping",
            Kind::Denied(_) => "queue.denied",
            Kind::Unsupported(_) => "queue.unsupported",
            Kind::Corrupt(_) => "queue.corrupt",
            Kind::Folder(_) => "queue.folder",
            Kind::Bug(_) => "queue.bug",
        }
    }
}
