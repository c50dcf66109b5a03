//! Texts made of a record's own text: without insignificant white space, and strings unescaped.

use std::{borrow::Cow, ops::Range};

/// Appends checked JSON without the white space between its tokens, and with quotes around the spans in `quote`
/// (numbers, in order). Everything else stays byte for byte.
pub(crate) fn push_compact(out: &mut Vec<u8>, json: &[u8], span: Range<usize>, quote: &[Range<usize>]) {
    let mut at = span.start;
    for number in quote {
        push_unspaced(out, &json[at..number.start]);
        out.push(b'"');
        out.extend_from_slice(&json[number.clone()]);
        out.push(b'"');
        at = number.end;
    }
    push_unspaced(out, &json[at..span.end]);
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
    while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at..]) {
        at += found + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    json.len()
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
