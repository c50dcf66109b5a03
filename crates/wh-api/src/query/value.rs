//! Values of filters as typed parameters: what a value is compared as follows from its column's type. Pure.

use super::{operand::Operand, refused::Refused};
use crate::types::bare;
use serde_json::value::RawValue;
use wh_clickhouse::{
    LONGEST_PARAMETER, sql,
    types::{JsonKind, Type},
};
use wh_types::Timestamp;

/// Most digits of a number that is compared exactly.
const MAX_DIGITS: usize = 76;
/// The largest whole number there is.
const LARGEST: &str = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
/// Most values of one query.
pub(crate) const MAX_VALUES: usize = 1_000;

/// Collects the parameters of one query.
#[derive(Debug, Default)]
pub(super) struct Binder {
    pub(super) params: Vec<(String, String)>,
    /// The name of what each is compared with.
    pub(super) columns: Vec<String>,
}

impl Binder {
    /// Binds a value and gives what stands for it in the text.
    fn bind(&mut self, with: &Operand, member: &str, ty: &str, value: impl Into<String>) -> Result<String, Refused> {
        let (name, value) = (format!("p{}", self.params.len()), value.into());
        if self.params.len() >= MAX_VALUES {
            return Err(Refused::at(member, format!("is one value too many: a query has at most {MAX_VALUES}")));
        }
        if sql::scalar(&value).len() > LONGEST_PARAMETER {
            let most = LONGEST_PARAMETER >> 10;
            return Err(Refused::at(member, format!("is longer than {most} KiB")));
        }
        let placeholder = format!("{{{name}:{ty}}}");
        self.params.push((name, value));
        self.columns.push(with.name.clone());
        Ok(placeholder)
    }

    /// An instant that a column is compared with.
    pub(super) fn instant(&mut self, with: &Operand, member: &str, at: Timestamp) -> Result<String, Refused> {
        let nanos = self.bind(with, member, "Int64", at.as_nanos().to_string())?;
        Ok(format!("fromUnixTimestamp64Nano({nanos}, 'UTC')"))
    }

    /// A value as it is compared with an operand. `member`: where it stands in the query. `zone`: the server's.
    pub(super) fn value(
        &mut self,
        with: &Operand,
        member: &str,
        value: &RawValue,
        zone: &str,
    ) -> Result<String, Refused> {
        let given = JsonKind::of(value.get().trim().as_bytes()).map_or("nothing", JsonKind::name);
        let unfit = |wants: &str| {
            Refused::at(member, format!("is {given}, not {wants}: column {:?} is {}", with.name, with.shown))
        };
        let value = Scalar::of(value).ok_or_else(|| match JsonKind::of(value.get().trim().as_bytes()) {
            Some(JsonKind::String) => Refused::at(member, "has half a surrogate pair in it"),
            _ => unfit("a string, a number or a boolean"),
        })?;
        match (bare(&with.ty), &value) {
            (Type::Int { .. } | Type::Float { .. } | Type::Decimal { .. }, _) => {
                let number = value.number().ok_or_else(|| unfit("a number"))?;
                let ty = number_type(bare(&with.ty), number).ok_or_else(|| unfit("a number that can be compared"))?;
                self.bind(with, member, &ty, number)
            }
            (Type::Bool, Scalar::Bool(text)) => self.bind(with, member, "Bool", *text),
            (Type::Bool, Scalar::Number(text @ ("0" | "1"))) => self.bind(with, member, "Bool", *text),
            (Type::Bool, _) => Err(unfit("true or false")),
            (Type::Enum { .. }, Scalar::Number(text)) if text.parse::<i16>().is_ok() => {
                self.bind(with, member, "Int16", *text)
            }
            (Type::Enum { values, .. }, Scalar::String(text)) if !values.iter().any(|(name, _)| name == text) => {
                Err(unfit("one of its names"))
            }
            (Type::Enum { .. }, Scalar::Number(_) | Scalar::Bool(_)) => Err(unfit("one of its names or numbers")),
            (Type::String | Type::FixedString(_) | Type::Enum { .. }, _) => {
                self.bind(with, member, "String", value.text())
            }
            (Type::Uuid, Scalar::String(text)) => self.bind(with, member, "UUID", text.clone()),
            (Type::Ipv4, Scalar::String(text)) => self.bind(with, member, "IPv4", text.clone()),
            (Type::Ipv6, Scalar::String(text)) => self.bind(with, member, "IPv6", text.clone()),
            (Type::Uuid | Type::Ipv4 | Type::Ipv6, _) => Err(unfit("a string")),
            (Type::DateTime(own) | Type::DateTime64 { zone: own, .. }, _) => {
                self.time(with, member, &value, own.as_deref().unwrap_or(zone), &unfit)
            }
            (Type::Date | Type::Date32, _) => {
                Ok(format!("toDate32({})", self.time(with, member, &value, zone, &unfit)?))
            }
            _ => {
                let text = format!("cannot be compared: column {:?} is {}", with.name, with.shown);
                Err(Refused::at(member, text))
            }
        }
    }

    fn time(
        &mut self,
        with: &Operand,
        member: &str,
        value: &Scalar<'_>,
        zone: &str,
        unfit: &dyn Fn(&str) -> Refused,
    ) -> Result<String, Refused> {
        match value {
            Scalar::String(text) => {
                let text = self.bind(with, member, "String", text.clone())?;
                Ok(format!("parseDateTime64BestEffort({text}, 9, '{}')", checked_zone(zone)))
            }
            Scalar::Number(text) => {
                let at = seconds(text).ok_or_else(|| unfit("a number of Unix seconds"))?;
                self.instant(with, member, at)
            }
            Scalar::Bool(_) => Err(unfit("a time")),
        }
    }
}

/// The type of a number of its own size, so that one outside the column's range compares instead of failing.
fn number_type(ty: &Type, text: &str) -> Option<String> {
    let (digits, fraction) = text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
    let plain = digits.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if let Type::Decimal { scale, .. } = ty
        && plain
    {
        let scale = fraction.len().max(usize::from(*scale));
        return (digits.len() + scale <= MAX_DIGITS).then(|| format!("Decimal({MAX_DIGITS}, {scale})"));
    }
    if !matches!(ty, Type::Int { .. }) || !plain || text.contains('.') {
        return Some("Float64".to_owned());
    }
    match () {
        () if text.parse::<i64>().is_ok() => Some("Int64".to_owned()),
        () if text.parse::<u64>().is_ok() => Some("UInt64".to_owned()),
        () if digits.len() <= MAX_DIGITS => Some("Int256".to_owned()),
        () if text.starts_with('-') || (digits.len(), digits) > (LARGEST.len(), LARGEST) => None,
        () => Some("UInt256".to_owned()),
    }
}

/// ClickHouse's words with what the asker knows in the place of names that we made up. `columns`: those of the values.
pub(super) fn in_askers_words(message: &str, columns: &[String]) -> String {
    let mut message = message.to_owned();
    for (at, column) in columns.iter().enumerate() {
        for ours in [format!("query parameter 'p{at}'"), format!("parameter `p{at}`"), format!("param_p{at}")] {
            // a digit behind it makes it the name of another
            while let Some(found) = message
                .match_indices(&ours)
                .map(|(found, _)| found)
                .find(|found| !message[found + ours.len()..].starts_with(|next: char| next.is_ascii_digit()))
            {
                message.replace_range(found..found + ours.len(), &format!("column {column:?}"));
            }
        }
    }
    message
}

/// Whether a text may be the name of a zone: it stands in a statement, in quotes.
pub(super) fn is_zone(zone: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'+' | b'-');
    (1..=64).contains(&zone.len()) && zone.bytes().all(plain)
}

/// A zone's name stands in the text; one with anything odd in it does not.
fn checked_zone(zone: &str) -> &str {
    if is_zone(zone) { zone } else { "UTC" }
}

/// Unix seconds with up to nine digits of fraction.
pub(crate) fn seconds(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let padded = format!("{fraction:0<9}");
    let nanos: i64 = padded.get(..9).filter(|_| padded.len() == 9)?.parse().ok()?;
    let seconds: i64 = whole.parse().ok()?;
    let nanos = if whole.starts_with('-') { -nanos } else { nanos };
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos).map(Timestamp::from_nanos)
}

/// A JSON value that is no structure, numbers as their own text.
#[derive(Debug)]
pub(crate) enum Scalar<'a> {
    String(String),
    Number(&'a str),
    Bool(&'a str),
}

impl<'a> Scalar<'a> {
    pub(crate) fn of(value: &'a RawValue) -> Option<Self> {
        let text = value.get().trim();
        match JsonKind::of(text.as_bytes())? {
            JsonKind::String => serde_json::from_str(text).ok().map(Self::String),
            JsonKind::Integer | JsonKind::Float => Some(Self::Number(text)),
            JsonKind::Bool => Some(Self::Bool(text)),
            JsonKind::Null | JsonKind::Array | JsonKind::Object => None,
        }
    }

    /// A number, also one in quotes.
    pub(crate) fn number(&self) -> Option<&str> {
        match self {
            Self::Number(text) => Some(text),
            Self::String(text) => {
                let number = serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
                number.filter(|text| matches!(JsonKind::of(text.as_bytes()), Some(JsonKind::Integer | JsonKind::Float)))
            }
            Self::Bool(_) => None,
        }
    }

    pub(crate) fn text(&self) -> &str {
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
    fn an_asker_reads_of_columns_and_not_of_our_parameters() {
        let columns: Vec<String> = (0..12).map(|at| format!("c{at}")).collect();
        let said = "Value x cannot be parsed as UUID for query parameter 'p11' because; param_p1, param_p10";
        let told = "Value x cannot be parsed as UUID for column \"c11\" because; \
                    column \"c1\", column \"c10\"";
        assert_eq!(in_askers_words(said, &columns), told);
        assert_eq!(in_askers_words("p0 of 'p1'", &columns), "p0 of 'p1'", "the asker's own words stay");
    }

    #[test]
    fn a_zone_never_leaves_its_quotes() {
        assert_eq!(checked_zone("America/Port-au-Prince"), "America/Port-au-Prince");
        assert_eq!(checked_zone("x') OR 1=1 --"), "UTC");
        assert_eq!(checked_zone(""), "UTC");
    }
}
