//! Spans of time as Go tools write them: `500ms`, `5s`, `1m`, `1h30m`.

use crate::defaults::MAX_SPAN;
use std::time::Duration;

const UNITS: [(&str, u128); 4] =
    [("ms", 1_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000)];

/// Reads one or more of a whole number and `h`, `m`, `s` or `ms`; `0` needs no unit. At most 366 days.
///
/// # Errors
/// What is wrong, in words, without the text itself.
pub fn parse_span(text: &str) -> Result<Duration, String> {
    let malformed = || "must be a span with h, m, s or ms, like 5s or 1m30s".to_owned();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut nanos) = (text, 0_u128);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let unit = UNITS.iter().find(|(name, _)| after.starts_with(name)).ok_or_else(malformed)?;
        let number: u64 = number.parse().map_err(|_| malformed())?;
        nanos = nanos.saturating_add(u128::from(number).saturating_mul(unit.1));
        rest = &after[unit.0.len()..];
    }
    if text.is_empty() {
        return Err(malformed());
    }
    match u64::try_from(nanos).map(Duration::from_nanos) {
        Ok(span) if span <= MAX_SPAN => Ok(span),
        _ => Err("is too long".to_owned()),
    }
}

/// Writes a span with the largest unit that divides it, as Go tools and nack read it.
#[must_use]
pub fn show_span(span: Duration) -> String {
    let nanos = span.as_nanos();
    let dividing = UNITS.iter().filter(|(_, factor)| nanos != 0 && nanos.is_multiple_of(*factor));
    match dividing.max_by_key(|(_, factor)| *factor) {
        Some((name, factor)) => format!("{}{name}", nanos / factor),
        None if nanos == 0 => "0s".to_owned(),
        None => format!("{nanos}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_are_read_as_go_writes_them() {
        for (text, millis) in [("0", 0), ("250ms", 250), ("5s", 5_000), ("1m30s", 90_000), ("1h", 3_600_000), ("0s", 0)]
        {
            assert_eq!(parse_span(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn a_span_without_a_unit_or_beyond_a_year_is_refused() {
        for text in ["", "5", "s", "-1s", "1.5s", "1d", "5 s", "99999999999999999999s", "8785h"] {
            assert!(parse_span(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_largest_whole_unit_is_written() {
        for (millis, text) in [(60_000, "1m"), (900_000, "15m"), (10_000, "10s"), (15_500, "15500ms"), (0, "0s")] {
            assert_eq!(show_span(Duration::from_millis(millis)), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(millis in 0..31_000_000_000_u64) {
            let span = Duration::from_millis(millis);
            prop_assert_eq!(parse_span(&show_span(span)), Ok(span));
        }
    }
}
