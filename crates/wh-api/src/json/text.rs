//! Texts made of a record's own text: without insignificant white space, and strings unescaped.

use super::scan::plain_until;
use std::{borrow::Cow, ops::Range};
use wh_clickhouse::types::{Edit, Edited};

/// Appends checked JSON without the white space between its tokens, and with the values in `edits` (in order) written
/// as those say. Everything else stays byte for byte.
pub(crate) fn push_compact(out: &mut Vec<u8>, json: &[u8], span: Range<usize>, edits: &[Edited]) {
    let mut at = span.start;
    for (place, edit) in edits {
        push_unspaced(out, &json[at..place.start]);
        let value = &json[place.clone()];
        match edit {
            Edit::Seconds => push_seconds(out, value),
            Edit::Text => push_quoted(out, value),
            Edit::Verbatim => out.extend(value.iter().map(|b| if *b == b'\n' { b' ' } else { *b })),
        }
        at = place.end;
    }
    push_unspaced(out, &json[at..span.end]);
}

/// A bare number in quotes, its whole part padded to ten digits: fewer would be read as a year, a month or a day. A
/// sign or an exponent stays as it is, for ClickHouse to refuse.
fn push_seconds(out: &mut Vec<u8>, number: &[u8]) {
    let digits = number.iter().take_while(|b| b.is_ascii_digit()).count();
    let plain = number[digits..].iter().all(|b| *b == b'.' || b.is_ascii_digit());
    out.push(b'"');
    if plain && digits > 0 {
        out.extend(std::iter::repeat_n(b'0', 10_usize.saturating_sub(digits)));
    }
    out.extend_from_slice(number);
    out.push(b'"');
}

/// A text as a JSON string.
fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            // valid JSON has no other control character
            other => out.push(*other),
        }
    }
    out.push(b'"');
}

fn push_unspaced(out: &mut Vec<u8>, json: &[u8]) {
    let mut kept = 0;
    let mut at = 0;
    while at < json.len() {
        match json[at] {
            b'"' => at = after_string(json, at),
            b' ' | b'\t' | b'\n' | b'\r' => {
                out.extend_from_slice(&json[kept..at]);
                at += 1;
                kept = at;
            }
            _ => at += 1,
        }
    }
    out.extend_from_slice(&json[kept..]);
}

/// The offset behind the string whose opening quote is at `at`.
fn after_string(json: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        at = plain_until(json, at);
        match json.get(at) {
            Some(b'"') => return at + 1,
            // a character after it is part of the escape
            Some(_) => at += 2,
            None => return json.len(),
        }
    }
}

/// A checked string without its quotes, unescaped. A lone surrogate becomes U+FFFD: no column's name has one.
pub(crate) fn unescape(text: &[u8], escaped: bool) -> Cow<'_, [u8]> {
    if !escaped {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            out.push(text[at]);
            at += 1;
            continue;
        }
        let plain = match text[at + 1] {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (character, used) = unicode(&text[at..]);
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at += used;
                continue;
            }
            other => other,
        };
        out.push(plain);
        at += 2;
    }
    Cow::Owned(out)
}

/// Whether a checked string, given without its quotes, has half of a surrogate pair in it: that is no text, and no two of
/// them can be told apart once they are unescaped.
pub(crate) fn has_half_a_pair(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
        at += found;
        if text.get(at + 1) == Some(&b'u') {
            let (character, used) = unicode(&text[at..]);
            if character == char::REPLACEMENT_CHARACTER && !text[at + 2..at + 6].eq_ignore_ascii_case(b"fffd") {
                return true;
            }
            at += used;
        } else {
            at += 2;
        }
    }
    false
}

/// The character that `\uXXXX` (or a pair of surrogates) at the start stands for, and the bytes it takes.
fn unicode(text: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let hex = text.get(at..at + 6).filter(|hex| hex.starts_with(b"\\u"))?;
        u16::from_str_radix(std::str::from_utf8(&hex[2..]).ok()?, 16).ok()
    };
    let Some(first) = unit(0) else { return (char::REPLACEMENT_CHARACTER, 6) };
    let pair = unit(6).and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    match (char::from_u32(first.into()), pair) {
        (Some(character), _) => (character, 6),
        (None, Some(character)) => (character, 12),
        (None, None) => (char::REPLACEMENT_CHARACTER, 6),
    }
}
