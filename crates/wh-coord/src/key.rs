//! The name of a lease.

use crate::{Error, Kind, Result};
use std::{fmt, sync::Arc};

/// Most bytes of a key.
const LONGEST: usize = 64;

/// Dotted words of `a-z`, `0-9`, `_` and `-`, at most 64 bytes: `sweeper`, `ingest.m3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// Checks a key.
    ///
    /// # Errors
    /// Invalid, saying what is wrong.
    pub fn new(text: &str) -> Result<Self> {
        let word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
        };
        if text.len() <= LONGEST && text.split('.').all(word) {
            return Ok(Self(text.into()));
        }
        let why = "a lease's key is dotted words of a-z, 0-9, _ and -, at most 64 bytes";
        Err(Error::new("lease key", Kind::Invalid(why.into())))
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last word, where this key is one step below `prefix`.
    #[must_use]
    pub fn below<'a>(&'a self, prefix: &Self) -> Option<&'a str> {
        let rest = self.0.strip_prefix(&*prefix.0)?.strip_prefix('.')?;
        (!rest.contains('.')).then_some(rest)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_dotted_words() {
        for good in ["sweeper", "ingest.m0", "a.b.c", "x_1-2", &"k".repeat(64)] {
            assert_eq!(Key::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "a.", ".a", "a..b", "A", "a b", "a*", "a>", "ä", &"k".repeat(65)] {
            assert!(Key::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_one_step_below_a_prefix_counts() {
        let prefix = Key::new("ingest").unwrap();
        let below = |text: &str| Key::new(text).unwrap().below(&prefix).map(str::to_owned);
        assert_eq!(below("ingest.m3"), Some("m3".to_owned()));
        for other in ["ingest", "ingestion.m3", "ingest.m3.x", "sweeper"] {
            assert_eq!(below(other), None, "{other}");
        }
    }
}
