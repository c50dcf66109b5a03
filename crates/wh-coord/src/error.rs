//! What can go wrong with leases, by kind. The class says what to do about it.

use std::{borrow::Cow, error::Error as StdError};
use wh_types::Class;

/// What a coordinator's method gives.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed operation on leases: what failed, and why.
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
            Kind::Unknown => Class::Unknown,
            Kind::Denied(_) => Class::Denied,
            Kind::NotFound(_) => Class::NotFound,
            Kind::Conflict => Class::Conflict,
            Kind::Ended => Class::Fenced,
            Kind::Stopping => Class::Stopping,
            Kind::Bug(_) => Class::Bug,
        }
    }

    /// The stable code of this failure in logs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            Kind::Invalid(_) => "lease.invalid",
            Kind::Unavailable => "lease.unavailable",
            Kind::Unknown => "lease.outcome_unknown",
            Kind::Denied(_) => "lease.denied",
            Kind::NotFound(_) => "lease.not_found",
            Kind::Conflict => "lease.conflict",
            Kind::Ended => "lease.ended",
            Kind::Stopping => "lease.stopping",
            Kind::Bug(_) => "lease.bug",
        }
    }
}
