//! A table's name. Not its schema.

use std::{fmt, str::FromStr, sync::Arc};

/// A ClickHouse table name: any UTF-8 text without NUL, 1–[`Table::MAX_BYTES`] bytes. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table(Arc<str>);

/// Why a text is no table name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The text is empty.
    #[error("a table name must not be empty")]
    Empty,
    /// The text is longer than any name ClickHouse can store.
    #[error("a table name has at most {max} bytes, this one has {0}", max = Table::MAX_BYTES)]
    TooLong(usize),
    /// The text has a NUL.
    #[error("a table name must not hold a NUL character")]
    Nul,
}

impl Table {
    /// Longest table name, in bytes: ClickHouse escapes a name into a file name of at most 255 bytes.
    pub const MAX_BYTES: usize = 255;

    /// Checks the bounds.
    ///
    /// # Errors
    /// A [`TableError`] that names what is wrong.
    pub fn new(text: &str) -> Result<Self, TableError> {
        if text.is_empty() {
            return Err(TableError::Empty);
        }
        if text.len() > Self::MAX_BYTES {
            return Err(TableError::TooLong(text.len()));
        }
        if text.contains('\0') {
            return Err(TableError::Nul);
        }
        Ok(Self(text.into()))
    }

    /// The name as text, unescaped.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Table {
    type Err = TableError;
    fn from_str(text: &str) -> Result<Self, TableError> {
        Self::new(text)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_clickhouse_takes_is_taken() {
        for name in ["clicks", "a.b*c> d%e", "événements", " "] {
            assert_eq!(Table::new(name).unwrap().as_str(), name);
        }
        assert_eq!(Table::new(""), Err(TableError::Empty));
        assert_eq!(Table::new("a\0b"), Err(TableError::Nul));
        assert_eq!(Table::new(&"x".repeat(256)), Err(TableError::TooLong(256)));
    }
}
