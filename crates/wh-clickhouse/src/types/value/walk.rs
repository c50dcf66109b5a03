//! Walking over the parts of valid JSON. Checks nothing.

use crate::types::JsonKind;
use std::ops::Range;

/// The members of an array or object, in order.
#[derive(Debug)]
pub(super) struct Parts<'t> {
    text: &'t [u8],
    at: usize,
    end: usize,
    keyed: bool,
}

/// One member: its key (with quotes) in an object, its value.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) key: Option<Range<usize>>,
    pub(super) value: Range<usize>,
    pub(super) kind: JsonKind,
}

impl<'t> Parts<'t> {
    /// Of the array or object at `span`.
    pub(super) fn of(text: &'t [u8], span: &Range<usize>) -> Self {
        let keyed = text.get(span.start) == Some(&b'{');
        Self { text, at: span.start + 1, end: span.end.saturating_sub(1), keyed }
    }

    fn skip(&mut self) {
        while self.at < self.end && matches!(self.text[self.at], b' ' | b'\t' | b'\n' | b'\r' | b',' | b':') {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Range<usize> {
        let start = self.at;
        match self.text[start] {
            b'"' => self.string(),
            b'[' | b'{' => {
                let mut open = 0_usize;
                while self.at < self.end {
                    match self.text[self.at] {
                        b'"' => {
                            self.string();
                            continue;
                        }
                        b'[' | b'{' => open += 1,
                        b']' | b'}' => open -= 1,
                        _ => {}
                    }
                    self.at += 1;
                    if open == 0 {
                        break;
                    }
                }
            }
            _ => {
                while self.at < self.end
                    && !matches!(self.text[self.at], b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}')
                {
                    self.at += 1;
                }
            }
        }
        start..self.at
    }

    fn string(&mut self) {
        self.at += 1;
        while self.at < self.end {
            match self.text[self.at] {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }
}

impl Iterator for Parts<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        self.skip();
        if self.at >= self.end {
            return None;
        }
        let key = self.keyed.then(|| self.value());
        self.skip();
        if self.at >= self.end {
            return None;
        }
        let value = self.value();
        let kind = JsonKind::of(&self.text[value.clone()])?;
        Some(Part { key, value, kind })
    }
}

/// Whether there is white space between the tokens of this.
pub(super) fn spaced(json: &[u8]) -> bool {
    let mut at = 0;
    let mut string = false;
    while let Some(byte) = json.get(at) {
        match byte {
            b'\\' if string => at += 1,
            b'"' => string = !string,
            b' ' | b'\t' | b'\n' | b'\r' if !string => return true,
            _ => {}
        }
        at += 1;
    }
    false
}
