//! Values of filters as typed parameters: what a value is compared as follows from its column's type. Pure.

use super::build::Refused;
use crate::types::bare;
use serde_json::value::RawValue;
use wh_clickhouse::{
    Column,
    types::{JsonKind, Type},
};
use wh_types::Timestamp;

/// Most digits of a number that is compared exactly.
const MAX_DIGITS: usize = 76;
/// Most values of one query.
pub(super) const MAX_VALUES: usize = 1_000;

/// Collects the parameters of one query.
#[derive(Debug, Default)]
pub(super) struct Binder {
    pub(super) params: Vec<(String, String)>,
}

impl Binder {
    /// Binds a value and gives what stands for it in the text.
    fn bind(&mut self, ty: &str, value: impl Into<String>) -> Result<String, Refused> {
        let name = format!("p{}", self.params.len());
        if self.params.len() >= MAX_VALUES {
            return Err(Refused::query(format!("a query has at most {MAX_VALUES} values")));
        }
        let placeholder = format!("{{{name}:{ty}}}");
        self.params.push((name, value.into()));
        Ok(placeholder)
    }

    /// An instant.
    pub(super) fn instant(&mut self, at: Timestamp) -> Result<String, Refused> {
        let nanos = self.bind("Int64", at.as_nanos().to_string())?;
        Ok(format!("fromUnixTimestamp64Nano({nanos}, 'UTC')"))
    }

    /// A value as its column is compared with it. `zone`: the server's.
    pub(super) fn value(&mut self, column: &Column, value: &RawValue, zone: &str) -> Result<String, Refused> {
        let unfit = |wants: &str| {
            let given = JsonKind::of(value.get().as_bytes()).map_or("nothing", JsonKind::name);
            Refused::query(format!(
                "filter on column {:?} ({}): the value is {given}, not {wants}",
                column.name, column.type_text
            ))
        };
        let value = Scalar::of(value).ok_or_else(|| unfit("a string, a number or a boolean"))?;
        match (bare(&column.ty), &value) {
            (Type::Int { .. } | Type::Float { .. } | Type::Decimal { .. }, _) => {
                let number = value.number().ok_or_else(|| unfit("a number"))?;
                self.number(bare(&column.ty), number).ok_or_else(|| unfit("a number that can be compared"))?
            }
            (Type::Bool, Scalar::Bool(text)) => self.bind("Bool", *text),
            (Type::Bool, Scalar::Number(text @ ("0" | "1"))) => self.bind("Bool", *text),
            (Type::Bool, _) => Err(unfit("true or false")),
            (Type::Enum { .. }, Scalar::Number(text)) => self.bind("Int16", *text),
            (Type::String | Type::FixedString(_) | Type::Enum { .. }, _) => self.bind("String", value.text()),
            (Type::Uuid, Scalar::String(text)) => self.bind("UUID", text.clone()),
            (Type::Ipv4, Scalar::String(text)) => self.bind("IPv4", text.clone()),
            (Type::Ipv6, Scalar::String(text)) => self.bind("IPv6", text.clone()),
            (Type::Uuid | Type::Ipv4 | Type::Ipv6, _) => Err(unfit("a string")),
            (Type::DateTime(own), _) => self.time(&value, own.as_deref().unwrap_or(zone), &unfit),
            (Type::DateTime64 { zone: own, .. }, _) => self.time(&value, own.as_deref().unwrap_or(zone), &unfit),
            (Type::Date | Type::Date32, _) => Ok(format!("toDate32({})", self.time(&value, zone, &unfit)?)),
            _ => Err(Refused::query(format!(
                "column {:?} has the type {}, which filters cannot compare",
                column.name, column.type_text
            ))),
        }
    }

    /// A number of its own size, so that one outside the column's range compares instead of failing.
    fn number(&mut self, ty: &Type, text: &str) -> Option<Result<String, Refused>> {
        let (digits, fraction) =
            text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
        let plain = digits.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
        let scale = |own: u16| fraction.len().max(usize::from(own));
        let as_type = if let Type::Decimal { scale: own, .. } = ty
            && plain
        {
            if digits.len() + scale(*own) > MAX_DIGITS {
                return None;
            }
            format!("Decimal({MAX_DIGITS}, {})", scale(*own))
        } else if matches!(ty, Type::Int { .. }) && plain && !text.contains('.') {
            if digits.len() > MAX_DIGITS {
                return None;
            }
            let small = if text.parse::<i64>().is_ok() { "Int64" } else { "Int256" };
            if text.parse::<u64>().is_ok() && small != "Int64" { "UInt64".to_owned() } else { small.to_owned() }
        } else {
            "Float64".to_owned()
        };
        Some(self.bind(&as_type, text))
    }

    fn time(&mut self, value: &Scalar<'_>, zone: &str, unfit: &dyn Fn(&str) -> Refused) -> Result<String, Refused> {
        match value {
            Scalar::String(text) => {
                let text = self.bind("String", text.clone())?;
                Ok(format!("parseDateTime64BestEffort({text}, 9, '{}')", checked_zone(zone)))
            }
            Scalar::Number(text) => {
                let at = seconds(text).ok_or_else(|| unfit("a number of Unix seconds"))?;
                self.instant(at)
            }
            Scalar::Bool(_) => Err(unfit("a time")),
        }
    }
}

/// A zone's name stands in the text; one with anything odd in it does not.
fn checked_zone(zone: &str) -> &str {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'+' | b'-');
    if !zone.is_empty() && zone.bytes().all(plain) { zone } else { "UTC" }
}

/// Unix seconds with up to nine digits of fraction.
fn seconds(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let padded = format!("{fraction:0<9}");
    let nanos: i64 = padded.get(..9).filter(|_| padded.len() == 9)?.parse().ok()?;
    let seconds: i64 = whole.parse().ok()?;
    let nanos = if whole.starts_with('-') { -nanos } else { nanos };
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos).map(Timestamp::from_nanos)
}

/// A JSON value that is no structure, numbers as their own text.
#[derive(Debug)]
enum Scalar<'a> {
    String(String),
    Number(&'a str),
    Bool(&'a str),
}

impl<'a> Scalar<'a> {
    fn of(value: &'a RawValue) -> Option<Self> {
        let text = value.get().trim();
        match JsonKind::of(text.as_bytes())? {
            JsonKind::String => serde_json::from_str(text).ok().map(Self::String),
            JsonKind::Integer | JsonKind::Float => Some(Self::Number(text)),
            JsonKind::Bool => Some(Self::Bool(text)),
            JsonKind::Null | JsonKind::Array | JsonKind::Object => None,
        }
    }

    /// A number, also one in quotes.
    fn number(&self) -> Option<&str> {
        match self {
            Self::Number(text) => Some(text),
            Self::String(text) => {
                let number = serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
                number.filter(|text| matches!(JsonKind::of(text.as_bytes()), Some(JsonKind::Integer | JsonKind::Float)))
            }
            Self::Bool(_) => None,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::String(text) => text,
            Self::Number(text) | Self::Bool(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_seconds_are_read_to_the_nanosecond() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("1750478400", Some(1_750_478_400_000_000_000)),
            ("1750478400.5", Some(1_750_478_400_500_000_000)),
            ("-1.000000001", Some(-1_000_000_001)),
            ("-0.5", Some(-500_000_000)),
            ("1.0000000001", None),
            ("1e9", None),
            ("99999999999", None),
        ] {
            assert_eq!(seconds(text).map(Timestamp::as_nanos), nanos, "{text}");
        }
    }

    #[test]
    fn a_zone_never_leaves_its_quotes() {
        assert_eq!(checked_zone("America/Port-au-Prince"), "America/Port-au-Prince");
        assert_eq!(checked_zone("x') OR 1=1 --"), "UTC");
        assert_eq!(checked_zone(""), "UTC");
    }
}
