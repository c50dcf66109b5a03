//! Values of filters as typed parameters: what a value is compared as follows from its column's type. Pure.

use super::build::Refused;
use crate::types::bare;
use serde_json::value::RawValue;
use wh_clickhouse::{
    Column, LONGEST_PARAMETER, sql,
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
    /// The column that each is compared with.
    pub(super) columns: Vec<String>,
}

impl Binder {
    /// Binds a value and gives what stands for it in the text.
    fn bind(&mut self, column: &Column, ty: &str, value: impl Into<String>) -> Result<String, Refused> {
        let (name, value) = (format!("p{}", self.params.len()), value.into());
        if self.params.len() >= MAX_VALUES {
            return Err(Refused::query(format!("a query has at most {MAX_VALUES} values")));
        }
        if sql::scalar(&value).len() > LONGEST_PARAMETER {
            let most = LONGEST_PARAMETER >> 10;
            return Err(Refused::query(format!("a value for column {:?} is longer than {most} KiB", column.name)));
        }
        let placeholder = format!("{{{name}:{ty}}}");
        self.params.push((name, value));
        self.columns.push(column.name.clone());
        Ok(placeholder)
    }

    /// An instant that a column is compared with.
    pub(super) fn instant(&mut self, column: &Column, at: Timestamp) -> Result<String, Refused> {
        let nanos = self.bind(column, "Int64", at.as_nanos().to_string())?;
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
                self.number(column, number).ok_or_else(|| unfit("a number that can be compared"))?
            }
            (Type::Bool, Scalar::Bool(text)) => self.bind(column, "Bool", *text),
            (Type::Bool, Scalar::Number(text @ ("0" | "1"))) => self.bind(column, "Bool", *text),
            (Type::Bool, _) => Err(unfit("true or false")),
            (Type::Enum { .. }, Scalar::Number(text)) => self.bind(column, "Int16", *text),
            (Type::String | Type::FixedString(_) | Type::Enum { .. }, _) => self.bind(column, "String", value.text()),
            (Type::Uuid, Scalar::String(text)) => self.bind(column, "UUID", text.clone()),
            (Type::Ipv4, Scalar::String(text)) => self.bind(column, "IPv4", text.clone()),
            (Type::Ipv6, Scalar::String(text)) => self.bind(column, "IPv6", text.clone()),
            (Type::Uuid | Type::Ipv4 | Type::Ipv6, _) => Err(unfit("a string")),
            (Type::DateTime(own), _) => self.time(column, &value, own.as_deref().unwrap_or(zone), &unfit),
            (Type::DateTime64 { zone: own, .. }, _) => {
                self.time(column, &value, own.as_deref().unwrap_or(zone), &unfit)
            }
            (Type::Date | Type::Date32, _) => Ok(format!("toDate32({})", self.time(column, &value, zone, &unfit)?)),
            _ => Err(Refused::query(format!(
                "column {:?} has the type {}, which filters cannot compare",
                column.name, column.type_text
            ))),
        }
    }

    /// A number of its own size, so that one outside the column's range compares instead of failing.
    fn number(&mut self, column: &Column, text: &str) -> Option<Result<String, Refused>> {
        let ty = bare(&column.ty);
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
        Some(self.bind(column, &as_type, text))
    }

    fn time(
        &mut self,
        column: &Column,
        value: &Scalar<'_>,
        zone: &str,
        unfit: &dyn Fn(&str) -> Refused,
    ) -> Result<String, Refused> {
        match value {
            Scalar::String(text) => {
                let text = self.bind(column, "String", text.clone())?;
                Ok(format!("parseDateTime64BestEffort({text}, 9, '{}')", checked_zone(zone)))
            }
            Scalar::Number(text) => {
                let at = seconds(text).ok_or_else(|| unfit("a number of Unix seconds"))?;
                self.instant(column, at)
            }
            Scalar::Bool(_) => Err(unfit("a time")),
        }
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
