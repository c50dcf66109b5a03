//! Durations and sizes as people write them: `"1s"`, `"1m 30s"`, `"8MiB"`. Not numbers without a unit.

use jiff::{SignedDuration, fmt::friendly::SpanParser};
use std::time::Duration;

const UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Reads a duration with units from hours down; `0` needs none.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    SpanParser::new()
        .parse_duration(text.trim())
        .ok()
        .and_then(|span| Duration::try_from(span).ok())
        .ok_or_else(|| "must be a duration with a unit, like \"250ms\", \"1s\" or \"1m 30s\"".to_owned())
}

/// Writes a duration so that [`parse_duration`] reads it back.
pub(crate) fn show_duration(span: Duration) -> String {
    match SignedDuration::try_from(span) {
        Ok(span) => format!("{span:#}"),
        Err(_) => format!("{}s", span.as_secs()),
    }
}

/// Reads a size in bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = UNITS.iter().find(|(name, _)| *name == unit.trim_start()).map(|(_, factor)| *factor);
    match (number.parse::<u64>(), factor) {
        (Ok(number), Some(factor)) => number.checked_mul(factor).ok_or_else(|| "is too large".to_owned()),
        _ => Err("must be a size like \"8MiB\" or \"50GB\" (B, KB, MB, GB, KiB, MiB, GiB, TiB)".to_owned()),
    }
}

/// Writes a size with the largest unit that divides it, so that [`parse_size`] reads it back.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [("TiB", 1_u64 << 40), ("GB", 1_000_000_000), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units_and_written_so_that_they_read_back() {
        for (text, millis) in
            [("250ms", 250), ("1s", 1_000), ("1m30s", 90_000), ("1m 30s", 90_000), ("168h", 604_800_000)]
        {
            let span = parse_duration(text).unwrap();
            assert_eq!(span, Duration::from_millis(millis), "{text}");
            assert_eq!(parse_duration(&show_duration(span)), Ok(span), "{text}");
        }
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        assert_eq!(parse_duration(&show_duration(Duration::ZERO)), Ok(Duration::ZERO));
    }

    #[test]
    fn a_duration_without_a_unit_below_zero_or_in_days_is_refused() {
        for text in ["", "5", "-1s", "1s ago", "1d", "a while", "1e3s", "99999999999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn sizes_are_read_with_their_units_and_written_so_that_they_read_back() {
        for (text, bytes) in
            [("1048576", 1 << 20), ("8MiB", 8 << 20), ("8 MiB", 8 << 20), ("50GB", 50_000_000_000), ("0", 0), ("7B", 7)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
            assert_eq!(parse_size(&show_size(bytes)), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_size_with_an_unclear_unit_or_too_large_is_refused() {
        for text in ["", "MiB", "8M", "8mb", "-1", "1.5GiB", "99999999999TiB"] {
            assert!(parse_size(text).is_err(), "{text:?}");
        }
    }
}
