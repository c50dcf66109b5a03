//! A strict pull scanner over one JSON text (RFC 8259). Checks syntax to the last byte; converts nothing.

use std::{fmt, ops::Range};
use wh_clickhouse::types::JsonKind;

/// Deepest nesting of arrays and objects in a record, the record itself counted.
pub(crate) const MAX_DEPTH: u32 = 128;

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The text ends inside a value.
    Truncated,
    /// Something else was due here.
    Expected(&'static str),
    /// A control character inside a string.
    Control,
    /// A backslash that begins no escape.
    Escape,
    /// Deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// A syntax error and its offset in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) what: What,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Truncated => write!(f, "the JSON text ends too early, at byte {}", self.at),
            What::Expected(what) => write!(f, "expected {what} at byte {}", self.at),
            What::Control => write!(f, "a control character inside a string must be escaped, at byte {}", self.at),
            What::Escape => write!(f, "invalid escape in a string at byte {}", self.at),
            What::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels at byte {}", self.at),
        }
    }
}

/// A string without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) span: Range<usize>,
    /// Whether it holds a backslash.
    pub(crate) escaped: bool,
}

/// A value: its kind and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) kind: JsonKind,
    pub(crate) span: Range<usize>,
}

/// Reads one text from front to back.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    spaced: bool,
}

type Result<T> = std::result::Result<T, Fault>;

impl<'a> Scanner<'a> {
    /// Begins at an offset; offsets in answers count from the start of `text`.
    pub(crate) fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at, spaced: false }
    }

    /// Where it stands.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// What it reads.
    pub(crate) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Whether white space was skipped since the last call.
    pub(crate) fn take_spaced(&mut self) -> bool {
        std::mem::take(&mut self.spaced)
    }

    /// The next byte, white space skipped.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => {
                    self.spaced = true;
                    self.at += 1;
                }
                other => return other.copied(),
            }
        }
    }

    /// Takes `byte` if it is the next one, white space skipped.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// The error that something else was due here.
    #[cold]
    pub(crate) fn expected(&self, what: &'static str) -> Fault {
        if self.at >= self.text.len() { self.fault(What::Truncated) } else { self.fault(What::Expected(what)) }
    }

    #[cold]
    fn fault(&self, what: What) -> Fault {
        Fault { at: self.at, what }
    }

    /// The key of an object's next member and its colon; `None` at the closing brace. `first` right after `{`.
    #[inline]
    pub(crate) fn key(&mut self, first: bool) -> Result<Option<Text>> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !first => {
                self.at += 1;
                if self.peek() != Some(b'"') {
                    return Err(self.expected("a key in quotes"));
                }
            }
            Some(b'"') if first => {}
            _ => return Err(self.expected(if first { "a key in quotes or '}'" } else { "',' or '}'" })),
        }
        let key = self.string()?;
        if self.take(b':') { Ok(Some(key)) } else { Err(self.expected("':'")) }
    }

    /// Whether an array has a next element, which is then next. `first` right after `[`.
    #[inline]
    pub(crate) fn element(&mut self, first: bool) -> Result<bool> {
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if first => Ok(true),
            _ => Err(self.expected("',' or ']'")),
        }
    }

    /// The next value. `depth` counts the arrays and objects around it.
    #[inline]
    pub(crate) fn value(&mut self, depth: u32) -> Result<Value> {
        let first = self.peek();
        let start = self.at;
        let kind = match first {
            Some(b'"') => self.string().map(|_| JsonKind::String)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b't') => self.word(b"true", JsonKind::Bool)?,
            Some(b'f') => self.word(b"false", JsonKind::Bool)?,
            Some(b'n') => self.word(b"null", JsonKind::Null)?,
            _ => return Err(self.expected("a value")),
        };
        Ok(Value { kind, span: start..self.at })
    }

    fn object(&mut self, depth: u32) -> Result<JsonKind> {
        if depth >= MAX_DEPTH {
            return Err(self.fault(What::TooDeep));
        }
        self.at += 1;
        let mut first = true;
        while self.key(first)?.is_some() {
            first = false;
            self.value(depth + 1)?;
        }
        Ok(JsonKind::Object)
    }

    fn array(&mut self, depth: u32) -> Result<JsonKind> {
        if depth >= MAX_DEPTH {
            return Err(self.fault(What::TooDeep));
        }
        self.at += 1;
        let mut first = true;
        while self.element(first)? {
            first = false;
            self.value(depth + 1)?;
        }
        Ok(JsonKind::Array)
    }

    #[inline]
    fn word(&mut self, word: &'static [u8], kind: JsonKind) -> Result<JsonKind> {
        let rest = &self.text[self.at..];
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(kind);
        }
        if word.starts_with(rest) {
            self.at = self.text.len();
        }
        Err(self.expected("true, false or null"))
    }

    #[inline]
    fn number(&mut self) -> Result<JsonKind> {
        self.at += usize::from(self.text[self.at] == b'-');
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.expected("a digit")),
        }
        let mut kind = JsonKind::Integer;
        if self.text.get(self.at) == Some(&b'.') {
            kind = JsonKind::Float;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            kind = JsonKind::Float;
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(kind)
    }

    #[inline]
    fn digits(&mut self) -> Result<()> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { Err(self.expected("a digit")) } else { Ok(()) }
    }

    /// A string from its opening quote on.
    #[inline]
    fn string(&mut self) -> Result<Text> {
        let start = self.at + 1;
        self.at = start;
        let mut escaped = false;
        loop {
            self.at = plain_until(self.text, self.at);
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Text { span: start..self.at - 1, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.fault(What::Control)),
                None => return Err(self.fault(What::Truncated)),
            }
        }
    }

    fn escape(&mut self) -> Result<()> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => match self.text.get(self.at + 2..self.at + 6) {
                Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => {
                    self.at += 6;
                    Ok(())
                }
                Some(_) => Err(self.fault(What::Escape)),
                None => {
                    self.at = self.text.len();
                    Err(self.fault(What::Truncated))
                }
            },
            Some(_) => Err(self.fault(What::Escape)),
            None => {
                self.at += 1;
                Err(self.fault(What::Truncated))
            }
        }
    }
}

/// The first byte at or after `at` that a string does not simply hold: a quote, a backslash or a control character.
/// Eight bytes at a time: `flags` has the high bit of each such byte set (a byte above a set one may be wrong, the
/// lowest never is).
#[inline]
pub(crate) fn plain_until(text: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    while let Some(chunk) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let (quote, slash) = (word ^ (ONES * b'"' as u64), word ^ (ONES * b'\\' as u64));
        let zero = |x: u64| x.wrapping_sub(ONES) & !x;
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let flags = (zero(quote) | zero(slash) | control) & HIGHS;
        if flags != 0 {
            return at + (flags.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while text.get(at).is_some_and(|b| *b >= 0x20 && !matches!(b, b'"' | b'\\')) {
        at += 1;
    }
    at
}
