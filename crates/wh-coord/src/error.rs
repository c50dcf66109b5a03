//! What can go wrong with leases, by kind. The class says what to do about it.

use std::borrow::Cow;
use wh_types::{Class, Failure, FailureKind};

/// What a coordinator's method gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation on leases: what failed, and why.
pub type Error = Failure<Kind>;

/// The kinds of failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Kind {
    /// A key or a note breaks a bound.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
    /// Not reached; nothing was stored.
    #[error("the lease store cannot be reached")]
    Unavailable,
    /// The answer was lost; it may be stored.
    #[error("whether the lease was stored is not known")]
    Unknown,
    /// The store refuses us.
    #[error("the lease store refuses us: {0}")]
    Denied(Cow<'static, str>),
    /// The store is not there.
    #[error("{0} does not exist")]
    NotFound(Cow<'static, str>),
    /// The store holds something newer: the precondition of a write was lost.
    #[error("the lease was changed by another")]
    Conflict,
    /// The term is over.
    #[error("the term is over")]
    Ended,
    /// The coordinator is closed.
    #[error("coordination is closed")]
    Stopping,
    /// An invariant of ours is broken.
    #[error("internal fault: {0}")]
    Bug(Cow<'static, str>),
}

impl FailureKind for Kind {
    fn class(&self) -> Class {
        match *self {
            Self::Invalid(_) => Class::Invalid,
            Self::Unavailable => Class::Unavailable,
            Self::Unknown => Class::Unknown,
            Self::Denied(_) => Class::Denied,
            Self::NotFound(_) => Class::NotFound,
            Self::Conflict => Class::Conflict,
            Self::Ended => Class::Fenced,
            Self::Stopping => Class::Stopping,
            Self::Bug(_) => Class::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "lease.invalid",
            Self::Unavailable => "lease.unavailable",
            Self::Unknown => "lease.outcome_unknown",
            Self::Denied(_) => "lease.denied",
            Self::NotFound(_) => "lease.not_found",
            Self::Conflict => "lease.conflict",
            Self::Ended => "lease.ended",
            Self::Stopping => "lease.stopping",
            Self::Bug(_) => "lease.bug",
        }
    }
}
