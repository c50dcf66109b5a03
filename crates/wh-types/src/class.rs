//! What kind of failure an error is. One enum for the whole system; what to do about it follows from the class.

use std::time::Duration;

/// The class of an error. HTTP status, retry policy and log level are functions of it, here and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The caller's input cannot work.
    Invalid,
    /// Who asks is not known.
    Unauthenticated,
    /// Who asks is known but may not.
    Forbidden,
    /// The thing does not exist.
    NotFound,
    /// A precondition was lost, or something is already held.
    Conflict,
    /// A backend refuses *our* identity: an operator must act.
    Denied,
    /// This backend cannot do that, by its nature.
    Unsupported,
    /// A limit is reached or a store is full.
    Exhausted {
        /// When to try again.
        retry_after: Duration,
    },
    /// Not reached; nothing happened.
    Unavailable,
    /// The answer was lost; it may have happened. Repeat only under the same idempotency key.
    Unknown,
    /// We no longer own this. Never with this token again.
    Fenced,
    /// This process is shutting down.
    Stopping,
    /// Stored bytes cannot be read.
    Corrupt,
    /// An invariant of ours is broken.
    Bug,
}

/// How loudly an error of a class is logged where it is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Normal in operation: the caller hears of it.
    Debug,
    /// Something is slow or full; limited in rate.
    Warn,
    /// Someone must act.
    Error,
}

impl Class {
    /// The HTTP status of an answer that failed with this class. 413 and 415 are chosen by the error's code.
    #[must_use]
    pub fn http_status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Denied => 502,
            Self::Unsupported => 501,
            Self::Exhausted { .. } | Self::Unavailable | Self::Unknown | Self::Stopping => 503,
            // A fence never reaches a client by itself; if it does, our own bookkeeping failed.
            Self::Fenced | Self::Corrupt | Self::Bug => 500,
        }
    }

    /// Whether a caller may send the same request again and hope for better.
    #[must_use]
    pub fn retryable(self) -> bool {
        matches!(self, Self::Exhausted { .. } | Self::Unavailable | Self::Unknown | Self::Stopping)
    }

    /// The `Retry-After` of an answer with this class, in whole seconds.
    #[must_use]
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Exhausted { retry_after } => Some(retry_after),
            Self::Unavailable | Self::Unknown | Self::Stopping => Some(Duration::from_secs(5)),
            Self::Invalid
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::NotFound
            | Self::Conflict
            | Self::Denied
            | Self::Unsupported
            | Self::Fenced
            | Self::Corrupt
            | Self::Bug => None,
        }
    }

    /// How loudly it is logged where it is handled.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::Invalid
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::NotFound
            | Self::Conflict
            | Self::Unsupported
            | Self::Stopping => Severity::Debug,
            Self::Exhausted { .. } | Self::Unavailable | Self::Unknown | Self::Fenced => Severity::Warn,
            Self::Denied | Self::Corrupt | Self::Bug => Severity::Error,
        }
    }

    /// The class's name in logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Denied => "denied",
            Self::Unsupported => "unsupported",
            Self::Exhausted { .. } => "exhausted",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Fenced => "fenced",
            Self::Stopping => "stopping",
            Self::Corrupt => "corrupt",
            Self::Bug => "bug",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retryable_classes_answer_503_with_a_delay_and_only_they() {
        let all = [
            Class::Invalid,
            Class::Unauthenticated,
            Class::Forbidden,
            Class::NotFound,
            Class::Conflict,
            Class::Denied,
            Class::Unsupported,
            Class::Exhausted { retry_after: Duration::from_secs(30) },
            Class::Unavailable,
            Class::Unknown,
            Class::Fenced,
            Class::Stopping,
            Class::Corrupt,
            Class::Bug,
        ];
        for class in all {
            assert_eq!(class.retryable(), class.http_status() == 503, "{class:?}");
            assert_eq!(class.retryable(), class.retry_after().is_some(), "{class:?}");
        }
        assert_eq!(
            Class::Exhausted { retry_after: Duration::from_secs(30) }.retry_after(),
            Some(Duration::from_secs(30))
        );
    }
}
