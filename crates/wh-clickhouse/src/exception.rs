//! Finding an exception in headers, in the body of a bad answer, and behind the data of a good one.
//!
//! Three forms exist. A bad answer has `X-ClickHouse-Exception-Code` (since 19) and a body that begins with, or ends
//! in, `Code: N. DB::Exception: ...`. An answer that fails after its head was sent ends, since 25.11, in a block
//! between `__exception__` lines whose tag the head has named, and the connection is cut. Before that the text alone
//! was put behind the data.

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use wh_types::Secret;

/// Bytes of an exception's text that are looked at; ClickHouse itself stops at 16 KiB.
const TEXT_LIMIT: usize = 32 * 1024;
/// What is held back of an answer without a tag, in case its end turns out to be an exception.
const TAIL: usize = 16 * 1024;
const OPENING: &str = "__exception__\r\n";

/// An exception that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exception {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Exception {
    /// ClickHouse never prints a password; a proxy might.
    pub(crate) fn without(mut self, secret: Option<&Secret>) -> Self {
        if let Some(secret) = secret.filter(|secret| secret.expose().len() >= 4)
            && self.text.contains(secret.expose())
        {
            self.text = self.text.replace(secret.expose(), "***");
        }
        self
    }
}

/// Reads the digits of `Code: N` at the start of a text.
fn code_at(text: &str) -> Option<i32> {
    let rest = text.strip_prefix("Code: ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok().filter(|_| rest[digits..].starts_with(['.', ',']))
}

/// The exception in the body of a bad answer, whose code the head may have named. Data may stand before it: an answer
/// that fails while all of it is still in the server's buffer gets the right status and head, and keeps its data.
pub(crate) fn in_bad_answer(named: Option<i32>, body: &[u8]) -> Option<Exception> {
    let body = String::from_utf8_lossy(body);
    let at = match named {
        Some(code) => body.rfind(&format!("Code: {code}.")),
        None => Some(body.len() - body.trim_start().len()),
    };
    let text = at.map_or(&*body, |at| &body[at..]).trim();
    let code = named.or_else(|| code_at(text))?;
    Some(Exception { code, text: text.to_owned() })
}

/// Lets an answer's data pass and holds back what may be an exception.
#[derive(Debug)]
pub(crate) struct Scanner {
    mode: Mode,
    found: Option<BytesMut>,
}

#[derive(Debug)]
enum Mode {
    /// The head named a tag: an exception opens with exactly `opening`.
    Tagged { opening: Vec<u8>, tag: String, held: BytesMut },
    /// An older server.
    Plain { held: BytesMut },
}

impl Scanner {
    /// For an answer whose head named this tag, or none.
    pub(crate) fn new(tag: Option<&str>) -> Self {
        let held = BytesMut::new();
        let mode = match tag.filter(|tag| !tag.is_empty()) {
            Some(tag) => {
                Mode::Tagged { opening: format!("\r\n{OPENING}{tag}\r\n").into_bytes(), tag: tag.to_owned(), held }
            }
            None => Mode::Plain { held },
        };
        Self { mode, found: None }
    }

    /// Takes the next bytes and gives those that are data for certain.
    pub(crate) fn pass(&mut self, chunk: Bytes) -> Bytes {
        if let Some(found) = &mut self.found {
            let room = TEXT_LIMIT.saturating_sub(found.len()).min(chunk.len());
            found.extend_from_slice(&chunk[..room]);
            return Bytes::new();
        }
        match &mut self.mode {
            Mode::Tagged { opening, held, .. } => {
                let mut data = if held.is_empty() {
                    chunk
                } else {
                    held.extend_from_slice(&chunk);
                    held.split().freeze()
                };
                if let Some(at) = memmem::find(&data, opening) {
                    let text = data.split_off(at).slice(opening.len()..);
                    self.found = Some(BytesMut::from(&text[..text.len().min(TEXT_LIMIT)]));
                    return data;
                }
                let keep = unfinished(&data, opening);
                held.extend_from_slice(&data[data.len() - keep..]);
                data.truncate(data.len() - keep);
                data
            }
            Mode::Plain { held } => {
                held.extend_from_slice(&chunk);
                held.split_to(held.len().saturating_sub(TAIL)).freeze()
            }
        }
    }

    /// The answer ended (`clean`: as HTTP says it should). Gives the last of the data, or the exception.
    pub(crate) fn end(&mut self, clean: bool) -> Result<Bytes, Exception> {
        match &mut self.mode {
            Mode::Tagged { tag, held, .. } => match self.found.take() {
                Some(found) => {
                    let found = String::from_utf8_lossy(&found);
                    // behind the text: its length, the tag, the closing line
                    let text = found.rfind(&format!(" {tag}\r\n")).map_or(&*found, |at| &found[..at]);
                    let text = text.trim_end_matches(|c: char| c.is_ascii_digit()).trim();
                    Err(Exception { code: code_at(text).unwrap_or(0), text: text.to_owned() })
                }
                None => Ok(held.split().freeze()),
            },
            Mode::Plain { held } => {
                let held = held.split().freeze();
                match behind_data(&held, clean) {
                    Some(exception) => Err(exception),
                    None => Ok(held),
                }
            }
        }
    }
}

/// How many bytes at the end of `data` are a beginning of `opening`.
fn unfinished(data: &[u8], opening: &[u8]) -> usize {
    let most = data.len().min(opening.len() - 1);
    (1..=most).rev().find(|&n| data[data.len() - n..] == opening[..n]).unwrap_or(0)
}

/// An untagged exception at the end of data. After a clean end only one that closes the body as ClickHouse does, with
/// its version, so that stored texts of exceptions are not taken for one.
fn behind_data(tail: &[u8], clean: bool) -> Option<Exception> {
    let at = memmem::rfind_iter(tail, b"Code: ").find(|&at| {
        let text = String::from_utf8_lossy(&tail[at..tail.len().min(at + 64)]);
        (at == 0 || tail[at - 1] == b'\n') && code_at(&text).is_some() && text.contains("DB::Exception")
    })?;
    let text = String::from_utf8_lossy(&tail[at..]);
    let text = text.trim_end();
    if clean && !(text.ends_with(')') && text.contains("(version ")) {
        return None;
    }
    Some(Exception { code: code_at(text)?, text: text.to_owned() })
}

/// The row that an exception's text names, counted from 1: the last `(at row N)`, which ClickHouse adds behind any
/// quoted data, or `violated at row N` of a constraint.
pub(crate) fn row_hint(text: &str) -> Option<u64> {
    let number = |after: &str| {
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        after[..digits].parse().ok().filter(|row| *row > 0)
    };
    for lead in ["(at row ", "is violated at row "] {
        if let Some(at) = text.rfind(lead) {
            return number(&text[at + lead.len()..]);
        }
    }
    None
}

#[cfg(test)]
mod tests;
