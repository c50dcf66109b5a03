//! Which type each field that is looked at has. A text where a number belongs would read as zero, and so as right.

use serde_json::{Map, Value};

/// A type of JetStream's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// A whole number; spans are nanoseconds.
    Whole,
    Flag,
    Texts,
    Wholes,
    Object,
    Objects,
    /// An object whose values are texts.
    TextMap,
}

use Kind::{Flag, Object, Objects, Text, TextMap, Texts, Whole, Wholes};

/// Of a stream's configuration.
pub(super) const STREAM: &[(&str, Kind)] = &[
    ("name", Text),
    ("subjects", Texts),
    ("retention", Text),
    ("discard", Text),
    ("discard_new_per_subject", Flag),
    ("max_bytes", Whole),
    ("max_msgs", Whole),
    ("max_msgs_per_subject", Whole),
    ("max_msg_size", Whole),
    ("max_consumers", Whole),
    ("max_age", Whole),
    ("storage", Text),
    ("num_replicas", Whole),
    ("duplicate_window", Whole),
    ("allow_direct", Flag),
    ("allow_rollup_hdrs", Flag),
    ("deny_delete", Flag),
    ("deny_purge", Flag),
    ("no_ack", Flag),
    ("sealed", Flag),
    ("mirror", Object),
    ("sources", Objects),
    ("subject_transform", Object),
    ("republish", Object),
    ("metadata", TextMap),
    ("persist_mode", Text),
];

/// Of its republishing.
const REPUBLISH: &[(&str, Kind)] = &[("src", Text), ("dest", Text), ("headers_only", Flag)];

/// Of what it holds.
pub(super) const STATE: &[(&str, Kind)] =
    &[("messages", Whole), ("bytes", Whole), ("last_seq", Whole), ("consumer_count", Whole)];

/// Of a consumer's configuration.
pub(super) const CONSUMER: &[(&str, Kind)] = &[
    ("name", Text),
    ("durable_name", Text),
    ("deliver_subject", Text),
    ("deliver_policy", Text),
    ("ack_policy", Text),
    ("ack_wait", Whole),
    ("max_deliver", Whole),
    ("max_ack_pending", Whole),
    ("max_waiting", Whole),
    ("max_expires", Whole),
    ("max_batch", Whole),
    ("max_bytes", Whole),
    ("filter_subject", Text),
    ("filter_subjects", Texts),
    ("headers_only", Flag),
    ("replay_policy", Text),
    ("inactive_threshold", Whole),
    ("backoff", Wholes),
    ("pause_until", Text),
    ("priority_policy", Text),
    ("priority_groups", Texts),
    ("priority_timeout", Whole),
    ("mem_storage", Flag),
    ("num_replicas", Whole),
    ("rate_limit_bps", Whole),
    ("metadata", TextMap),
];

/// Of an answer about a consumer.
pub(super) const CONSUMER_INFO: &[(&str, Kind)] =
    &[("stream_name", Text), ("name", Text), ("num_pending", Whole), ("num_ack_pending", Whole), ("config", Object)];

/// Of an answer about a stream.
pub(super) const STREAM_INFO: &[(&str, Kind)] = &[("created", Text), ("state", Object), ("config", Object)];

/// Of a page of a list.
pub(super) const LIST: &[(&str, Kind)] = &[("total", Whole), ("missing", Texts)];

/// Checks the types of an object's fields; `place` is what stands before their names. Unknown fields are not looked at.
pub(super) fn check(map: &Map<String, Value>, place: &str, kinds: &[(&str, Kind)]) -> Result<(), String> {
    for (field, kind) in kinds {
        let value = map.get(*field).unwrap_or(&Value::Null);
        if !kind.takes(value) {
            return Err(format!("{place}{field} is {}; it must be {}", what(value), kind.describe()));
        }
        if *field == "republish"
            && let Value::Object(inner) = value
        {
            check(inner, &format!("{place}{field}."), REPUBLISH)?;
        }
    }
    Ok(())
}

impl Kind {
    /// Null stands for an absent field everywhere, as Go writes an empty list.
    fn takes(self, value: &Value) -> bool {
        let all = |of: fn(&Value) -> bool| value.as_array().is_some_and(|list| list.iter().all(of));
        let whole: fn(&Value) -> bool = |value| value.is_i64() || value.is_u64();
        value.is_null()
            || match self {
                Text => value.is_string(),
                Whole => whole(value),
                Flag => value.is_boolean(),
                Texts => all(Value::is_string),
                Wholes => all(whole),
                Object => value.is_object(),
                Objects => all(Value::is_object),
                TextMap => value.as_object().is_some_and(|map| map.values().all(Value::is_string)),
            }
    }

    fn describe(self) -> &'static str {
        match self {
            Text => "a text",
            Whole => "a whole number (spans: nanoseconds)",
            Flag => "true or false",
            Texts => "a list of texts",
            Wholes => "a list of whole numbers",
            Object => "an object",
            Objects => "a list of objects",
            TextMap => "an object of texts",
        }
    }
}

fn what(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number that is not whole, or too large",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_kind_takes_its_own_and_null() {
        for (kind, good, bad) in [
            (Text, json!("a"), json!(1)),
            (Whole, json!(-1), json!("1")),
            (Whole, json!(u64::MAX), json!(1.5)),
            (Flag, json!(false), json!("false")),
            (Texts, json!(["a"]), json!("a")),
            (Texts, json!([]), json!([1])),
            (Wholes, json!([1]), json!(["1"])),
            (Object, json!({}), json!([])),
            (Objects, json!([{}]), json!({})),
            (TextMap, json!({"a": "1"}), json!({"a": 1})),
        ] {
            assert!(kind.takes(&good) && kind.takes(&Value::Null) && !kind.takes(&bad), "{kind:?}");
        }
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named_with_its_place() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let said = check(&map(json!({"max_age": "5m"})), "config.", STREAM).unwrap_err();
        assert_eq!(said, "config.max_age is a text; it must be a whole number (spans: nanoseconds)");
        let said = check(&map(json!({"republish": {"src": 1}})), "config.", STREAM).unwrap_err();
        assert_eq!(said, "config.republish.src is a number; it must be a text");
        assert_eq!(check(&map(json!({"max_age": 5, "other": [1], "sources": null})), "config.", STREAM), Ok(()));
    }
}
