//! A failed operation of a port: what failed, how, and because of what. Which kinds of failure there are is each port's own.

use crate::Class;
use std::{error::Error as StdError, fmt};

/// The kinds of failure of one port.
pub trait FailureKind: fmt::Debug + fmt::Display {
    /// What to do about it.
    fn class(&self) -> Class;

    /// Its stable code in HTTP answers and logs.
    fn code(&self) -> &'static str;
}

/// A failed operation.
#[derive(Debug, thiserror::Error)]
#[error("{op}: {kind}")]
pub struct Failure<K: FailureKind> {
    kind: K,
    op: &'static str,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl<K: FailureKind> Failure<K> {
    /// A failure of `op`.
    #[must_use]
    pub fn new(op: &'static str, kind: K) -> Self {
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
    pub fn kind(&self) -> &K {
        &self.kind
    }

    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        self.kind.class()
    }

    /// The stable code of this failure in HTTP answers and logs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }
}
