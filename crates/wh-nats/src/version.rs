//! A server's version.

use std::fmt;

/// A server's version: numbers to compare, and the text it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    text: String,
    numbers: Option<(u32, u32, u32)>,
}

impl Version {
    /// Reads `2.14.6`, also with something behind it. Text that is none of this has no numbers.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let head = text.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
        let mut parts = head.split('.').map(|part| part.parse::<u32>().ok());
        let mut part = || parts.next().flatten();
        let numbers = (|| Some((part()?, part()?, part()?)))();
        Self { text: text.to_owned(), numbers }
    }

    /// Major, minor, patch.
    #[must_use]
    pub fn numbers(&self) -> Option<(u32, u32, u32)> {
        self.numbers
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_where_they_are() {
        for (text, numbers) in [
            ("2.14.6", Some((2, 14, 6))),
            ("v2.15.0-RC.1", Some((2, 15, 0))),
            ("2.16.0+build", Some((2, 16, 0))),
            ("2.14", None),
            ("", None),
            ("new", None),
        ] {
            let version = Version::read(text);
            assert_eq!((version.numbers(), version.to_string()), (numbers, text.to_owned()));
        }
    }
}
