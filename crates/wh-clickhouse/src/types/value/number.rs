//! Numbers: whole, floating, decimal; bare and quoted.

use super::Verdict;
use crate::types::Type;
use std::cmp::Ordering;

const RANGE: &str = "is out of range";
const NO_NUMBER: &str = "is no number";

/// The largest magnitudes: of the positive, of the negative.
fn limits(ty: &Type) -> (&'static str, Option<&'static str>) {
    // an interval is an Int64
    let (signed, bits) = if let Type::Int { signed, bits } = ty { (*signed, *bits) } else { (true, 64) };
    match (signed, bits) {
        (true, 8) => ("127", Some("128")),
        (true, 16) => ("32767", Some("32768")),
        (true, 32) => ("2147483647", Some("2147483648")),
        (true, 64) => ("9223372036854775807", Some("9223372036854775808")),
        (true, 128) => ("170141183460469231731687303715884105727", Some("170141183460469231731687303715884105728")),
        (true, _) => (
            "57896044618658097711785492504343953926634992332820282019728792003956564819967",
            Some("57896044618658097711785492504343953926634992332820282019728792003956564819968"),
        ),
        (false, 8) => ("255", None),
        (false, 16) => ("65535", None),
        (false, 32) => ("4294967295", None),
        (false, 64) => ("18446744073709551615", None),
        (false, 128) => ("340282366920938463463374607431768211455", None),
        (false, _) => ("115792089237316195423570985008687907853269984665640564039457584007913129639935", None),
    }
}

/// Compares decimal digits with a limit.
fn beyond(digits: &[u8], limit: &str) -> bool {
    let first = digits.iter().position(|b| *b != b'0').unwrap_or(digits.len());
    let digits = &digits[first..];
    match digits.len().cmp(&limit.len()) {
        Ordering::Less => false,
        Ordering::Greater => true,
        Ordering::Equal => digits > limit.as_bytes(),
    }
}

fn signed_digits(ty: &Type, negative: bool, digits: &[u8]) -> Verdict {
    let limit = match (negative, limits(ty)) {
        (false, (limit, _)) | (true, (_, Some(limit))) => limit,
        (true, (_, None)) => return Verdict::refuses("is negative"),
    };
    if beyond(digits, limit) { Verdict::alters(RANGE) } else { Verdict::Takes }
}

/// A bare whole number.
pub(super) fn integer(ty: &Type, value: &[u8]) -> Verdict {
    match value.strip_prefix(b"-") {
        Some(digits) => signed_digits(ty, true, digits),
        None => signed_digits(ty, false, value),
    }
}

/// A bare whole number for a `Dynamic`. Beyond 64 bits 26.7 may store the `true` of another row of the insert.
pub(super) fn dynamic(value: &[u8]) -> Verdict {
    let fits = |signed| integer(&Type::Int { signed, bits: 64 }, value) == Verdict::Takes;
    if fits(true) || fits(false) {
        Verdict::Takes
    } else {
        Verdict::alters("has more than 64 bits, which some versions store as another value; send it as a string")
    }
}

/// A whole number in quotes.
pub(super) fn quoted_integer(ty: &Type, text: &[u8]) -> Verdict {
    let (negative, digits) = match text {
        b"" => return Verdict::alters("is empty: 0 would be stored"),
        b"true" | b"false" => return Verdict::Takes,
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Verdict::refuses("is no whole number");
    }
    signed_digits(ty, negative, digits)
}

/// A bare number for a float.
pub(super) fn float(bits: u16, value: &[u8]) -> Verdict {
    let finite = std::str::from_utf8(value).ok().and_then(|text| match bits {
        64 => text.parse().ok().map(f64::is_finite),
        _ => text.parse().ok().map(f32::is_finite),
    });
    match finite {
        Some(true) => Verdict::Takes,
        Some(false) => Verdict::alters("is out of range: infinity would be stored"),
        None => Verdict::CannotTell,
    }
}

/// A number in quotes for a float.
pub(super) fn quoted_float(bits: u16, text: &[u8]) -> Verdict {
    let number = unsigned(text);
    if Parts::read(number).is_some_and(Parts::is_json) {
        return float(bits, number);
    }
    if text == b"true" || text == b"false" {
        return Verdict::Takes;
    }
    match text.first() {
        None => Verdict::refuses(NO_NUMBER),
        // inf, nan, Infinity; signs twice and open ends differ by version
        Some(b'i' | b'I' | b'n' | b'N' | b'-' | b'+' | b'.' | b'0'..=b'9') => Verdict::CannotTell,
        Some(_) => Verdict::refuses(NO_NUMBER),
    }
}

/// Without a plus in front; not where a minus follows it.
fn unsigned(text: &[u8]) -> &[u8] {
    match text {
        [b'+', rest @ ..] if rest.first() != Some(&b'-') => rest,
        other => other,
    }
}

/// A number by its parts.
#[derive(Clone, Copy, Debug)]
struct Parts<'t> {
    whole: &'t [u8],
    fraction: Option<&'t [u8]>,
    exponent: Option<i64>,
}

impl<'t> Parts<'t> {
    /// `-`, digits, a point and digits, `e` and an exponent: each may be missing. `None` for anything else.
    fn read(text: &'t [u8]) -> Option<Self> {
        let text = text.strip_prefix(b"-").unwrap_or(text);
        let (mantissa, exponent) = match text.iter().position(|b| matches!(b, b'e' | b'E')) {
            Some(at) => {
                let power = std::str::from_utf8(&text[at + 1..]).ok()?;
                let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
                let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                // an exponent beyond all bounds is as good as a large one
                (&text[..at], plain.then(|| power.parse().unwrap_or(i64::from(i32::MAX))).map(Some)?)
            }
            None => (text, None),
        };
        let (whole, fraction) = match mantissa.iter().position(|b| *b == b'.') {
            Some(at) => (&mantissa[..at], Some(&mantissa[at + 1..])),
            None => (mantissa, None),
        };
        let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
        (digits(whole) && fraction.is_none_or(digits)).then_some(Self { whole, fraction, exponent })
    }

    fn is_json(self) -> bool {
        !self.whole.is_empty() && self.fraction.is_none_or(|digits| !digits.is_empty())
    }
}

/// A bare number for a decimal: exact, but for fraction digits beyond the scale, which are cut off.
pub(super) fn decimal(precision: u16, scale: u16, value: &[u8]) -> Verdict {
    let Some(parts) = Parts::read(value) else { return Verdict::CannotTell };
    let zeros = parts.whole.iter().take_while(|b| **b == b'0').count();
    let digits = i64::try_from(parts.whole.len() - zeros).unwrap_or(i64::MAX);
    let room = i64::from(precision) - i64::from(scale);
    match parts.exponent {
        // how zeros in front count against an exponent is the engine's own affair
        Some(_) if digits == 0 => Verdict::CannotTell,
        Some(power) if digits.saturating_add(power) > room => Verdict::refuses(RANGE),
        // cut down to the scale first, or not: more digits than the type has
        Some(_) if parts.whole.len() + parts.fraction.map_or(0, <[u8]>::len) > usize::from(precision) => {
            Verdict::CannotTell
        }
        None if digits > room => Verdict::refuses(RANGE),
        _ => Verdict::Takes,
    }
}

/// A number in quotes for a decimal.
pub(super) fn quoted_decimal(precision: u16, scale: u16, text: &[u8]) -> Verdict {
    let number = unsigned(text);
    match Parts::read(number) {
        _ if text.is_empty() => Verdict::alters("is empty: 0 would be stored"),
        Some(parts) if parts.is_json() => decimal(precision, scale, number),
        _ => match text.first() {
            Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E') => Verdict::CannotTell,
            _ => Verdict::refuses(NO_NUMBER),
        },
    }
}
