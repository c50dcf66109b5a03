//! Headers of a message that is sent.
//!
//! They are written as they go over the wire, in one text, which the vendor's map of names and lists of texts gets as the
//! value of the first: that map was a large part of what a small message costs here.

use async_nats::{HeaderMap, HeaderName, HeaderValue};
use serde::{
    Deserialize as _,
    de::{IntoDeserializer as _, value::StringDeserializer},
};
use std::fmt::{self, Write as _};

/// Names and values. A name may have several values, which keep their order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// The first name; empty where there is none.
    first: &'static str,
    /// Its value; then, for each other header, a line end, the name, a colon, a space and the value.
    text: String,
}

const LINE_END: &str = "\r\n";

impl Headers {
    /// No headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// No headers yet, with room for so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { first: "", text: String::with_capacity(bytes) }
    }

    /// Adds a header, or another value of one. `name` is one of ours: letters, digits and hyphens. Line ends in a value
    /// become spaces, so that no value can bring headers of its own.
    pub fn append(&mut self, name: &'static str, value: impl fmt::Display) {
        if self.first.is_empty() {
            self.first = name;
        } else {
            self.text.extend([LINE_END, name, ": "]);
        }
        let start = self.text.len();
        // a text takes all that is written to it
        _ = write!(self.text, "{value}");
        if self.text.as_bytes()[start..].iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            let clean = self.text[start..].replace(['\r', '\n'], " ");
            self.text.replace_range(start.., &clean);
        }
    }

    /// Every header with every value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut lines = self.text.split(LINE_END);
        let first = lines.next().filter(|_| !self.is_empty()).map(|value| (self.first, value));
        first.into_iter().chain(lines.filter_map(|line| line.split_once(": ")))
    }

    /// The last value of a header.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().filter(|(other, _)| *other == name).last().map(|(_, value)| value)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    pub(crate) fn into_map(self) -> HeaderMap {
        let mut map = HeaderMap::new();
        if !self.is_empty() {
            map.insert(HeaderName::from_static(self.first), lines(self.text));
        }
        map
    }
}

/// A value with line ends in it, which a value is made without otherwise. Each was cleaned of its own.
fn lines(text: String) -> HeaderValue {
    let text: StringDeserializer<serde::de::value::Error> = text.into_deserializer();
    HeaderValue::deserialize(text).unwrap_or_default()
}

impl<V: fmt::Display> FromIterator<(&'static str, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (&'static str, V)>>(pairs: I) -> Self {
        let mut headers = Self::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_bring_headers_of_its_own() {
        let mut headers: Headers = [("Wh-Format", "1"), ("Wh-Reason", "a\r\nNats-Msg-Id: x")].into_iter().collect();
        headers.append("Wh-Format", 2);
        assert_eq!((headers.get("Wh-Format"), headers.get("Nats-Msg-Id")), (Some("2"), None));
        assert_eq!(headers.get("Wh-Reason"), Some("a  Nats-Msg-Id: x"));
        headers.append("Wh-Code", "\nx: y\r");
        assert_eq!(headers.get("Wh-Code"), Some(" x: y "));
        assert_eq!(
            format!("{headers:?}"),
            r#"{"Wh-Format": "1", "Wh-Reason": "a  Nats-Msg-Id: x", "Wh-Format": "2", "Wh-Code": " x: y "}"#
        );
    }

    #[test]
    fn what_goes_over_the_wire_is_a_line_each() {
        let mut headers = Headers::with_capacity(64);
        assert!(headers.is_empty() && headers.iter().next().is_none() && headers.clone().into_map().is_empty());
        headers.append("A", "");
        headers.append("B", 7);
        let map = headers.into_map();
        let only = map.iter().next().map(|(name, values)| (name.to_string(), values[0].as_str().to_owned()));
        assert_eq!(only, Some(("A".to_owned(), "\r\nB: 7".to_owned())));
    }
}
