//! When a committed key is forgotten: whole seconds of the wall clock in four bytes.

use crate::Retention;
use wh_types::Timestamp;

/// Never.
pub(crate) const NEVER: u32 = u32::MAX;

/// This second, rounded down.
pub(crate) fn second(at: Timestamp) -> u32 {
    let seconds = at.as_nanos().max(0) / 1_000_000_000;
    u32::try_from(seconds).unwrap_or(NEVER).min(NEVER - 1)
}

/// The first second in which a key committed now is not known any more.
pub(crate) fn until(now: Timestamp, retention: Retention) -> u32 {
    let Retention::For(span) = retention else { return NEVER };
    let end = now + span;
    if end.as_nanos() % 1_000_000_000 == 0 { second(end) } else { second(end).saturating_add(1).min(NEVER - 1) }
}

/// Keys that are forgotten at about the same time are counted together: `until` rounded up to a power of two of seconds
/// that is at most a 32nd of how long it is away, and 64 s at least.
#[cfg(feature = "log")]
pub(crate) fn bucket(now: u32, until: u32) -> u32 {
    if until == NEVER {
        return NEVER;
    }
    let step = (until.saturating_sub(now) / 64).next_power_of_two().max(64);
    until.checked_next_multiple_of(step).unwrap_or(NEVER - 1).min(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_key_is_known_for_its_retention_at_least() {
        let now = Timestamp::from_millis(1_000_500);
        assert_eq!(second(now), 1_000);
        assert_eq!(until(now, Retention::For(Duration::from_millis(500))), 1_001);
        assert_eq!(until(now, Retention::For(Duration::from_millis(501))), 1_002);
        assert_eq!(until(now, Retention::Forever), NEVER);
        assert_eq!(until(now, Retention::For(Duration::MAX)), NEVER - 1);
    }

    #[cfg(feature = "log")]
    #[test]
    fn buckets_are_never_early_and_few() {
        assert_eq!(bucket(0, NEVER), NEVER);
        for (now, until) in [(0, 1), (1_000, 1_001), (1_000, 87_400), (5, NEVER - 1)] {
            assert!(bucket(now, until) >= until, "{now} {until}");
        }
        let day: std::collections::BTreeSet<u32> = (0..86_400).map(|now| bucket(now, now + 86_400)).collect();
        assert!(day.len() < 50, "{}", day.len());
    }
}
