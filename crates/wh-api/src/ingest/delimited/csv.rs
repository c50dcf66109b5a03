//! One record of CSV (RFC 4180), strict where quotes are concerned: behind a wrong quote nobody knows where a record
//! ends, so such a body is refused whole.
//!
//! White space around a cell and its quotes does not count, as for ClickHouse.

use super::split::{Cells, Form, until};
use memchr::memchr;

/// Why the rest of a body cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) at: usize,
    pub(super) why: &'static str,
}

/// Reads the record that begins at `at`; gives where the next one does.
pub(super) fn record(body: &[u8], mut at: usize, cells: &mut Cells) -> Result<usize, Broken> {
    cells.clear();
    loop {
        at = after_blanks(body, at);
        at = if body.get(at) == Some(&b'"') { quoted(body, at, cells)? } else { bare(body, at, cells) };
        match body.get(at) {
            Some(b',') => at += 1,
            Some(b'\n') => return Ok(at + 1),
            Some(b'\r') if body.get(at + 1) == Some(&b'\n') => return Ok(at + 2),
            Some(b'\r') => {
                return Err(Broken { at, why: "a carriage return without a line feed stands outside quotes" });
            }
            Some(_) => return Err(Broken { at, why: "something follows the closing quote of a cell" }),
            None => return Ok(at),
        }
    }
}

#[inline]
fn bare(body: &[u8], start: usize, cells: &mut Cells) -> usize {
    let end = until(body, start, [b',', b'\n', b'\r']);
    let mut last = end;
    while last > start && matches!(body[last - 1], b' ' | b'\t') {
        last -= 1;
    }
    let form = match &body[start..last] {
        b"" => Form::Empty,
        b"\\N" => Form::Null,
        _ => Form::Bare,
    };
    cells.push(start..last, form);
    end
}

fn quoted(body: &[u8], open: usize, cells: &mut Cells) -> Result<usize, Broken> {
    let start = open + 1;
    let (mut at, mut doubled) = (start, false);
    let close = loop {
        let Some(found) = memchr(b'"', &body[at..]) else {
            return Err(Broken { at: open, why: "the quote of a cell is never closed" });
        };
        at += found + 1;
        if body.get(at) != Some(&b'"') {
            break at - 1;
        }
        doubled = true;
        at += 1;
    };
    if doubled {
        cells.push_own(Form::Quoted, |out| {
            let mut rest = &body[start..close];
            while let Some(found) = memchr(b'"', rest) {
                out.extend_from_slice(&rest[..=found]);
                rest = &rest[found + 2..];
            }
            out.extend_from_slice(rest);
        });
    } else {
        cells.push(start..close, Form::Quoted);
    }
    Ok(after_blanks(body, close + 1))
}

#[inline]
fn after_blanks(body: &[u8], mut at: usize) -> usize {
    while matches!(body.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}
