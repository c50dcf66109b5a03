//! Headers of a message that is sent.

use async_nats::{HeaderMap, HeaderValue};
use std::fmt;

/// Names and values. A name may have several values, which keep their order.
#[derive(Clone, Default, PartialEq)]
pub struct Headers(HeaderMap);

impl Headers {
    /// No headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a header, in place of all it had. `name` is one of ours: letters, digits and hyphens. Line ends in a value
    /// become spaces, so that no value can bring headers of its own.
    pub fn insert(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.insert(name, clean(value.into()));
    }

    /// Adds a value to a header.
    pub fn append(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.append(name, clean(value.into()));
    }

    /// The last value of a header.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get_last(name).map(HeaderValue::as_str)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_map(self) -> HeaderMap {
        self.0
    }
}

fn clean(value: String) -> HeaderValue {
    if value.contains(['\r', '\n']) { value.replace(['\r', '\n'], " ").into() } else { value.into() }
}

impl<V: Into<String>> FromIterator<(&'static str, V)> for Headers {
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
        let pairs = self.0.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value.as_str())));
        f.debug_map().entries(pairs).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_bring_headers_of_its_own() {
        let mut headers: Headers = [("Wh-Format", "1"), ("Wh-Reason", "a\r\nNats-Msg-Id: x")].into_iter().collect();
        headers.append("Wh-Format", "2");
        assert_eq!((headers.get("Wh-Format"), headers.get("Nats-Msg-Id")), (Some("2"), None));
        assert_eq!(headers.get("Wh-Reason"), Some("a  Nats-Msg-Id: x"));
        headers.insert("Wh-Format", "3");
        assert_eq!(headers.get("Wh-Format"), Some("3"));
        assert!(!headers.is_empty() && Headers::new().is_empty());
    }
}
