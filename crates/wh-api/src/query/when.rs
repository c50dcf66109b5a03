//! Times as a query gives them: an instant, or an age before now. Pure.

use std::time::Duration;
use wh_types::Timestamp;

/// An RFC 3339 instant, or an age (`90s`, `1h30m`, `1.5d`, `2w`) before `now`. `None`: neither.
pub(super) fn instant(text: &str, now: Timestamp) -> Option<Timestamp> {
    match age(text) {
        Some(age) => Some(now.saturating_sub(age)),
        None => text.parse().ok(),
    }
}

/// Which end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Since,
    Until,
}

/// An end of a range. One that is an age is moved outwards to a whole step, so that queries that come shortly after each
/// other are the same; an instant stays as it is.
pub(super) fn bound(text: &str, now: Timestamp, step: Duration, side: Side) -> Option<Timestamp> {
    let at = instant(text, now)?;
    let step = i64::try_from(step.as_nanos()).ok().filter(|step| *step > 0);
    let (Some(step), Some(_)) = (step, age(text)) else { return Some(at) };
    let nanos = at.as_nanos();
    let down = nanos.checked_sub(nanos.rem_euclid(step))?;
    let nanos = if side == Side::Until && down < nanos { down.checked_add(step)? } else { down };
    Some(Timestamp::from_nanos(nanos))
}

/// A sum of numbers with units. `None`: it is none.
pub(crate) fn age(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut all = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, after) = tail.split_at(end);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        all = all.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_counted_from_whole_steps_and_the_range_only_widens() {
        let (now, minute) = (Timestamp::from_millis(1_000_000_030_500), Duration::from_secs(60));
        let of = |text: &str, step, side| bound(text, now, step, side).map(Timestamp::as_nanos);
        let ms = |ms: i64| Some(ms * 1_000_000);
        assert_eq!(of("1h", minute, Side::Since), ms(999_996_420_000), "a whole minute, an hour and 50.5 s before");
        assert_eq!(of("1h", minute, Side::Until), ms(999_996_480_000));
        assert_eq!(of("0s", minute, Side::Until), ms(1_000_000_080_000), "the newest rows stay within");
        assert_eq!(of("1h", Duration::ZERO, Side::Since), ms(999_996_430_500));
        let exact = "2001-09-09T01:46:41Z";
        assert_eq!(of(exact, minute, Side::Since), of(exact, Duration::ZERO, Side::Since), "instants are exact");
        let even = Timestamp::from_millis(999_999_960_000);
        assert_eq!(bound("0s", even, minute, Side::Until), Some(even));
    }

    #[test]
    fn ages_and_instants_are_told_apart() {
        let now = Timestamp::from_millis(1_000_000_000_000);
        let ago = |seconds| now.saturating_sub(Duration::from_secs(seconds));
        for (text, expected) in [
            ("24h", Some(ago(86_400))),
            ("1h30m", Some(ago(5_400))),
            ("1.5d", Some(ago(129_600))),
            ("2w", Some(ago(1_209_600))),
            ("0s", Some(now)),
            ("2001-09-09T01:46:40Z", Some(now)),
            ("2001-09-09T03:46:40+02:00", Some(now)),
            ("", None),
            ("24", None),
            ("h", None),
            ("-1h", None),
            ("1y", None),
            ("1..5h", None),
            ("99999999999999999999999w", None),
            ("yesterday", None),
        ] {
            assert_eq!(instant(text, now), expected, "{text}");
        }
    }
}
