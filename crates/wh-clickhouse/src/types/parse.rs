//! Reading a type's text. What is not understood stays as text.

use super::{Nested, Type};

/// Deeper types stay as text.
const DEEPEST: usize = 64;

pub(super) fn parse(text: &str, depth: usize) -> Type {
    understood(text.trim(), depth).unwrap_or_else(|| Type::Opaque(text.trim().to_owned()))
}

fn understood(text: &str, depth: usize) -> Option<Type> {
    if depth > DEEPEST {
        return None;
    }
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => (name.trim_end(), Some(split(rest.strip_suffix(')')?)?)),
        None => (text, None),
    };
    let inner = |at: usize| arguments.as_ref()?.get(at).map(|argument| Box::new(parse(argument, depth + 1)));
    let one = || if arguments.as_ref()?.len() == 1 { inner(0) } else { None };
    let count = arguments.as_ref().map_or(0, Vec::len);
    let number = |at: usize| arguments.as_ref()?.get(at)?.trim().parse::<u64>().ok();
    let quoted = |at: usize| arguments.as_ref()?.get(at).map(|argument| unquote(argument.trim()));
    let decimal = |precision: u16| Some(Type::Decimal { precision, scale: u16::try_from(number(0)?).ok()? });
    Some(match name {
        "Bool" | "Boolean" => Type::Bool,
        "String" => Type::String,
        "UUID" => Type::Uuid,
        "IPv4" => Type::Ipv4,
        "IPv6" => Type::Ipv6,
        "Date" => Type::Date,
        "Date32" => Type::Date32,
        "Nothing" => Type::Nothing,
        "Time" => Type::Time,
        "Time64" => Type::Time64(u8::try_from(number(0)?).ok()?),
        _ if count == 0 && name.starts_with("Interval") && name.bytes().all(|b| b.is_ascii_alphabetic()) => {
            Type::Interval(name.to_owned())
        }
        "FixedString" => Type::FixedString(number(0)?),
        "Float32" => Type::Float { bits: 32 },
        "Float64" => Type::Float { bits: 64 },
        "BFloat16" => Type::Float { bits: 16 },
        "Decimal" if count == 2 => {
            Type::Decimal { precision: u16::try_from(number(0)?).ok()?, scale: u16::try_from(number(1)?).ok()? }
        }
        "Decimal32" => decimal(9)?,
        "Decimal64" => decimal(18)?,
        "Decimal128" => decimal(38)?,
        "Decimal256" => decimal(76)?,
        "DateTime" if count == 0 => Type::DateTime(None),
        "DateTime" => Type::DateTime(Some(quoted(0)??)),
        "DateTime64" => Type::DateTime64 {
            precision: u8::try_from(number(0)?).ok()?,
            zone: if count > 1 { Some(quoted(1)??) } else { None },
        },
        "Enum8" => Type::Enum { bits: 8, values: enum_values(arguments.as_ref()?)? },
        "Enum16" => Type::Enum { bits: 16, values: enum_values(arguments.as_ref()?)? },
        "Nullable" => Type::Nullable(one()?),
        "LowCardinality" => Type::LowCardinality(one()?),
        "Array" => Type::Array(one()?),
        "Map" if count == 2 => Type::Map(inner(0)?, inner(1)?),
        "Tuple" => Type::Tuple(members(arguments.as_deref().unwrap_or_default(), depth)),
        "Nested" => Type::Nested(members(arguments.as_ref()?, depth)),
        "JSON" | "Object" => Type::Json(text.get(name.len()..)?.trim_matches(['(', ')']).to_owned()),
        "Variant" => Type::Variant(arguments.as_ref()?.iter().map(|argument| parse(argument, depth + 1)).collect()),
        "Dynamic" => Type::Dynamic,
        "Point" | "Ring" | "LineString" | "MultiLineString" | "Polygon" | "MultiPolygon" | "Geometry" => {
            Type::Geo(name.to_owned())
        }
        // the function's name comes first, then the types of its arguments: the first is what is stored
        "SimpleAggregateFunction" => Type::Simple(inner(1)?),
        "AggregateFunction" => Type::Aggregate(text.to_owned()),
        _ => {
            let (signed, bits) = match name.strip_prefix("UInt") {
                Some(bits) => (false, bits),
                None => (true, name.strip_prefix("Int")?),
            };
            let bits = bits.parse().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64 | 128 | 256))?;
            Type::Int { signed, bits }
        }
    })
}

/// Members of a tuple: a name, in backticks where it needs them, then a type; or a type alone.
fn members(arguments: &[&str], depth: usize) -> Vec<Nested> {
    let member = |argument: &&str| {
        let argument = argument.trim();
        if let Some(rest) = argument.strip_prefix('`')
            && let Some(end) = closing(rest, b'`')
        {
            let name = unescape(&rest[..end], '`');
            return Nested { name: Some(name), ty: parse(&rest[end + 1..], depth + 1) };
        }
        match argument.split_once(' ') {
            // "a Int32", but not "Decimal(9, 2)"
            Some((name, ty)) if !name.contains('(') => Nested { name: Some(name.to_owned()), ty: parse(ty, depth + 1) },
            _ => Nested { name: None, ty: parse(argument, depth + 1) },
        }
    };
    arguments.iter().map(member).collect()
}

fn enum_values(arguments: &[&str]) -> Option<Vec<(String, i16)>> {
    let value = |argument: &&str| {
        let rest = argument.trim().strip_prefix('\'')?;
        let end = closing(rest, b'\'')?;
        let number = rest[end + 1..].trim().strip_prefix('=')?.trim().parse().ok()?;
        Some((unescape(&rest[..end], '\''), number))
    };
    arguments.iter().map(value).collect()
}

/// Splits arguments at the commas that are in no bracket and no quotes. `None` where those do not match up.
fn split(text: &str) -> Option<Vec<&str>> {
    let bytes = text.as_bytes();
    let (mut parts, mut begin, mut at, mut open) = (Vec::new(), 0, 0, 0_u32);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'`') => at += 1 + closing(&text[at + 1..], quote)?,
            b'(' => open += 1,
            b')' => open = open.checked_sub(1)?,
            b',' if open == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if open != 0 {
        return None;
    }
    if !text.trim().is_empty() {
        parts.push(&text[begin..]);
    }
    Some(parts)
}

/// Where a quoted text ends: at its quote, unless that is behind a backslash or doubled.
fn closing(text: &str, quote: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            b if b == quote => return Some(at),
            _ => at += 1,
        }
    }
    None
}

fn unquote(text: &str) -> Option<String> {
    let rest = text.strip_prefix('\'')?;
    let end = closing(rest, b'\'')?;
    (end + 1 == rest.len()).then(|| unescape(&rest[..end], '\''))
}

fn unescape(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('0') => out.push('\0'),
                Some('b') => out.push('\u{8}'),
                Some('f') => out.push('\u{c}'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c if c == quote => {
                // a doubled quote
                chars.next();
                out.push(c);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn int(bits: u16) -> Type {
        Type::Int { signed: true, bits }
    }

    #[test]
    fn types_are_read_as_clickhouse_writes_them() {
        let boxed = |ty| Box::new(ty);
        let named = |name: &str, ty| Nested { name: Some(name.into()), ty };
        for (text, expected) in [
            ("Int32", int(32)),
            ("UInt256", Type::Int { signed: false, bits: 256 }),
            ("BFloat16", Type::Float { bits: 16 }),
            ("Decimal(9, 2)", Type::Decimal { precision: 9, scale: 2 }),
            ("Decimal64(3)", Type::Decimal { precision: 18, scale: 3 }),
            ("FixedString(16)", Type::FixedString(16)),
            ("DateTime", Type::DateTime(None)),
            ("DateTime('Asia/Tokyo')", Type::DateTime(Some("Asia/Tokyo".into()))),
            ("DateTime64(3)", Type::DateTime64 { precision: 3, zone: None }),
            ("DateTime64(9, 'UTC')", Type::DateTime64 { precision: 9, zone: Some("UTC".into()) }),
            ("Time64(3)", Type::Time64(3)),
            (
                r"Enum8('a' = 1, 'it\'s, (b)' = -2)",
                Type::Enum { bits: 8, values: vec![("a".into(), 1), ("it's, (b)".into(), -2)] },
            ),
            ("LowCardinality(Nullable(String))", Type::LowCardinality(boxed(Type::Nullable(boxed(Type::String))))),
            ("Map(String, Array(Int8))", Type::Map(boxed(Type::String), boxed(Type::Array(boxed(int(8)))))),
            (
                "Tuple(Int8, Decimal(9, 2))",
                Type::Tuple(vec![
                    Nested { name: None, ty: int(8) },
                    Nested { name: None, ty: Type::Decimal { precision: 9, scale: 2 } },
                ]),
            ),
            (
                "Tuple(a Int8, `b, c` Tuple(d String))",
                Type::Tuple(vec![named("a", int(8)), named("b, c", Type::Tuple(vec![named("d", Type::String)]))]),
            ),
            ("Tuple()", Type::Tuple(vec![])),
            ("Nested(a Int8, b Bool)", Type::Nested(vec![named("a", int(8)), named("b", Type::Bool)])),
            ("JSON", Type::Json(String::new())),
            (
                "JSON(max_dynamic_paths=8, a.b UInt32, SKIP c)",
                Type::Json("max_dynamic_paths=8, a.b UInt32, SKIP c".into()),
            ),
            ("Object('json')", Type::Json("'json'".into())),
            ("Variant(Int8, String)", Type::Variant(vec![int(8), Type::String])),
            ("Dynamic(max_types=3)", Type::Dynamic),
            ("SimpleAggregateFunction(sum, Int64)", Type::Simple(boxed(int(64)))),
            (
                "AggregateFunction(quantiles(0.5, 0.9), UInt64)",
                Type::Aggregate("AggregateFunction(quantiles(0.5, 0.9), UInt64)".into()),
            ),
            ("IntervalDay", Type::Interval("IntervalDay".into())),
            ("Polygon", Type::Geo("Polygon".into())),
        ] {
            assert_eq!(Type::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_stays_as_text() {
        for text in
            ["Interval(1)", "QBit(Float32, 2)", "Int31", "Array(", "Array()", "Array(Int8, Int8)", "", "Decimal(9)"]
        {
            assert_eq!(Type::parse(text), Type::Opaque(text.into()), "{text}");
        }
        let deep = format!("{}Int8{}", "Array(".repeat(5_000), ")".repeat(5_000));
        assert!(matches!(Type::parse(&deep), Type::Array(_)), "and no depth of it harms");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[A-Za-z0-9'`\\\\(), =]{0,60}|.{0,20}") {
            drop(Type::parse(&text));
        }
    }
}
