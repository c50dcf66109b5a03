//! What can go wrong with a cache, by kind. The class says what to do about it; no query fails of it.

use std::{borrow::Cow, time::Duration};
use wh_types::{Class, Failure, FailureKind};

/// What fails, or not.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation on a cache: what failed, and why.
pub type Error = Failure<Kind>;

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

impl FailureKind for Kind {
    fn class(&self) -> Class {
        match *self {
            Self::Invalid(_) => Class::Invalid,
            Self::Unavailable | Self::Disconnected => Class::Unavailable,
            Self::TimedOut => Class::Unknown,
            Self::Refused(_) | Self::Forbidden(_) => Class::Denied,
            Self::Full => Class::Exhausted { retry_after: Duration::from_secs(5) },
            Self::Corrupt(_) => Class::Corrupt,
            Self::Stopping => Class::Stopping,
            Self::Bug(_) => Class::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "cache.invalid",
            Self::Unavailable => "cache.unavailable",
            Self::Disconnected => "cache.disconnected",
            Self::TimedOut => "cache.timed_out",
            Self::Refused(_) => "cache.refused",
            Self::Forbidden(_) => "cache.forbidden",
            Self::Full => "cache.full",
            Self::Corrupt(_) => "cache.corrupt",
            Self::Stopping => "cache.stopping",
            Self::Bug(_) => "cache.bug",
        }
    }
}
