//! Values that are texts: strings, UUIDs, addresses, names of enumerations.

use super::Verdict;
use crate::types::Type;
use std::{
    borrow::Cow,
    net::{Ipv4Addr, Ipv6Addr},
};

/// A string between its quotes, as ClickHouse reads it. `None` where it cannot: a high surrogate without its low one.
fn unescaped(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if memchr::memchr(b'\\', text).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let unit = |at: usize| {
        let hex = text.get(at..at + 6).filter(|hex| hex.starts_with(b"\\u"))?;
        u32::from_str_radix(std::str::from_utf8(&hex[2..]).ok()?, 16).ok()
    };
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if *byte != b'\\' {
            out.push(*byte);
            at += 1;
            continue;
        }
        let plain = match text.get(at + 1)? {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let first = unit(at)?;
                at += 6;
                let point = match first {
                    0xd800..=0xdbff => {
                        let second = unit(at).filter(|low| matches!(low, 0xdc00..=0xdfff))?;
                        at += 6;
                        0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    }
                    other => other,
                };
                match char::from_u32(point) {
                    Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                    // a low surrogate alone: three bytes that are no UTF-8, and are stored
                    None => out.extend_from_slice(b"\xed\xb0\x80"),
                }
                continue;
            }
            other => *other,
        };
        out.push(plain);
        at += 2;
    }
    Some(Cow::Owned(out))
}

const SURROGATE: &str = "has half a surrogate pair in it";

pub(super) fn string(ty: &Type, text: &[u8]) -> Verdict {
    let Some(plain) = unescaped(text) else { return Verdict::refuses(SURROGATE) };
    if let Type::FixedString(most) = ty
        && plain.len() as u64 > *most
    {
        return Verdict::Refuses(format!("has {} bytes, more than {most}", plain.len()).into());
    }
    Verdict::Takes
}

pub(super) fn uuid(text: &[u8]) -> Verdict {
    let hex = |part: &[u8]| part.iter().all(u8::is_ascii_hexdigit);
    let dashed = |text: &[u8; 36]| {
        text.iter().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
    };
    let good = text.len() == 32 && hex(text) || text.first_chunk().is_some_and(dashed) && text.len() == 36;
    if good { Verdict::Takes } else { Verdict::refuses("is no UUID") }
}

const NO_ADDRESS: &str = "is no IP address";

pub(super) fn ipv4(text: &[u8]) -> Verdict {
    let plain = std::str::from_utf8(text).unwrap_or_default();
    if plain.parse::<Ipv4Addr>().is_ok() {
        return Verdict::Takes;
    }
    // zeros in front are read, more or fewer
    let padded = text.iter().all(|b| b.is_ascii_digit() || *b == b'.') && plain.split('.').count() == 4;
    if padded { Verdict::CannotTell } else { Verdict::refuses(NO_ADDRESS) }
}

pub(super) fn ipv6(text: &[u8]) -> Verdict {
    let plain = std::str::from_utf8(text).unwrap_or_default();
    if plain.parse::<Ipv6Addr>().is_ok() || plain.parse::<Ipv4Addr>().is_ok() {
        return Verdict::Takes;
    }
    let near = !plain.is_empty()
        && text.iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b'.' | b':'))
        && text.contains(&b'.');
    if near { Verdict::CannotTell } else { Verdict::refuses(NO_ADDRESS) }
}

const NO_NAME: &str = "is not in the enumeration";

pub(super) fn enum_number(bits: u16, values: &[(String, i16)], value: &[u8]) -> Verdict {
    let number: Option<i64> = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    let Some(number) = number else { return Verdict::alters("is out of range") };
    let fits = if bits == 8 { i8::try_from(number).is_ok() } else { i16::try_from(number).is_ok() };
    if values.iter().any(|(_, own)| i64::from(*own) == number) {
        Verdict::Takes
    } else if fits {
        Verdict::refuses(NO_NAME)
    } else {
        Verdict::alters("is out of range")
    }
}

pub(super) fn enum_name(values: &[(String, i16)], text: &[u8]) -> Verdict {
    let Some(name) = unescaped(text) else { return Verdict::refuses(SURROGATE) };
    if values.iter().any(|(own, _)| own.as_bytes() == &*name) {
        return Verdict::Takes;
    }
    match std::str::from_utf8(&name).ok().and_then(|text| text.parse::<i64>().ok()) {
        Some(number) if values.iter().any(|(_, own)| i64::from(*own) == number) => Verdict::CannotTell,
        Some(_) => Verdict::CannotTell,
        None => Verdict::refuses(NO_NAME),
    }
}
