//! Patterns of `like`: `%` any characters, `_` one, a backslash takes `%`, `_` and itself as they are. Pure.

use regex::bytes::{Regex, RegexBuilder};
use std::hash::{Hash, Hasher};

/// Most bytes that a pattern takes when it is made ready.
const MOST: usize = 1 << 20;

/// A pattern that can be matched in time linear in the text.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    text: Box<str>,
    regex: Regex,
}

impl Pattern {
    /// # Errors
    /// Why it is none.
    pub(super) fn new(text: &str) -> Result<Self, &'static str> {
        let mut source = String::from("^");
        let mut characters = text.chars();
        let plain = |source: &mut String, character: char| {
            source.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
        };
        while let Some(character) = characters.next() {
            match character {
                '%' => source.push_str(".*"),
                '_' => source.push('.'),
                '\\' => match characters.next() {
                    Some(taken @ ('%' | '_' | '\\')) => plain(&mut source, taken),
                    Some(other) => {
                        plain(&mut source, '\\');
                        plain(&mut source, other);
                    }
                    None => return Err("ends in a backslash that takes nothing"),
                },
                other => plain(&mut source, other),
            }
        }
        source.push('$');
        let regex = RegexBuilder::new(&source).dot_matches_new_line(true).size_limit(MOST).build();
        Ok(Self { text: text.into(), regex: regex.map_err(|_| "is too large a pattern")? })
    }

    /// Whether a text is like it. `None` for bytes that are no text.
    pub(super) fn matches(&self, text: &[u8]) -> Option<bool> {
        std::str::from_utf8(text).ok().map(|text| self.regex.is_match(text.as_bytes()))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_whole_texts_and_counts_characters() {
        for (pattern, text, expected) in [
            ("a%", "abc", true),
            ("a%", "bac", false),
            ("%b%", "abc", true),
            ("_", "é", true),
            ("__", "é", false),
            ("a_c", "a\nc", true),
            ("%", "", true),
            ("", "", true),
            ("", "a", false),
            ("100\\%", "100%", true),
            ("100\\%", "1000", false),
            ("a\\\\b", "a\\b", true),
            ("a\\b", "a\\b", true),
            ("a.c", "abc", false),
            ("A", "a", false),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().matches(text.as_bytes()), Some(expected), "{pattern} {text}");
        }
        assert_eq!(Pattern::new("%").unwrap().matches(b"\xff"), None);
        assert!(Pattern::new("a\\").is_err());
        assert!(Pattern::new(&"_".repeat(300_000)).is_err());
    }
}
