//! What a filter compares a column with: read once, when a stream is opened. Pure.

use super::{
    datum::{Datum, Real},
    field::{self, Field, filled},
    number::Number,
    pattern::Pattern,
};
use crate::{
    codes,
    query::{Refused, Scalar, seconds},
};
use serde_json::value::RawValue;
use std::borrow::Cow;
use wh_clickhouse::types::{JsonKind, Type, read_moment};
use wh_types::Timestamp;

const DAY: i64 = 86_400;
/// Most digits of a number.
const MAX_DIGITS: usize = 76;
/// 1900-01-01, where the days of `Date32` begin.
const FIRST_DAY: i64 = -25_567;

/// A value as it stands in a filter.
struct Given<'a> {
    field: &'a Field,
    member: &'a str,
    value: &'a RawValue,
}

/// Reads a value that is compared with a column. `member`: where it stands.
pub(super) fn constant(field: &Field, member: &str, value: &RawValue) -> Result<Datum<'static>, Refused> {
    Given { field, member, value }.read()
}

/// The same in a list, whose values ClickHouse brings to the column's type first.
pub(super) fn listed(field: &Field, member: &str, value: &RawValue) -> Result<Datum<'static>, Refused> {
    let given = Given { field, member, value };
    let read = given.read()?;
    match (&field.ty, &read) {
        (Type::Decimal { precision, scale }, Datum::Number(number))
            if number.whole_digits() > usize::from(precision.saturating_sub(*scale)) =>
        {
            Err(given.other("has more digits than the column, and no list of ClickHouse's takes it"))
        }
        _ => Ok(read),
    }
}

/// Reads a pattern.
pub(super) fn pattern(field: &Field, member: &str, value: &RawValue) -> Result<Pattern, Refused> {
    let given = Given { field, member, value };
    let scalar = given.scalar()?;
    Pattern::new(scalar.text()).map_err(|why| given.other(why))
}

impl Given<'_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only times are left")]
    fn read(&self) -> Result<Datum<'static>, Refused> {
        let value = self.scalar()?;
        match &self.field.ty {
            Type::Int { .. } => self.whole(&value).map(Datum::Number),
            Type::Decimal { precision, scale } => self.decimal(&value, *precision, *scale).map(Datum::Number),
            Type::Float { .. } => {
                let number = value.number().ok_or_else(|| self.unfit("a number"))?.parse().ok().and_then(Real::new);
                number.map(Datum::Real).ok_or_else(|| self.unfit("a number that can be compared"))
            }
            Type::Bool => match value {
                Scalar::Bool(text) => Ok(Datum::Place(i128::from(text == "true"))),
                Scalar::Number(text @ ("0" | "1")) => Ok(Datum::Place(i128::from(text == "1"))),
                Scalar::Number(_) | Scalar::String(_) => Err(self.unfit("true or false")),
            },
            Type::FixedString(most) if value.text().len() as u64 > *most => {
                Err(self.unfit("a text of at most as many bytes as the column has"))
            }
            Type::FixedString(_) => Ok(Datum::Text(filled(Cow::Owned(value.text().as_bytes().to_vec())))),
            Type::String => Ok(Datum::Text(Cow::Owned(value.text().as_bytes().to_vec()))),
            Type::Enum { values, .. } => self.text(&value, "one of its names", |text| field::named(values, text)),
            Type::Uuid => self.text(&value, "a UUID", field::uuid),
            Type::Ipv4 => self.text(&value, "an IPv4 address", field::ipv4),
            Type::Ipv6 => self.text(&value, "an IP address", field::ipv6),
            Type::Date | Type::Date32 => self.day(&value).map(|day| Datum::Place(day.into())),
            _ => self.instant(&value).map(|at| Datum::Place(at.as_nanos().into())),
        }
    }

    fn scalar(&self) -> Result<Scalar<'_>, Refused> {
        Scalar::of(self.value).ok_or_else(|| self.unfit("a string, a number or a boolean"))
    }

    fn text(
        &self,
        value: &Scalar<'_>,
        wants: &str,
        read: impl Fn(&[u8]) -> Option<Datum<'static>>,
    ) -> Result<Datum<'static>, Refused> {
        let text = if let Scalar::String(text) = value { read(text.as_bytes()) } else { None };
        text.ok_or_else(|| self.unfit(wants))
    }

    fn whole(&self, value: &Scalar<'_>) -> Result<Number<'static>, Refused> {
        let text = value.number().ok_or_else(|| self.unfit("a number"))?;
        let plain = text.strip_prefix('-').unwrap_or(text);
        if !plain.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.other("has a fraction or an exponent, and the column's numbers are whole"));
        }
        if plain.len() > MAX_DIGITS {
            return Err(self.other(&format!("has more than {MAX_DIGITS} digits")));
        }
        Number::read(text.as_bytes(), None).map(Number::owned).ok_or_else(|| self.unfit("a number"))
    }

    fn decimal(&self, value: &Scalar<'_>, precision: u16, scale: u16) -> Result<Number<'static>, Refused> {
        let text = value.number().ok_or_else(|| self.unfit("a number"))?;
        let plain = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return Err(self.other("has an exponent"));
        }
        // both sides are brought to one scale
        let behind = fraction.len().max(scale.into());
        if whole.len().max(usize::from(precision.saturating_sub(scale))) + behind > MAX_DIGITS {
            return Err(self.other(&format!("has too many digits: a comparison would need more than {MAX_DIGITS}")));
        }
        Number::read(text.as_bytes(), None).map(Number::owned).ok_or_else(|| self.unfit("a number"))
    }

    fn instant(&self, value: &Scalar<'_>) -> Result<Timestamp, Refused> {
        match value {
            Scalar::Number(text) => seconds(text).ok_or_else(|| self.unfit("a number of Unix seconds")),
            Scalar::String(text) => {
                let at = read_moment(text.as_bytes());
                let at = at.ok_or_else(|| self.other("is none of the forms of a time that streams read"))?;
                let seconds = self.field.seconds(&at);
                let seconds =
                    seconds.ok_or_else(|| self.other("is a time that the column's clock showed twice or never"))?;
                let nanos = seconds.checked_mul(1_000_000_000).and_then(|all| all.checked_add(at.nanos.into()));
                nanos.map(Timestamp::from_nanos).ok_or_else(|| self.other("is not between 1677 and 2262"))
            }
            Scalar::Bool(_) => Err(self.unfit("a time")),
        }
    }

    fn day(&self, value: &Scalar<'_>) -> Result<i64, Refused> {
        let instant = self.instant(value)?.as_nanos().div_euclid(1_000_000_000);
        let day = match (value, &self.field.zone) {
            (Scalar::String(_), Some(zone)) => zone.day(instant),
            // a number is of no zone
            _ => Some(instant.div_euclid(DAY)),
        };
        day.filter(|day| *day >= FIRST_DAY).ok_or_else(|| self.other("is before 1900"))
    }

    /// A value that no filter takes, in the words of queries.
    fn unfit(&self, wants: &str) -> Refused {
        let given = JsonKind::of(self.value.get().trim().as_bytes()).map_or("nothing", JsonKind::name);
        let Field { column, type_text, .. } = self.field;
        Refused::at(self.member, format!("is {given}, not {wants}: column {column:?} is {type_text}"))
    }

    /// A value that queries take, and streams do not.
    fn other(&self, why: &str) -> Refused {
        let Field { column, type_text, .. } = self.field;
        let text = format!("\"{}\" {why}: column {column:?} is {type_text}", self.member);
        Refused { code: &codes::STREAM_FILTER_UNSUPPORTED, text }
    }
}
