//! A configuration as a server answers it: every field, also those we do not know.

use serde_json::{Map, Value};
use std::time::Duration;

/// JetStream's fields by name. A field that is absent reads as its type's zero, as JetStream leaves zeros out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Takes an object; anything else has no fields.
    #[must_use]
    pub fn new(value: Value) -> Self {
        if let Value::Object(map) = value { Self(map) } else { Self::default() }
    }

    /// The field as it was answered, null where it was not.
    #[must_use]
    pub fn get(&self, field: &str) -> &Value {
        self.0.get(field).unwrap_or(&Value::Null)
    }

    /// Puts a field in place.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.0.insert(field.to_owned(), value.into());
    }

    /// Takes a field away.
    pub fn unset(&mut self, field: &str) {
        self.0.remove(field);
    }

    /// A text.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.get(field).as_str().unwrap_or("")
    }

    /// A number.
    #[must_use]
    pub fn int(&self, field: &str) -> i64 {
        self.get(field).as_i64().unwrap_or(0)
    }

    /// A flag.
    #[must_use]
    pub fn flag(&self, field: &str) -> bool {
        self.get(field).as_bool().unwrap_or(false)
    }

    /// A span, which JetStream counts in nanoseconds.
    #[must_use]
    pub fn span(&self, field: &str) -> Duration {
        Duration::from_nanos(self.get(field).as_u64().unwrap_or(0))
    }

    /// A list of texts.
    #[must_use]
    pub fn texts(&self, field: &str) -> Vec<&str> {
        self.get(field).as_array().map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }

    /// A text inside an object, such as one key of the metadata.
    #[must_use]
    pub fn inner(&self, field: &str, key: &str) -> Option<&str> {
        self.get(field).get(key)?.as_str()
    }

    /// Whether the field says anything: it is there, and not zero, false, null or empty.
    #[must_use]
    pub fn is_set(&self, field: &str) -> bool {
        !is_zero(self.get(field))
    }
}

/// What JetStream may leave out.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        // the zero time of Go
        Value::String(text) => text.is_empty() || text.starts_with("0001-01-01T"),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// A value as a person reads it.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Null | Value::String(_) => "unset".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
