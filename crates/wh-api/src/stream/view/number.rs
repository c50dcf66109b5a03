//! Numbers by their digits, so that they are compared exactly, whatever their size. Pure.

use std::{borrow::Cow, cmp::Ordering};

/// A number: its digits before and behind the point, without zeros that say nothing. Zero has none, and no sign.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Number<'t> {
    negative: bool,
    whole: Cow<'t, [u8]>,
    fraction: Cow<'t, [u8]>,
}

/// The largest power of ten that is written out; every type has fewer digits.
const MOST_ZEROS: i64 = 400;

impl<'t> Number<'t> {
    pub(super) const ZERO: Number<'static> =
        Number { negative: false, whole: Cow::Borrowed(b""), fraction: Cow::Borrowed(b"") };
    pub(super) const ONE: Number<'static> =
        Number { negative: false, whole: Cow::Borrowed(b"1"), fraction: Cow::Borrowed(b"") };

    /// Reads a sign, digits, a point and digits, an exponent. Digits of the fraction beyond `scale` are cut off.
    pub(super) fn read(text: &'t [u8], scale: Option<usize>) -> Option<Self> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let exponent = text.iter().position(|b| matches!(b, b'e' | b'E'));
        let (mantissa, power) = match exponent {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let (whole, fraction) = match mantissa.iter().position(|b| *b == b'.') {
            Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
            None => (mantissa, &b""[..]),
        };
        let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return None;
        }
        let (whole, fraction) = match power {
            None => (Cow::Borrowed(whole), Cow::Borrowed(fraction)),
            Some(power) => {
                let (whole, fraction) = moved(whole, fraction, std::str::from_utf8(power).ok()?.parse().ok()?)?;
                (Cow::Owned(whole), Cow::Owned(fraction))
            }
        };
        let first = whole.iter().position(|b| *b != b'0').unwrap_or(whole.len());
        let kept = scale.map_or(fraction.len(), |scale| scale.min(fraction.len()));
        let last = fraction[..kept].iter().rposition(|b| *b != b'0').map_or(0, |at| at + 1);
        let number = Self { negative, whole: part(whole, first, None), fraction: part(fraction, 0, Some(last)) };
        Some(if number.whole.is_empty() && number.fraction.is_empty() { Self::ZERO } else { number })
    }

    /// How many digits stand before the point.
    pub(super) fn whole_digits(&self) -> usize {
        self.whole.len()
    }

    pub(super) fn owned(self) -> Number<'static> {
        Number {
            negative: self.negative,
            whole: Cow::Owned(self.whole.into_owned()),
            fraction: Cow::Owned(self.fraction.into_owned()),
        }
    }
}

/// A part of a text; `end`: behind which nothing counts.
fn part(text: Cow<'_, [u8]>, start: usize, end: Option<usize>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end.unwrap_or(text.len())]),
        Cow::Owned(mut text) => {
            text.truncate(end.unwrap_or(text.len()));
            text.drain(..start);
            Cow::Owned(text)
        }
    }
}

/// Digits with the point `power` places further on.
fn moved(whole: &[u8], fraction: &[u8], power: i64) -> Option<(Vec<u8>, Vec<u8>)> {
    let digits = [whole, fraction].concat();
    let point = i64::try_from(whole.len()).ok()?.checked_add(power)?;
    let zeros = |count: i64| usize::try_from(count).ok().filter(|_| count <= MOST_ZEROS).map(|count| vec![b'0'; count]);
    if point <= 0 {
        return Some((Vec::new(), [zeros(-point)?, digits].concat()));
    }
    match usize::try_from(point).ok().filter(|point| *point <= digits.len()) {
        Some(point) => Some((digits[..point].to_vec(), digits[point..].to_vec())),
        None => {
            let more = zeros(point - i64::try_from(digits.len()).ok()?)?;
            Some(([digits, more].concat(), Vec::new()))
        }
    }
}

impl Ord for Number<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = || {
            let whole = self.whole.len().cmp(&other.whole.len()).then_with(|| self.whole.cmp(&other.whole));
            whole.then_with(|| self.fraction.cmp(&other.fraction))
        };
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => size(),
            (true, true) => size().reverse(),
        }
    }
}

impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> Number<'_> {
        Number::read(text.as_bytes(), None).unwrap()
    }

    #[test]
    fn numbers_are_told_apart_by_what_they_are_and_not_by_how_they_are_written() {
        for (one, other) in [
            ("0", "-0.000"),
            ("+7", "007.0"),
            ("1e2", "100"),
            ("1.25E-1", "0.125"),
            ("100000000e-2", "1000000"),
            ("0e5", "0"),
            ("12e-5", "0.00012"),
        ] {
            assert_eq!(number(one), number(other), "{one} {other}");
        }
        let ascending = [
            "-115792089237316195423570985008687907853269984665640564039457584007913129639935",
            "-10",
            "-9.5",
            "-9.25",
            "0",
            "0.001",
            "0.1",
            "9",
            "18446744073709551615",
            "18446744073709551615.5",
            "18446744073709551616",
        ];
        for pair in ascending.windows(2) {
            assert!(number(pair[0]) < number(pair[1]), "{pair:?}");
        }
        assert_eq!(Number::read(b"3.149", Some(2)).unwrap(), number("3.14"));
        assert_eq!(Number::read(b"-0.009", Some(2)).unwrap(), Number::ZERO);
        for text in ["", "-", ".5", "1e", "1e999999999999999999999", "1e500", "a", "1x"] {
            assert_eq!(Number::read(text.as_bytes(), None), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_numbers(a in any::<i64>(), b in any::<i64>(), shift in -3_i32..3) {
            let text = |n: i64| format!("{n}e{shift}");
            prop_assert_eq!(number(&text(a)).cmp(&number(&text(b))), a.cmp(&b));
            prop_assert_eq!(number(&a.to_string()).cmp(&number(&b.to_string())), a.cmp(&b));
        }
    }
}
