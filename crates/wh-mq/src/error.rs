//! What can go wrong at the queue, by kind. The class says what to do about it.

use std::{borrow::Cow, time::Duration};
use wh_types::{Class, Failure, FailureKind};

/// What a broker's method gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation on the queue: what failed, at what, and why.
pub type Error = Failure<Kind>;

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

impl FailureKind for Kind {
    fn class(&self) -> Class {
        match *self {
            Self::BadBlock(_) => Class::Invalid,
            Self::NotFound(_) => Class::NotFound,
            Self::UnitHeld(_) => Class::Conflict,
            Self::Full { retry_after, .. } => Class::Exhausted { retry_after },
            Self::NoSpace => Class::Exhausted { retry_after: Duration::from_secs(30) },
            Self::Unavailable => Class::Unavailable,
            Self::Unknown => Class::Unknown,
            Self::Fenced => Class::Fenced,
            Self::Stopping => Class::Stopping,
            Self::Denied(_) | Self::Folder(_) => Class::Denied,
            Self::Unsupported(_) => Class::Unsupported,
            Self::Corrupt(_) => Class::Corrupt,
            Self::Bug(_) => Class::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::BadBlock(_) => "queue.bad_block",
            Self::NotFound(_) => "queue.not_found",
            Self::UnitHeld(_) => "queue.unit_held",
            Self::Full { .. } => "queue.full",
            Self::NoSpace => "queue.no_space",
            Self::Unavailable => "queue.unavailable",
            Self::Unknown => "queue.outcome_unknown",
            Self::Fenced => "queue.fenced",
            Self::Stopping => "queue.stopping",
            Self::Denied(_) => "queue.denied",
            Self::Unsupported(_) => "queue.unsupported",
            Self::Corrupt(_) => "queue.corrupt",
            Self::Folder(_) => "queue.folder",
            Self::Bug(_) => "queue.bug",
        }
    }
}
