//! A value as ClickHouse reads it for a parameter of a type, or why it does not fit. Pure.
//!
//! What fits is what a column of the type takes exactly (`wh_clickhouse::types::judge`), and never a value of another
//! kind: no number is taken for text, no boolean for a number.

use crate::types::bare;
use serde_json::value::RawValue;
use wh_clickhouse::{
    LONGEST_PARAMETER, sql,
    types::{self, JsonKind, Type, Verdict},
};
use wh_types::Timestamp;

/// Deepest nesting of arrays.
const DEEPEST: usize = 4;
/// Digits of a number of seconds: fewer may be taken for a year.
const SECONDS: usize = 10;
const NANOS: i64 = 1_000_000_000;

/// Why a parameter cannot have a type; `None` where it can.
pub(super) fn unusable(ty: &Type) -> Option<String> {
    usable(ty, 0).err().map(|what| {
        format!(
            "{what} is no type of parameters: there are Bool, String, FixedString, UUID, IPv4, IPv6, Date, Date32, \
             DateTime, DateTime64, Enum, all of Int, UInt, Float and Decimal, Nullable and Array of these"
        )
    })
}

fn usable(ty: &Type, depth: usize) -> Result<(), String> {
    match (ty, depth) {
        (
            Type::Int { .. }
            | Type::Float { bits: 32 | 64 }
            | Type::Decimal { .. }
            | Type::Bool
            | Type::String
            | Type::FixedString(_)
            | Type::Uuid
            | Type::Ipv4
            | Type::Ipv6
            | Type::Date
            | Type::Date32
            | Type::DateTime(_)
            | Type::DateTime64 { .. }
            | Type::Enum { .. },
            _,
        ) => Ok(()),
        (Type::LowCardinality(inner), _) => usable(inner, depth),
        (Type::Nullable(inner), _) if !matches!(**inner, Type::Array(_) | Type::Nullable(_)) => usable(inner, depth),
        (Type::Array(inner), ..DEEPEST) => usable(inner, depth + 1),
        (Type::Opaque(text), _) => Err(format!("{text:?}")),
        (other, _) => Err(format!("{other:?}").split(['(', ' ']).next().unwrap_or_default().to_owned()),
    }
}

/// The wire form of a JSON value. `zone`: the server's.
pub(super) fn of_json(ty: &Type, json: &str, zone: &str) -> Result<String, String> {
    bounded(value(ty, json.trim(), zone, false)?)
}

/// The wire form of texts, as a query string has them: one, or the elements of an array.
pub(super) fn of_texts(ty: &Type, texts: &[String], zone: &str) -> Result<String, String> {
    match (ty, texts) {
        (Type::Array(inner), _) => {
            let elements: Vec<String> = texts.iter().map(|text| json_of(inner, text)).collect();
            of_json(ty, &format!("[{}]", elements.join(",")), zone)
        }
        (_, [one]) => of_json(ty, &json_of(ty, one), zone),
        _ => Err("is given more than once, and is no array".to_owned()),
    }
}

/// A text as the JSON that says the same: numbers may stand in quotes anyway.
fn json_of(ty: &Type, text: &str) -> String {
    if *bare(ty) == Type::Bool && matches!(text, "true" | "false" | "0" | "1") {
        return text.to_owned();
    }
    serde_json::to_string(text).unwrap_or_default()
}

/// ClickHouse takes so much for a field of a form.
pub(super) fn bounded(wire: String) -> Result<String, String> {
    if wire.len() > LONGEST_PARAMETER {
        return Err(format!("is longer than {} KiB", LONGEST_PARAMETER >> 10));
    }
    Ok(wire)
}

fn value(ty: &Type, json: &str, zone: &str, nested: bool) -> Result<String, String> {
    let kind = JsonKind::of(json.as_bytes()).ok_or("is nothing")?;
    match (ty, kind) {
        (Type::Nullable(_), JsonKind::Null) => return Ok(if nested { "NULL" } else { sql::NULL }.to_owned()),
        (Type::Nullable(inner) | Type::LowCardinality(inner), _) => return value(inner, json, zone, nested),
        (_, JsonKind::Null) => return Err("is null, and its type has no NULL".to_owned()),
        (Type::Array(inner), JsonKind::Array) => return array(inner, json, zone),
        (Type::Array(_), _) => return Err(format!("is {}, not an array", kind.name())),
        _ => {}
    }
    let text = scalar(ty, kind, json, zone)?;
    if !nested {
        return Ok(sql::scalar(&text));
    }
    let plain = matches!(ty, Type::Int { .. } | Type::Float { .. } | Type::Decimal { .. } | Type::Bool);
    Ok(if plain { text } else { quoted(&text) })
}

/// In single quotes, as the elements of arrays are.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn array(inner: &Type, json: &str, zone: &str) -> Result<String, String> {
    let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|error| format!("is no array: {error}"))?;
    let mut wire = String::from("[");
    for (at, element) in elements.into_iter().enumerate() {
        if at > 0 {
            wire.push(',');
        }
        wire +=
            &value(inner, element.get().trim(), zone, true).map_err(|why| format!("has an element {at} that {why}"))?;
        if wire.len() > LONGEST_PARAMETER {
            break;
        }
    }
    wire.push(']');
    bounded(wire)
}

/// The text of a value that is no array and not null.
fn scalar(ty: &Type, kind: JsonKind, json: &str, zone: &str) -> Result<String, String> {
    let unfit = |wants: &str| Err(format!("is {}, not {wants}", kind.name()));
    match (ty, kind) {
        (Type::Int { .. } | Type::Float { .. } | Type::Decimal { .. }, _) => {
            let Some(number) = number(kind, json) else {
                return if kind == JsonKind::String { Err("is no number".into()) } else { unfit("a number") };
            };
            let kind = JsonKind::of(number.as_bytes()).unwrap_or(kind);
            fits(ty, &number, kind)?;
            Ok(number)
        }
        (Type::Bool, JsonKind::Bool) => Ok(json.to_owned()),
        // inside an array ClickHouse reads the words only
        (Type::Bool, JsonKind::Integer) if json == "0" => Ok("false".to_owned()),
        (Type::Bool, JsonKind::Integer) if json == "1" => Ok("true".to_owned()),
        (Type::Bool, _) => unfit("true or false"),
        (Type::Enum { values, .. }, JsonKind::Integer) => {
            fits(ty, json, kind)?;
            let named = values.iter().find(|(_, number)| json.parse() == Ok(*number));
            named.map(|(name, _)| name.clone()).ok_or_else(|| "is none of its numbers".to_owned())
        }
        (Type::DateTime(_) | Type::DateTime64 { .. }, JsonKind::Integer | JsonKind::Float | JsonKind::String) => {
            time(ty, kind, json, zone)
        }
        (_, JsonKind::String) => {
            fits(ty, json, kind)?;
            let text = unquoted(json)?;
            let date = matches!(ty, Type::Date | Type::Date32) && !is_date(&text);
            if date { Err("is no date like 2001-12-31".to_owned()) } else { Ok(text) }
        }
        _ => unfit("a string"),
    }
}

/// What a column of the type would do with it.
fn fits(ty: &Type, json: &str, kind: JsonKind) -> Result<(), String> {
    match types::judge(ty, json.as_bytes(), 0..json.len(), kind, &mut Vec::new()) {
        Verdict::Takes | Verdict::CannotTell => Ok(()),
        Verdict::Alters(why) | Verdict::Refuses(why) => Err(why.into_owned()),
        Verdict::WrongKind(wants) => Err(format!("is {}, not {wants}", kind.name())),
    }
}

fn unquoted(json: &str) -> Result<String, String> {
    serde_json::from_str(json).map_err(|_| "has half a surrogate pair in it".to_owned())
}

/// A number, also one in quotes.
fn number(kind: JsonKind, json: &str) -> Option<String> {
    match kind {
        JsonKind::Integer | JsonKind::Float => Some(json.to_owned()),
        JsonKind::String => unquoted(json).ok().filter(|text| is_number(text)),
        JsonKind::Null | JsonKind::Bool | JsonKind::Array | JsonKind::Object => None,
    }
}

/// Whether a text is a number as JSON has them.
pub(super) fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && serde_json::from_str::<&RawValue>(text).is_ok()
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether it begins as `YYYY-MM-DD` does and ends there.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    matches!(parts[..], [y, m, d] if (y.len(), m.len(), d.len()) == (4, 2, 2) && [y, m, d].into_iter().all(digits))
}

/// A time: an instant of RFC 3339, a date and a time of day in the type's own zone, or seconds since 1970.
fn time(ty: &Type, kind: JsonKind, json: &str, zone: &str) -> Result<String, String> {
    let text = if kind == JsonKind::String { unquoted(json)? } else { json.to_owned() };
    let (whole, fraction) = text.split_once('.').map_or((&*text, None), |(whole, rest)| (whole, Some(rest)));
    if digits(whole) {
        if fraction.is_some_and(|fraction| !digits(fraction)) {
            return Err(NO_TIME.to_owned());
        }
        if fraction.is_some() && matches!(ty, Type::DateTime(_)) {
            return Err("has a fraction of a second, which its type has not".to_owned());
        }
        if whole.len() > SECONDS {
            return Err("is no plain number of seconds: it has more than 10 digits".to_owned());
        }
        fits(ty, whole, JsonKind::Integer)?;
        return Ok(format!("{}{text}", "0".repeat(SECONDS - whole.len())));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        fits(ty, json, kind)?;
        return instant(ty, at, zone);
    }
    let (date, clock) = text.split_at_checked(10).ok_or(NO_TIME)?;
    if !is_date(date) {
        return Err(NO_TIME.to_owned());
    }
    fits(ty, json, kind)?;
    match clock.as_bytes() {
        [] => Ok(format!("{date} 00:00:00")),
        [b' ' | b'T', _, _, b':', _, _, b':', _, _, fraction @ ..] => {
            let plain = fraction.is_empty() || fraction[0] == b'.' && digits(&clock[10..]);
            if plain { Ok(format!("{date} {}", &clock[1..])) } else { Err(NO_TIME.to_owned()) }
        }
        _ => Err(NO_TIME.to_owned()),
    }
}

const NO_TIME: &str = "is no time like 2001-12-31T23:59:59Z, 2001-12-31 23:59:59 or 1009843199";

/// An instant as seconds; before 1970 there are none, only the zone's clock.
fn instant(ty: &Type, at: Timestamp, zone: &str) -> Result<String, String> {
    let (seconds, nanos) = (at.as_nanos().div_euclid(NANOS), at.as_nanos().rem_euclid(NANOS));
    let Type::DateTime64 { zone: own, .. } = ty else { return Ok(format!("{seconds:010}")) };
    if seconds >= 0 {
        return Ok(format!("{seconds:010}.{nanos:09}"));
    }
    if !matches!(own.as_deref().unwrap_or(zone), "UTC" | "Etc/UTC" | "Etc/UCT" | "UCT" | "Zulu" | "Etc/Zulu") {
        return Err("is before 1970: give it without an offset, as the clocks of its zone showed it".to_owned());
    }
    Ok(at.to_string().replace('T', " ").trim_end_matches('Z').to_owned())
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
