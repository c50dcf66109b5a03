//! Dates and times. The usual form is modelled; what `best_effort` makes of others is left to ClickHouse.

use super::Verdict;
use crate::types::Type;

const RANGE: &str = "is out of range";
const NO_DATE: &str = "is no date";
/// Zones are at most this many seconds from UTC.
const ZONES: i64 = 15 * 3_600;
/// The last second of a `DateTime64(9)`.
const NANOSECONDS: i64 = 9_223_372_036;

fn number(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |sum, b| sum * 10 + i64::from(b - b'0')))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the Gregorian calendar, which ClickHouse uses for all years.
fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// `YYYY-MM-DD` and what follows it.
fn ymd(text: &[u8]) -> Option<(i64, i64, i64, &[u8])> {
    let (date, rest) = text.split_at_checked(10)?;
    let [y @ .., b'-', m1, m2, b'-', d1, d2] = date else { return None };
    Some((number(y)?, number(&[*m1, *m2])?, number(&[*d1, *d2])?, rest))
}

/// A text for a `Date` or `Date32`.
pub(super) fn date(ty: &Type, text: &[u8]) -> Verdict {
    let Some((year, month, day, rest)) = ymd(text) else {
        let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
        let wrong = digits == 0 || digits == text.len() && digits != 8;
        return if wrong { Verdict::refuses(NO_DATE) } else { Verdict::CannotTell };
    };
    if !rest.is_empty() {
        return Verdict::refuses("has something behind the date");
    }
    if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return Verdict::alters("is a day that does not exist");
    }
    // a Date32 is clamped to 1900-2299 by 26.7, and not by 26.9
    let range = if *ty == Type::Date { 0..=65_535 } else { -25_567..=120_529 };
    if range.contains(&days_from_epoch(year, month, day)) { Verdict::Takes } else { Verdict::alters(RANGE) }
}

/// A bare number for a `Date` or `Date32`: days, which versions before 25 do not take.
pub(super) fn days(ty: &Type, value: &[u8]) -> Verdict {
    let negative = value.starts_with(b"-");
    let most = match (*ty == Type::Date, negative) {
        (true, true) => return Verdict::alters(RANGE),
        (true, false) => 65_535,
        (false, true) => 25_567,
        (false, false) => 120_529,
    };
    match number(value.strip_prefix(b"-").unwrap_or(value)) {
        Some(days) if days <= most => Verdict::CannotTell,
        _ => Verdict::alters(RANGE),
    }
}

/// A bare whole number for a `DateTime`: seconds since 1970.
pub(super) fn seconds(value: &[u8]) -> Verdict {
    match number(value) {
        Some(seconds) if seconds <= i64::from(u32::MAX) => Verdict::Takes,
        _ => Verdict::alters(RANGE),
    }
}

/// A bare number for a `DateTime64`. It is sent in quotes, so what is judged is how a text of these digits is read.
pub(super) fn bare(value: &[u8]) -> Verdict {
    if value.starts_with(b"-") {
        return Verdict::refuses("is a negative number; send the time as a string");
    }
    if value.iter().any(|b| matches!(b, b'e' | b'E')) {
        return Verdict::refuses("is a number with an exponent; send the time as a string");
    }
    let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
    let fraction = digits < value.len();
    match digits {
        0..=10 => Verdict::Takes,
        // milliseconds, YYYYMMDDhhmmss, microseconds
        13 | 14 | 16 if !fraction => {
            Verdict::alters("is no plain number of seconds (more than 10 digits); send the time as a string")
        }
        14 => Verdict::alters("is no plain number of seconds (more than 10 digits); send the time as a string"),
        _ => Verdict::refuses("is no plain number of seconds (more than 10 digits); send the time as a string"),
    }
}

/// When a text says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970-01-01, as UTC has them if the text named its offset, else as a clock of its zone shows them.
    pub seconds: i64,
    /// Nanoseconds behind them; further digits are cut off.
    pub nanos: u32,
    /// Whether the text named its offset.
    pub exact: bool,
    /// An hour, minute or second that no clock shows.
    overflowing: bool,
}

/// Reads a date, or a date and time, in the usual form: `YYYY-MM-DD`, perhaps ` ` or `T` and `hh:mm:ss`, then a fraction,
/// then `Z` or `±hh:mm`. `None` for every other text, and for what no calendar and no clock shows.
#[must_use]
pub fn read_moment(text: &[u8]) -> Option<Moment> {
    moment(text)?.ok().filter(|moment| !moment.overflowing)
}

/// The first nine digits of a fraction.
fn nanos(digits: &[u8]) -> u32 {
    let digits = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    digits.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))
}

/// The usual form: a date; perhaps ` ` or `T` and `hh:mm:ss`, then a fraction, then `Z` or an offset.
fn moment(text: &[u8]) -> Option<Result<Moment, Verdict>> {
    let (year, month, day, rest) = ymd(text)?;
    if month > 12 || day > days_in(year, month.max(1)) {
        return Some(Err(Verdict::refuses("is a day that does not exist")));
    }
    if year == 0 || month == 0 || day == 0 {
        return Some(Err(Verdict::alters("is a day that does not exist")));
    }
    let midnight = days_from_epoch(year, month, day) * 86_400;
    if rest.is_empty() {
        return Some(Ok(Moment { seconds: midnight, nanos: 0, exact: false, overflowing: false }));
    }
    let (clock, rest) = rest.split_at_checked(9)?;
    let [b' ' | b'T', h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?, number(&[*s1, *s2])?);
    let (nanos, rest) = match rest.strip_prefix(b".") {
        Some(fraction) => {
            let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            (nanos(&fraction[..digits]), &fraction[digits..])
        }
        None => (0, rest),
    };
    let offset = match rest {
        b"" => None,
        b"Z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            if hours > 14 || minutes > 59 {
                return None;
            }
            Some((hours * 3_600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 })
        }
        _ => return None,
    };
    let overflowing = hour > 23 || minute > 59 || second > 59;
    let seconds = midnight + hour * 3_600 + minute * 60 + second - offset.unwrap_or(0);
    Some(Ok(Moment { seconds, nanos, exact: offset.is_some(), overflowing }))
}

/// A text for a `DateTime` (without `precision`) or `DateTime64`.
pub(super) fn date_time(precision: Option<u8>, zone: Option<&str>, text: &[u8]) -> Verdict {
    let moment = match moment(text) {
        Some(Ok(moment)) => moment,
        Some(Err(verdict)) => return verdict,
        None => return other_form(text),
    };
    if moment.overflowing {
        return Verdict::alters("has an hour, minute or second that no clock shows");
    }
    let margin = if moment.exact || zone == Some("UTC") { 0 } else { ZONES };
    let (least, most) = match precision {
        None => (0, i64::from(u32::MAX)),
        // whole nanoseconds in 64 bits
        Some(9) => (-9_223_372_036, NANOSECONDS),
        // 1900 to 2299, as documented
        Some(_) => (-2_208_988_800, 10_413_791_999),
    };
    // the last second has no more than 854775807 of them
    let last = if precision == Some(9) { most - 1 } else { most };
    if (least + margin..=last - margin).contains(&moment.seconds) {
        return Verdict::Takes;
    }
    let surely = moment.seconds < least - margin || moment.seconds > most + margin;
    match precision {
        None if surely => Verdict::alters(RANGE),
        Some(9) if surely => Verdict::refuses(RANGE),
        _ => Verdict::CannotTell,
    }
}

fn other_form(text: &[u8]) -> Verdict {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if text.is_empty() {
        return Verdict::refuses(NO_DATE);
    }
    if digits == text.len() {
        return match digits {
            // 1973 to 2286, in seconds
            9 | 10 => Verdict::Takes,
            1..=7 => Verdict::alters("has digits that name no day"),
            _ => Verdict::CannotTell,
        };
    }
    Verdict::CannotTell
}

/// A bare whole number for a `Time` (seconds) or `Time64` (ticks).
pub(super) fn clock_ticks(ty: &Type, value: &[u8]) -> Verdict {
    let scale = if let Type::Time64(precision) = ty { u32::from(*precision).min(9) } else { 0 };
    match number(value.strip_prefix(b"-").unwrap_or(value)) {
        Some(ticks) if ticks < 3_600_000 * 10_i64.pow(scale) => Verdict::Takes,
        _ => Verdict::alters(RANGE),
    }
}

/// A text for a `Time` or `Time64`.
pub(super) fn clock(ty: &Type, text: &[u8]) -> Verdict {
    let plain = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, fraction) = match plain.iter().position(|b| *b == b'.') {
        Some(at) => (&plain[..at], Some(&plain[at + 1..])),
        None => (plain, None),
    };
    if !text.iter().any(u8::is_ascii_digit) {
        return Verdict::refuses("is no time of day");
    }
    let usual = match (ty, fraction) {
        (Type::Time, Some(_)) => false,
        (_, Some(fraction)) => !fraction.is_empty() && fraction.iter().all(u8::is_ascii_digit),
        (_, None) => true,
    };
    let [hours @ .., b':', m1, m2, b':', s1, s2] = whole else { return Verdict::CannotTell };
    match (number(hours), number(&[*m1, *m2]), number(&[*s1, *s2])) {
        (Some(_), Some(minutes), Some(seconds)) if usual && matches!(hours.len(), 2 | 3) => {
            if minutes > 59 || seconds > 59 {
                Verdict::alters("has a minute or second that no clock shows")
            } else {
                Verdict::Takes
            }
        }
        _ => Verdict::CannotTell,
    }
}
