//! One record of TSV: a line is a record whatever it holds, since tabs and line feeds inside a cell are escaped.

use super::split::{Cells, Form, until};
use memchr::memchr;

/// Reads the line that begins at `at`; gives where the next one does.
pub(super) fn record(body: &[u8], at: usize, cells: &mut Cells) -> usize {
    cells.clear();
    let mut start = at;
    loop {
        let (mut end, mut escaped) = (start, false);
        let stop = loop {
            end = until(body, end, [b'\t', b'\n', b'\\']);
            match body.get(end) {
                Some(b'\\') => {
                    escaped = true;
                    end += 1;
                }
                stop => break stop,
            }
        };
        if stop == Some(&b'\t') {
            cell(body, start..end, escaped, cells);
            start = end + 1;
            continue;
        }
        let last = if end > start && body[end - 1] == b'\r' { end - 1 } else { end };
        cell(body, start..last, escaped, cells);
        return (end + 1).min(body.len());
    }
}

#[inline]
fn cell(body: &[u8], span: std::ops::Range<usize>, escaped: bool, cells: &mut Cells) {
    match &body[span.clone()] {
        b"" => cells.push(span, Form::Empty),
        b"\\N" => cells.push(span, Form::Null),
        text if escaped => cells.push_own(Form::Bare, |out| unescape(text, out)),
        _ => cells.push(span, Form::Bare),
    }
}

/// Resolves escapes as ClickHouse does. A backslash that begins none of them stays, with what follows it.
fn unescape(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(found) = memchr(b'\\', text) {
        out.extend_from_slice(&text[..found]);
        text = &text[found + 1..];
        let Some((letter, rest)) = text.split_first() else {
            out.push(b'\\');
            return;
        };
        text = rest;
        match letter {
            b'a' => out.push(0x07),
            b'b' => out.push(0x08),
            b'e' => out.push(0x1b),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(0x0b),
            b'0' => out.push(0),
            b'N' => {}
            b'\\' | b'\'' | b'"' | b'`' | b'/' | b'=' => out.push(*letter),
            b'x' => {
                let byte = rest.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
                match byte {
                    Some(byte) if rest[0] != b'+' => {
                        out.push(byte);
                        text = &rest[2..];
                    }
                    _ => out.extend_from_slice(b"\\x"),
                }
            }
            other => out.extend_from_slice(&[b'\\', *other]),
        }
    }
    out.extend_from_slice(text);
}
