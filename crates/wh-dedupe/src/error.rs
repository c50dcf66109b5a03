//! What can go wrong with the dedupe store, by kind. The class says what to do about it.

use std::{borrow::Cow, time::Duration};
use wh_types::{Class, Failure, FailureKind};

/// What a store's method gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation on the dedupe store: what failed, and why.
pub type Error = Failure<Kind>;

/// The kinds of failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Kind {
    /// A key, a payload, a lease or a number of rows breaks a bound.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
    /// Not reached; nothing was changed.
    #[error("the dedupe store cannot be reached")]
    Unavailable,
    /// The store takes no more for now; nothing was changed.
    #[error("the dedupe store takes no more for now: {why}")]
    Exhausted {
        /// What is at its limit.
        why: Cow<'static, str>,
        /// When to try again.
        retry_after: Duration,
    },
    /// The answer was lost; it may have been changed.
    #[error("whether the dedupe store was changed is not known")]
    Unknown,
    /// The store refuses us.
    #[error("the dedupe store refuses us: {0}")]
    Denied(Cow<'static, str>),
    /// The store is not there.
    #[error("{0} does not exist")]
    NotFound(Cow<'static, str>),
    /// The folder is another process's.
    #[error("{0}")]
    Held(Cow<'static, str>),
    /// The store was made by another version, or is not made as it must be.
    #[error("{0}")]
    Unsupported(Cow<'static, str>),
    /// The ticket holds nothing: its claim was committed, released, or taken over after it lapsed.
    #[error("the ticket does not hold this key any more")]
    Lost,
    /// The store is closed.
    #[error("the dedupe store is closed")]
    Stopping,
    /// What is stored cannot be read.
    #[error("the dedupe store is damaged: {0}")]
    Corrupt(Cow<'static, str>),
    /// An invariant of ours is broken.
    #[error("internal fault: {0}")]
    Bug(Cow<'static, str>),
}

impl FailureKind for Kind {
    fn class(&self) -> Class {
        match *self {
            Self::Invalid(_) => Class::Invalid,
            Self::Unavailable => Class::Unavailable,
            Self::Exhausted { retry_after, .. } => Class::Exhausted { retry_after },
            Self::Unknown => Class::Unknown,
            Self::Denied(_) => Class::Denied,
            Self::NotFound(_) => Class::NotFound,
            Self::Held(_) => Class::Conflict,
            Self::Unsupported(_) => Class::Unsupported,
            Self::Lost => Class::Fenced,
            Self::Stopping => Class::Stopping,
            Self::Corrupt(_) => Class::Corrupt,
            Self::Bug(_) => Class::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "dedupe.invalid",
            Self::Unavailable => "dedupe.unavailable",
            Self::Exhausted { .. } => "dedupe.exhausted",
            Self::Unknown => "dedupe.outcome_unknown",
            Self::Denied(_) => "dedupe.denied",
            Self::NotFound(_) => "dedupe.not_found",
            Self::Held(_) => "dedupe.held",
            Self::Unsupported(_) => "dedupe.unsupported",
            Self::Lost => "dedupe.lost",
            Self::Stopping => "dedupe.stopping",
            Self::Corrupt(_) => "dedupe.corrupt",
            Self::Bug(_) => "dedupe.bug",
        }
    }
}
