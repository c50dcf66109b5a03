//! Why a process does not start on a topology.

use super::check::{Check, Report};
use std::fmt;
use wh_topology::{Finding, ObserveError};
use wh_types::Class;

/// Why a process does not start. The text lists everything.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unsound {
    /// Something is wrong, or was not read.
    Findings(Report),
    /// No server is connected.
    Unavailable {
        /// The servers, without what must not be shown.
        urls: String,
        /// Why the last attempt failed.
        last_error: Option<String>,
    },
    /// The check could not be made.
    Unread {
        /// Why.
        error: ObserveError,
        /// Subjects that the server refused meanwhile.
        refused: Vec<String>,
    },
}

impl Unsound {
    /// What the last attempt came to.
    pub(super) fn new(check: &Check, last: Result<Report, ObserveError>, refusals_before: u64) -> Self {
        match (last, check.disconnected()) {
            (Ok(report), _) => Self::Findings(report),
            (Err(_), Some(gone)) => Self::Unavailable { urls: gone.urls, last_error: gone.last_error },
            (Err(error), None) => {
                let refusals = check.connection().refusals().since(refusals_before).into_iter();
                let mut refused: Vec<_> = refusals.map(|refusal| refusal.subject).collect();
                refused.sort();
                refused.dedup();
                Self::Unread { error, refused }
            }
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Findings(report) if report.complete => Class::Denied,
            Self::Findings(_) | Self::Unavailable { .. } => Class::Unavailable,
            Self::Unread { error, .. } => error.class,
        }
    }

    /// Everything that is wrong, where that is known.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Findings(report) => &report.findings,
            Self::Unavailable { .. } | Self::Unread { .. } => &[],
        }
    }
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Findings(report) => {
                let head = if report.complete { "cannot be used" } else { "was not read whole" };
                write!(f, "the topology on the NATS servers {head}; `wavehouse mq verify` checks it again")?;
                report.findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))
            }
            Self::Unavailable { urls, last_error } => {
                write!(f, "no NATS server is connected: {urls}")?;
                last_error.iter().try_for_each(|error| write!(f, ": {error}"))
            }
            Self::Unread { error, refused } => {
                write!(f, "the topology on the NATS servers cannot be checked: {error}")?;
                if refused.is_empty() { Ok(()) } else { write!(f, "; the server refuses us {}", refused.join(", ")) }
            }
        }
    }
}

impl std::error::Error for Unsound {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unread { error, .. } => Some(error),
            Self::Findings(_) | Self::Unavailable { .. } => None,
        }
    }
}
