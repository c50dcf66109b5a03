//! A column that a filter reads: what is stored of a value in a row's own text.
//!
//! Only values that ClickHouse stores as they are have an answer here; how the others are stored, if at all, is its own
//! affair. The rules are held against the engine by the differential test of streams.

use super::{
    datum::{Datum, Real},
    number::Number,
    pairs::Family,
    zone::Zone,
};
use crate::json::{Value, has_half_a_pair, unescape};
use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    net::{Ipv4Addr, Ipv6Addr},
};
use wh_clickhouse::{
    Column, ColumnKind,
    types::{self, Edited, JsonKind, Moment, Type, Verdict},
};

const DAY: i64 = 86_400;
const NANOS: i128 = 1_000_000_000;

/// A column.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) column: Box<str>,
    pub(super) type_text: Box<str>,
    pub(super) ty: Type,
    pub(super) family: Family,
    /// Whose clock times without an offset are of; and whose days dates are, where an instant is compared with one.
    pub(super) zone: Option<Zone>,
    nullable: bool,
    /// It has a default of its own.
    defaulted: bool,
    /// What is stored where a row says nothing of it.
    absent: Datum<'static>,
}

impl Field {
    /// `server`: the server's zone.
    ///
    /// # Errors
    /// Why a stream decides nothing about the column.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only times have a zone")]
    pub(super) fn new(column: &Column, server: &str) -> Result<Self, String> {
        let computed = |kind: &str| Err(format!("is {kind}: ClickHouse computes its value, no row brings it"));
        match column.kind {
            ColumnKind::Materialized => return computed("MATERIALIZED"),
            ColumnKind::Alias => return computed("ALIAS"),
            ColumnKind::Ordinary | ColumnKind::Default | ColumnKind::Ephemeral => {}
        }
        let ty = bare(&column.ty);
        let decided = Family::of(&column.ty);
        let family = decided.ok_or_else(|| format!("is {}, which a stream does not compare", column.type_text))?;
        let zone = match ty {
            Type::DateTime(own) | Type::DateTime64 { zone: own, .. } => Some(own.as_deref().unwrap_or(server)),
            Type::Date | Type::Date32 => Some(server),
            _ => None,
        };
        let unknown = |name: &str| format!("has the time zone {name:?}, which is not known here");
        let zone = zone.map(|name| Zone::named(name).ok_or_else(|| unknown(name))).transpose()?;
        let mut field = Self {
            column: column.name.as_str().into(),
            type_text: column.type_text.as_str().into(),
            ty: ty.clone(),
            family,
            zone,
            nullable: column.nullable(),
            defaulted: column.kind == ColumnKind::Default,
            absent: Datum::Null,
        };
        if field.defaulted {
            let value = field.default(&column.default_expression);
            let why = "has a default that is not a constant: what a row without it has is known only once it is stored";
            field.absent = value.ok_or(why)?;
        } else if !field.nullable {
            field.absent = field.zero();
        }
        Ok(field)
    }

    /// What is stored of a row without the column.
    pub(super) fn absent(&self) -> Datum<'static> {
        self.absent.clone()
    }

    /// What is stored of a value; `None` where that is not known here. `edits` is room for others' work.
    pub(super) fn stored<'t>(&self, text: &'t [u8], value: &Value, edits: &mut Vec<Edited>) -> Option<Datum<'t>> {
        let Value { kind, span } = value;
        let own = &text[span.clone()];
        if *kind == JsonKind::Null {
            return self.null();
        }
        if let (Type::DateTime64 { precision, .. }, JsonKind::String) = (&self.ty, kind)
            && let Some(at) = padded_seconds(inside(own))
        {
            return instant(at, *precision);
        }
        let verdict = types::judge(&self.ty, text, span.clone(), *kind, edits);
        edits.clear();
        (verdict == Verdict::Takes).then(|| self.taken(own, *kind)).flatten()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "an enumeration alone has two defaults")]
    fn null(&self) -> Option<Datum<'static>> {
        match &self.ty {
            _ if self.nullable => Some(Datum::Null),
            // not its least name, as where it is absent
            Type::Enum { values, .. } if !self.defaulted => {
                values.iter().any(|(_, number)| *number == 0).then_some(Datum::Place(0))
            }
            _ => Some(self.absent()),
        }
    }

    /// A value that ClickHouse takes as it is.
    #[expect(clippy::wildcard_enum_match_arm, reason = "what is in no family has no field")]
    fn taken<'t>(&self, own: &'t [u8], kind: JsonKind) -> Option<Datum<'t>> {
        let plain = if kind == JsonKind::String { inside(own) } else { own };
        match &self.ty {
            Type::Int { .. } => match plain {
                b"true" => Some(Datum::Number(Number::ONE)),
                b"false" => Some(Datum::Number(Number::ZERO)),
                digits => Number::read(digits, None).map(Datum::Number),
            },
            Type::Decimal { scale, .. } => Number::read(plain, Some(usize::from(*scale))).map(Datum::Number),
            Type::Float { bits } => float(*bits, plain).map(Datum::Real),
            Type::Bool => Some(Datum::Place(i128::from(matches!(plain, b"true" | b"1")))),
            Type::String if kind == JsonKind::String => unescaped(plain).map(Datum::Text),
            Type::String => Some(Datum::Text(Cow::Borrowed(own))),
            Type::FixedString(_) => unescaped(plain).map(|text| Datum::Text(filled(text))),
            Type::Uuid => uuid(plain),
            Type::Ipv4 => ipv4(plain),
            Type::Ipv6 => ipv6(plain),
            Type::Enum { values, .. } if kind == JsonKind::Integer => {
                let number: i16 = std::str::from_utf8(plain).ok()?.parse().ok()?;
                values.iter().any(|(_, own)| *own == number).then_some(Datum::Place(number.into()))
            }
            Type::Enum { values, .. } => {
                let name = unescaped(plain)?;
                named(values, &name)
            }
            Type::Date | Type::Date32 => {
                types::read_moment(plain).map(|at| Datum::Place(at.seconds.div_euclid(DAY).into()))
            }
            Type::DateTime(_) => self.time(plain, 0),
            Type::DateTime64 { precision, .. } => self.time(plain, *precision),
            _ => None,
        }
    }

    fn time(&self, text: &[u8], precision: u8) -> Option<Datum<'static>> {
        let unix = text.iter().all(u8::is_ascii_digit);
        let (seconds, nanos) = if unix {
            (std::str::from_utf8(text).ok()?.parse().ok()?, 0)
        } else {
            let at = types::read_moment(text)?;
            (self.seconds(&at)?, at.nanos)
        };
        instant((seconds, nanos), precision)
    }

    /// When a moment was. `None`: a clock of the zone showed it twice or never.
    pub(super) fn seconds(&self, at: &Moment) -> Option<i64> {
        if at.exact { Some(at.seconds) } else { self.zone.as_ref()?.instant(at.seconds) }
    }

    /// What a type stores of nothing.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a zero is a zero for all others")]
    fn zero(&self) -> Datum<'static> {
        match &self.ty {
            Type::Int { .. } | Type::Decimal { .. } => Datum::Number(Number::ZERO),
            Type::Float { .. } => Real::new(0.0).map_or(Datum::Null, Datum::Real),
            Type::String | Type::FixedString(_) => Datum::Text(Cow::Borrowed(b"")),
            Type::Uuid | Type::Ipv6 => Datum::unsigned(0),
            Type::Enum { values, .. } => {
                let least = values.iter().map(|(_, number)| *number).min();
                Datum::Place(least.unwrap_or_default().into())
            }
            _ => Datum::Place(0),
        }
    }

    /// What a default stores, where it is a constant that stands for itself.
    fn default(&self, expression: &str) -> Option<Datum<'static>> {
        let text = expression.trim();
        let number = Number::read(text.as_bytes(), None).is_some() && !text.starts_with('+');
        let whole = number && text.bytes().all(|b| b == b'-' || b.is_ascii_digit());
        let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        let quoted = quoted.filter(|text| !text.contains(['\\', '\'', '"']) && !text.chars().any(char::is_control));
        if text == "NULL" && self.nullable {
            return Some(Datum::Null);
        }
        let json = match self.family {
            Family::Int | Family::Decimal if whole => text.to_owned(),
            Family::Float if number => text.to_owned(),
            Family::Bool if matches!(text, "true" | "false" | "0" | "1") => text.to_owned(),
            Family::String | Family::FixedString | Family::Enum | Family::Uuid | Family::Date => {
                format!("\"{}\"", quoted?)
            }
            Family::Int | Family::Decimal | Family::Float | Family::Bool | Family::Ip | Family::DateTime => {
                return None;
            }
        };
        let kind = JsonKind::of(json.as_bytes())?;
        let value = Value { kind, span: 0..json.len() };
        self.stored(json.as_bytes(), &value, &mut Vec::new()).map(Datum::owned)
    }

    fn identity(&self) -> (&str, &str, Option<&Zone>, &Datum<'static>) {
        (&self.column, &self.type_text, self.zone.as_ref(), &self.absent)
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Field {}

impl Hash for Field {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

fn bare(ty: &Type) -> &Type {
    if let Type::Nullable(inner) | Type::LowCardinality(inner) = ty { bare(inner) } else { ty }
}

/// A string without its quotes.
fn inside(value: &[u8]) -> &[u8] {
    value.get(1..value.len().saturating_sub(1)).unwrap_or_default()
}

fn unescaped(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if memchr::memchr(b'\\', text).is_none() {
        return Some(Cow::Borrowed(text));
    }
    (!has_half_a_pair(text)).then(|| unescape(text, true))
}

/// A text of fixed length is filled with zero bytes, and compared as if any other were, too.
pub(super) fn filled(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let end = text.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

fn float(bits: u16, text: &[u8]) -> Option<Real> {
    let text = std::str::from_utf8(text).ok()?;
    let value = match (text, bits) {
        ("true", _) => 1.0,
        ("false", _) => 0.0,
        (text, 32) => f64::from(text.parse::<f32>().ok()?),
        (text, _) => text.parse().ok()?,
    };
    Real::new(value)
}

pub(super) fn uuid(text: &[u8]) -> Option<Datum<'static>> {
    let shape = match text.len() {
        32 => true,
        36 => [8, 13, 18, 23].into_iter().all(|at| text[at] == b'-'),
        _ => false,
    };
    let hex: Vec<u8> = text.iter().copied().filter(|b| *b != b'-').collect();
    let hex = std::str::from_utf8(&hex).ok().filter(|hex| shape && hex.len() == 32 && !hex.starts_with('+'))?;
    u128::from_str_radix(hex, 16).ok().map(Datum::unsigned)
}

pub(super) fn ipv4(text: &[u8]) -> Option<Datum<'static>> {
    let address: Ipv4Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(Datum::Place(u32::from(address).into()))
}

pub(super) fn ipv6(text: &[u8]) -> Option<Datum<'static>> {
    let text = std::str::from_utf8(text).ok()?;
    let address = match text.parse::<Ipv4Addr>() {
        Ok(address) => address.to_ipv6_mapped(),
        Err(_) => text.parse::<Ipv6Addr>().ok()?,
    };
    Some(Datum::unsigned(address.into()))
}

pub(super) fn named(values: &[(String, i16)], name: &[u8]) -> Option<Datum<'static>> {
    let found = values.iter().find(|(own, _)| own.as_bytes() == name);
    found.map(|(_, number)| Datum::Place((*number).into()))
}

/// Unix seconds as a bare number for a `DateTime64` is written into a row: ten digits, perhaps a fraction.
fn padded_seconds(text: &[u8]) -> Option<(i64, u32)> {
    let (whole, fraction) = text.split_at_checked(10)?;
    let whole: i64 = std::str::from_utf8(whole).ok().filter(|_| whole.iter().all(u8::is_ascii_digit))?.parse().ok()?;
    let digits = match fraction {
        b"" => fraction,
        [b'.', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => digits,
        _ => return None,
    };
    let digits = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    Some((whole, digits.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))))
}

/// Nanoseconds since 1970, cut to a precision. `None` where ClickHouse could not compare it.
pub(super) fn instant((seconds, nanos): (i64, u32), precision: u8) -> Option<Datum<'static>> {
    let step = 10_u32.pow(9_u32.saturating_sub(precision.into()));
    let nanos = nanos - nanos % step;
    // before 1970 versions differ in what a fraction is
    if seconds < 0 && nanos > 0 {
        return None;
    }
    let at = i128::from(seconds) * NANOS + i128::from(nanos);
    i64::try_from(at).ok().map(|at| Datum::Place(at.into()))
}
