//! When the store is asked and when it is left alone. Pure: time is an argument.

use crate::{Error, Kind};
use std::time::Duration;
use wh_types::Mono;

/// Failures in a row that open it.
const FAILURES: u32 = 5;

#[derive(Debug)]
pub(super) struct Breaker {
    failures: u32,
    open: Option<Open>,
    /// How long the store is left alone after a failure, and after a connection that broke.
    pause: Duration,
    soon: Duration,
}

#[derive(Debug)]
struct Open {
    why: String,
    since: Mono,
    probe: Mono,
}

impl Breaker {
    pub(super) fn closed(pause: Duration) -> Self {
        Self { failures: 0, open: None, pause, soon: pause / 20 }
    }

    /// Open from the start: nothing is connected yet.
    pub(super) fn starting(pause: Duration, now: Mono) -> Self {
        let open = Open { why: "not connected yet".to_owned(), since: now, probe: now };
        Self { open: Some(open), ..Self::closed(pause) }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn why(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.why.as_str())
    }

    /// When the store is to be tried.
    pub(super) fn probe(&self) -> Option<Mono> {
        self.open.as_ref().map(|open| open.probe)
    }

    /// An operation failed. Whether this opened it.
    pub(super) fn failed(&mut self, error: &Error, now: Mono) -> bool {
        let (at_once, wait) = match error.kind() {
            Kind::Refused(_) | Kind::Full => (true, self.pause),
            Kind::Disconnected => (true, self.soon),
            Kind::Unavailable | Kind::TimedOut | Kind::Bug(_) => (false, self.pause),
            // of this one operation, not of the store
            Kind::Invalid(_) | Kind::Forbidden(_) | Kind::Corrupt(_) | Kind::Stopping => return false,
        };
        self.failures = self.failures.saturating_add(1);
        if self.is_open() || !(at_once || self.failures >= FAILURES) {
            return false;
        }
        self.open = Some(Open { why: error.to_string(), since: now, probe: now + wait });
        true
    }

    /// An operation worked.
    pub(super) fn worked(&mut self) {
        self.failures = 0;
    }

    /// A probe failed.
    pub(super) fn still(&mut self, error: &Error, now: Mono) {
        if let Some(open) = &mut self.open {
            open.why = error.to_string();
            open.probe = now + self.pause;
        }
    }

    /// A probe worked: for how long it was open.
    pub(super) fn close(&mut self, now: Mono) -> Option<Duration> {
        self.failures = 0;
        self.open.take().map(|open| now.saturating_duration_since(open.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Clock as _, SystemClock};

    const PAUSE: Duration = Duration::from_secs(5);

    fn error(kind: Kind) -> Error {
        Error::new("lookup", kind)
    }

    #[test]
    fn five_failures_in_a_row_open_it_and_a_success_between_does_not() {
        let (mut breaker, now) = (Breaker::closed(PAUSE), SystemClock.now());
        for _ in 0..3 {
            for _ in 0..4 {
                assert!(!breaker.failed(&error(Kind::TimedOut), now));
            }
            breaker.worked();
        }
        let opened: Vec<_> = (0..6).map(|_| breaker.failed(&error(Kind::TimedOut), now)).collect();
        assert_eq!(opened, [false, false, false, false, true, false]);
        assert_eq!(breaker.probe(), Some(now + PAUSE));
    }

    #[test]
    fn one_refusal_opens_it_and_one_forbidden_operation_never() {
        let now = SystemClock.now();
        for kind in [Kind::Refused("READONLY".into()), Kind::Full, Kind::Disconnected] {
            assert!(Breaker::closed(PAUSE).failed(&error(kind), now));
        }
        let mut breaker = Breaker::closed(PAUSE);
        assert!((0..99).all(|_| !breaker.failed(&error(Kind::Forbidden("NOPERM".into())), now)));
    }

    #[test]
    fn a_probe_that_fails_puts_the_next_one_off_and_one_that_works_closes_it() {
        let now = SystemClock.now();
        let mut breaker = Breaker::starting(PAUSE, now);
        assert_eq!(breaker.probe(), Some(now));
        breaker.still(&error(Kind::Unavailable), now);
        assert_eq!((breaker.probe(), breaker.why()), (Some(now + PAUSE), Some("lookup: the cache cannot be reached")));
        assert_eq!(breaker.close(now + PAUSE), Some(PAUSE));
        assert!(!breaker.is_open() && breaker.probe().is_none());
    }
}
