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

/// A sum of numbers with units. `None`: it is none.
pub(super) fn age(text: &str) -> Option<Duration> {
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
