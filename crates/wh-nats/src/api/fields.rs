//! Picking fields out of JSON values.

use serde_json::Value;
use wh_types::Timestamp;

pub(super) fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A time; none where it is absent, and none for Go's zero time, which stands for "never".
pub(super) fn time(value: &Value, name: &str) -> Option<Timestamp> {
    let text = value.get(name)?.as_str()?;
    if text.starts_with("0001-") { None } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_times_are_none() {
        let value = serde_json::json!({"a": "0001-01-01T00:00:00Z", "b": "2026-01-01T00:00:00.5Z", "c": 1});
        assert_eq!(time(&value, "a"), None);
        assert_eq!(time(&value, "b").unwrap().to_string(), "2026-01-01T00:00:00.500000000Z");
        assert_eq!((time(&value, "c"), time(&value, "d")), (None, None));
    }
}
