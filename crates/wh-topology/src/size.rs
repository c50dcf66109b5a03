//! Sizes in bytes as people write them: a whole number and a unit, `100Gi`.

/// Units, longest name first.
const UNITS: [(&str, u64); 8] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// What JetStream can count.
const MAX: u64 = i64::MAX.cast_unsigned();

/// Reads a size: a whole number and nothing, `k`, `M`, `G`, `T` (powers of 1000), `Ki`, `Mi`, `Gi` or `Ti` (of 1024).
///
/// # Errors
/// What is wrong, in words, without the text itself.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" => Some(1),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
    };
    let (Ok(number), Some(factor)) = (number.parse::<u64>(), factor) else {
        return Err("must be a whole number with k, M, G, T, Ki, Mi, Gi, Ti or no unit, like 100Gi".to_owned());
    };
    match number.checked_mul(factor) {
        Some(0) => Err("must not be zero".to_owned()),
        Some(bytes) if bytes <= MAX => Ok(bytes),
        _ => Err("is too large".to_owned()),
    }
}

/// Writes a size with the largest unit that divides it, so that [`parse_size`] reads it back.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    let dividing = UNITS.iter().filter(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor));
    match dividing.max_by_key(|(_, factor)| *factor) {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_in_both_families_of_units() {
        for (text, bytes) in
            [("1", 1), ("10k", 10_000), ("2M", 2_000_000), ("100Gi", 107_374_182_400), ("3T", 3_000_000_000_000)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn zero_fractions_strange_units_and_overflow_are_refused() {
        for text in ["", "0", "0Gi", "-1", "1.5Gi", "Gi", "1GiB", "1K", "1 Gi", "9223372036854775808", "9999999Ti"] {
            assert!(parse_size(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bytes in 1..=MAX) {
            prop_assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
        }
    }
}
