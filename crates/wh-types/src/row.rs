//! One record's own text. Not parsed, not typed.

use bytes::Bytes;
use std::fmt;

/// One JSON object on one line, exactly as it was received but for insignificant white space (decision D2).
///
/// Holds no line end. Whoever makes one has checked the JSON; `Row` itself promises only "one line".
#[derive(Clone, PartialEq, Eq)]
pub struct Row(Bytes);

impl Row {
    /// Takes checked text. A line feed inside would split the row in two, so it is refused.
    ///
    /// # Errors
    /// Gives the bytes back when they hold a line feed or nothing.
    pub fn new(text: Bytes) -> Result<Self, Bytes> {
        if text.is_empty() || text.contains(&b'\n') { Err(text) } else { Ok(Self(text)) }
    }

    /// The text, without a line end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, without a line end.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line() {
        assert_eq!(Row::new(Bytes::from_static(b"{}")).unwrap().as_bytes(), b"{}");
        assert!(Row::new(Bytes::from_static(b"{\n}")).is_err());
        assert!(Row::new(Bytes::new()).is_err());
    }
}
