//! Time inside the state machine: nanoseconds from the moment it was made. Never read from a clock here.

use std::time::Duration;

/// A moment; negative for what happened before the state machine was made (recovered blocks).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tick(pub(crate) i64);

impl Tick {
    pub(crate) fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }

    pub(crate) fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

/// A span in nanoseconds, as long as 292 years at most.
pub(crate) fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}
