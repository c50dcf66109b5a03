//! What can go wrong with a cache, by kind. The class says what to do about it; no query fails of it.

use std::{borrow::Cow, error::Error as StdError, time::Duration};
use wh_types::Class;

/// What fails, or not.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation on a cache: what failed, and why.
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
    /// What was given breaks a bound.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
    /// Not reached; nothing was stored.
    #[error("the cache cannot be reached")]
    Unavailable,
    /// The connection is gone.
    #[error("the connection to the cache is gone")]
    Disconnected,
    /// No answer in time; it may be stored.
    #[error("the cache did not answer in time")]
    TimedOut,
    /// The server takes no writes, or does not know us: it is of no use until that ends.
    #[error("the cache refuses us: {0}")]
    Refused(Cow<'static, str>),
    /// The server refuses this one operation to us.
    #[error("the cache forbids us this: {0}")]
    Forbidden(Cow<'static, str>),
    /// The server has no room.
    #[error("the cache has no room")]
    Full,
    /// What is stored cannot be read.
    #[error("what the cache holds cannot be read: {0}")]
    Corrupt(Cow<'static, str>),
    /// The cache is closed.
    #[error("the cache is closed")]
    Stopping,
    /// Something that should not happen.
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
            Kind::Unavailable | Kind::Disconnected => Class::Unavailable,
            Kind::TimedOut => Class::Unknown,
            Kind::Refused(_) | Kind::Forbidden(_) => Class::Denied,
            Kind::Full => Class::Exhausted { retry_after: Duration::from_secs(5) },
            Kind::Corrupt(_) => Class::Corrupt,
            Kind::Stopping => Class::Stopping,
            Kind::Bug(_) => Class::Bug,
        }
    }

    /// The stable code of this failure in logs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            Kind::Invalid(_) => "cache.invalid",
            Kind::Unavailable => "cache.unavailable",
            Kind::Disconnected => "cache.disconnected",
            Kind::TimedOut => "cache.timed_out",
            Kind::Refused(_) => "cache.refused",
            Kind::Forbidden(_) => "cache.forbidden",
            Kind::Full => "cache.full",
            Kind::Corrupt(_) => "cache.corrupt",
            Kind::Stopping => "cache.stopping",
            Kind::Bug(_) => "cache.bug",
        }
    }
}
