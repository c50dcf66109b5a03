//! How long an answer may be kept. Pure.

use std::time::Duration;
use wh_cache::{MAX_TTL, ttl_for};

/// The life of an answer that may change without anybody's telling.
const UNTOLD: Duration = Duration::from_secs(10);

/// The bounds of an answer's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// What it is, where it does not follow from the time that the answer took.
    own: Option<Duration>,
    longest: Duration,
}

impl Life {
    /// A thousand times the time that the answer takes, and never longer than this.
    pub(crate) fn at_most(longest: Duration) -> Self {
        Self { own: None, longest }
    }

    /// As long as somebody chose for this answer.
    pub(crate) fn of_its_own(self, own: Option<Duration>) -> Self {
        Self { own, ..self }
    }

    /// The same for an answer that follows from what it reads alone (`steady`), and all of whose reads are told of when
    /// they change (`tracked`), in a process that keeps none longer than `longest`.
    pub(super) fn within(self, longest: Duration, tracked: bool, steady: bool) -> Self {
        let told = tracked && (steady || self.own.is_some());
        let most = if told { MAX_TTL } else { UNTOLD };
        Self { longest: self.longest.min(longest).min(most), ..self }
    }

    /// Whether nothing is to be kept.
    pub(super) fn is_over(self) -> bool {
        self.longest.is_zero() || self.own.is_some_and(|own| own.is_zero())
    }

    /// That of an answer which took so long.
    pub(super) fn of(self, took: Duration) -> Duration {
        self.own.unwrap_or_else(|| ttl_for(took)).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_change_untold_lives_shortly() {
        let s = Duration::from_secs;
        let (plain, chosen) = (Life::at_most(s(3_600)), Life::at_most(s(3_600)).of_its_own(Some(s(600))));
        let of = |life: Life, tracked, steady| life.within(MAX_TTL, tracked, steady).of(s(1));
        assert_eq!([of(plain, true, true), of(plain, true, false), of(plain, false, true)], [s(1_000), s(10), s(10)]);
        assert_eq!([of(chosen, true, true), of(chosen, true, false), of(chosen, false, true)], [s(600), s(600), s(10)]);
        assert_eq!(plain.within(s(10), true, true).of(s(9)), s(10), "the process's own bound");
        assert_eq!(plain.within(MAX_TTL, true, true).of(Duration::ZERO), s(10));
        assert!(Life::at_most(Duration::ZERO).is_over() && !plain.is_over());
        assert!(plain.of_its_own(Some(Duration::ZERO)).is_over());
    }
}
