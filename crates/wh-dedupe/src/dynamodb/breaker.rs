//! Keeps reservations from waiting for a store that does not answer.

use parking_lot::Mutex;
use std::time::Duration;
use wh_types::Mono;

/// So many failures in a row, within a second, open it.
const FAILURES: u32 = 5;
/// How long it is open, and how long a row of failures may take.
pub(super) const SPAN: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    since: Option<Mono>,
    open_until: Option<Mono>,
}

impl Breaker {
    /// How long it stays open; `None`: it is not.
    pub(super) fn open(&self, now: Mono) -> Option<Duration> {
        let state = self.0.lock();
        state.open_until.map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    pub(super) fn note(&self, now: Mono, reached: bool) {
        let mut state = self.0.lock();
        if reached {
            *state = State::default();
            return;
        }
        if state.since.is_none_or(|since| now.saturating_duration_since(since) > SPAN) {
            (state.failures, state.since) = (0, Some(now));
        }
        state.failures += 1;
        if state.failures >= FAILURES {
            *state = State { open_until: Some(now + SPAN), ..State::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Clock as _, SystemClock};

    #[test]
    fn five_failures_within_a_second_open_it_for_a_second() {
        let (breaker, begin, ms) = (Breaker::default(), SystemClock.now(), Duration::from_millis);
        for n in 0..4 {
            breaker.note(begin + ms(n), false);
        }
        assert_eq!(breaker.open(begin + ms(4)), None);
        breaker.note(begin + ms(4), true);
        for n in 5..10 {
            breaker.note(begin + ms(n), false);
        }
        assert_eq!(breaker.open(begin + ms(10)), Some(ms(999)));
        assert_eq!(breaker.open(begin + ms(1_010)), None);
        for n in 0..10 {
            breaker.note(begin + ms(2_000 + 300 * n), false);
        }
        assert_eq!(breaker.open(begin + ms(5_000)), None, "they were too far apart");
    }
}
