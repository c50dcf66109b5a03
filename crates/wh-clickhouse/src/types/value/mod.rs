//! What becomes of one JSON value in a column of one type: taken as it is, altered, refused, or not known here.
//!
//! Pure, and no parser of its own truth: each rule was measured on 26.7 and 26.9 and is held against both by the
//! differential test of `wh-api`. What was not measured, or differs between versions, is [`Verdict::CannotTell`].

mod composite;
mod json;
mod number;
mod text;
mod time;
mod walk;

pub use time::{Moment, read_moment};

use super::{Accept, JsonKind, Type, accepts};
use std::{borrow::Cow, ops::Range};

/// What becomes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// ClickHouse stores what the value says, as exactly as the type can.
    Takes,
    /// ClickHouse decides: a form, a type or a version that is not modelled.
    CannotTell,
    /// ClickHouse stores something else, or refuses: it wraps, clamps, zeroes, drops or takes a default. The text says
    /// what is wrong with the value.
    Alters(Cow<'static, str>),
    /// ClickHouse refuses the value for what it says.
    Refuses(Cow<'static, str>),
    /// ClickHouse refuses the value for what it is: the text is what the type wants instead.
    WrongKind(&'static str),
}

impl Verdict {
    fn alters(why: &'static str) -> Self {
        Self::Alters(Cow::Borrowed(why))
    }

    fn refuses(why: &'static str) -> Self {
        Self::Refuses(Cow::Borrowed(why))
    }

    /// How bad it is; a composite value is as bad as its worst part.
    fn rank(&self) -> u8 {
        match self {
            Self::Takes => 0,
            Self::CannotTell => 1,
            Self::Alters(_) => 2,
            Self::WrongKind(_) | Self::Refuses(_) => 3,
        }
    }

    fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }
}

/// How a value's text is sent, where it must not be sent as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// A bare number of seconds for a `DateTime64`: in quotes, the whole part padded with zeros to ten digits.
    Seconds,
    /// An array or object with white space in it for a `String`, which would store that white space: as a JSON string
    /// of the same text.
    Text,
    /// An array or object with white space in it that may become a string: with its white space, but for line breaks,
    /// which a row cannot have.
    Verbatim,
}

/// A place in the record and what is done to it.
pub type Edited = (Range<usize>, Edit);

/// Judges the value at `span` of `text`, which is valid JSON, under the settings that an insert pins. Edits are added
/// in the order of their places; they count only for a verdict that is not a refusal.
#[must_use]
pub fn judge(ty: &Type, text: &[u8], span: Range<usize>, kind: JsonKind, edits: &mut Vec<Edited>) -> Verdict {
    composite::judge(ty, text, span, kind, edits, 0)
}

/// How many elements the array at `span` has.
#[must_use]
pub fn elements(text: &[u8], span: &Range<usize>) -> usize {
    walk::Parts::of(text, span).count()
}

/// A value that is neither array nor object.
fn scalar(ty: &Type, value: &[u8], kind: JsonKind) -> Verdict {
    match accepts(ty, kind) {
        Accept::No(why) => return Verdict::WrongKind(why),
        Accept::CannotTell if matches!(ty, Type::Date | Type::Date32) && kind == JsonKind::Integer => {
            return time::days(ty, value);
        }
        Accept::CannotTell => return Verdict::CannotTell,
        Accept::Yes => {}
    }
    match (ty, kind) {
        (_, JsonKind::Null) => Verdict::Takes,
        (Type::Nullable(inner) | Type::LowCardinality(inner) | Type::Simple(inner), _) => scalar(inner, value, kind),
        (Type::String | Type::FixedString(_), JsonKind::String) => text::string(ty, inside(value)),
        (Type::String, _) => Verdict::Takes,
        (Type::Int { .. } | Type::Interval(_), JsonKind::Integer) => number::integer(ty, value),
        (Type::Int { .. } | Type::Interval(_), JsonKind::String) => number::quoted_integer(ty, inside(value)),
        (Type::Int { .. } | Type::Interval(_) | Type::Float { .. }, JsonKind::Bool) => Verdict::Takes,
        (Type::Float { bits }, JsonKind::String) => number::quoted_float(*bits, inside(value)),
        (Type::Float { bits }, _) => number::float(*bits, value),
        (Type::Decimal { precision, scale }, JsonKind::String) => {
            number::quoted_decimal(*precision, *scale, inside(value))
        }
        (Type::Decimal { precision, scale }, _) => number::decimal(*precision, *scale, value),
        (Type::Bool, JsonKind::Integer) => match value {
            b"0" | b"1" => Verdict::Takes,
            _ => Verdict::refuses("is neither true, false, 0 nor 1"),
        },
        (Type::Bool, _) => Verdict::Takes,
        (Type::Uuid, _) => text::uuid(inside(value)),
        (Type::Ipv4, _) => text::ipv4(inside(value)),
        (Type::Ipv6, _) => text::ipv6(inside(value)),
        (Type::Enum { bits, values }, JsonKind::Integer) => text::enum_number(*bits, values, value),
        (Type::Enum { values, .. }, _) => text::enum_name(values, inside(value)),
        (Type::Date | Type::Date32, _) => time::date(ty, inside(value)),
        (Type::DateTime(_), JsonKind::Integer) => time::seconds(value),
        (Type::DateTime(zone), JsonKind::String) => time::date_time(None, zone.as_deref(), inside(value)),
        (Type::DateTime64 { precision, zone }, JsonKind::String) => {
            time::date_time(Some(*precision), zone.as_deref(), inside(value))
        }
        (Type::Time | Type::Time64(_), JsonKind::Integer) => time::clock_ticks(ty, value),
        (Type::Time | Type::Time64(_), _) => time::clock(ty, inside(value)),
        (Type::Dynamic, JsonKind::Bool) => Verdict::Takes,
        (Type::Dynamic, JsonKind::String) => text::string(&Type::String, inside(value)),
        (Type::Dynamic, JsonKind::Integer) => number::dynamic(value),
        _ => Verdict::CannotTell,
    }
}

/// A string without its quotes.
fn inside(value: &[u8]) -> &[u8] {
    value.get(1..value.len().saturating_sub(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
