//! What can go wrong with the dedupe store, by kind. The class says what to do about it.

use std::{borrow::Cow, error::Error as StdError, time::Duration};
use wh_types::Class;

/// What a store's method gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation on the dedupe store: what failed, and why.
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
            Kind::Invalid(_) => Class::Invalid,
            Kind::Unavailable => Class::Unavailable,
            Kind::Exhausted { retry_after, .. } => Class::Exhausted { retry_after },
            Kind::Unknown => Class::Unknown,
            Kind::Denied(_) => Class::Denied,
            Kind::NotFound(_) => Class::NotFound,
            Kind::Held(_) => Class::Conflict,
            Kind::Unsupported(_) => Class::Unsupported,
            Kind::Lost => Class::Fenced,
            Kind::Stopping => Class::Stopping,
            Kind::Corrupt(_) => Class::Corrupt,
            Kind::Bug(_) => Class::Bug,
        }
    }

    /// The stable code of this failure in logs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            Kind::Invalid(_) => "dedupe.invalid",
            Kind::Unavailable => "dedupe.unavailable",
            Kind::Exhausted { .. } => "dedupe.exhausted",
            Kind::Unknown => "dedupe.outcome_unknown",
            Kind::Denied(_) => "dedupe.denied",
            Kind::NotFound(_) => "dedupe.not_found",
            Kind::Held(_) => "dedupe.held",
            Kind::Unsupported(_) => "dedupe.unsupported",
            Kind::Lost => "dedupe.lost",
            Kind::Stopping => "dedupe.stopping",
            Kind::Corrupt(_) => "dedupe.corrupt",
            Kind::Bug(_) => "dedupe.bug",
        }
    }
}
