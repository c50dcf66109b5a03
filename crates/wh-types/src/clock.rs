//! Time as an argument: a monotonic clock for deadlines and a wall clock for stamps.
#![allow(clippy::disallowed_methods, reason = "this module is where the clocks are read")]

use crate::Timestamp;
use std::{fmt::Debug, time::SystemTime};

/// A moment on this process's own monotonic clock. Tokio's, so that a paused test runtime moves it.
pub type Mono = tokio::time::Instant;

/// Both clocks. Waiting is tokio's own `sleep` and `sleep_until`, which follow the same paused time.
pub trait Clock: Debug + Send + Sync {
    /// Now, for deadlines. Never goes back.
    fn now(&self) -> Mono;
    /// Now, for stamps that people and other processes read. May jump.
    fn wall(&self) -> Timestamp;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Mono {
        Mono::now()
    }

    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// A wall clock that starts where it is told and moves with tokio's (paused) time: for simulation and tests.
#[derive(Clone, Copy, Debug)]
pub struct SimClock {
    start: Mono,
    wall: Timestamp,
}

impl SimClock {
    /// Starts at `wall`.
    #[must_use]
    pub fn new(wall: Timestamp) -> Self {
        Self { start: Mono::now(), wall }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Mono {
        Mono::now()
    }

    fn wall(&self) -> Timestamp {
        self.wall + Mono::now().saturating_duration_since(self.start)
    }
}
