//! Where a configuration that was seen differs from the one that is wanted.

use crate::observe::{Fields, is_zero, show};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The field, as JetStream calls it; a key of the metadata behind a dot.
    pub field: String,
    /// What was seen.
    pub seen: String,
    /// What is wanted.
    pub wanted: String,
}

/// Fields of a stream that are never asked for and would change what it does.
pub(super) const STREAM_UNSET: &[&str] = &[
    "no_ack",
    "sealed",
    "mirror",
    "sources",
    "subject_transform",
    "persist_mode",
    "max_msgs",
    "max_msg_size",
    "max_consumers",
];

/// The same of a durable.
pub(super) const CONSUMER_UNSET: &[&str] = &[
    "deliver_subject",
    "filter_subjects",
    "backoff",
    "pause_until",
    "headers_only",
    "inactive_threshold",
    "max_expires",
    "max_batch",
    "max_bytes",
    "mem_storage",
    "rate_limit_bps",
];

/// Fields that the server does not let change (measured on 2.14.6): a stream's, then a durable's.
const FIXED: &[&str] = &[
    "retention",
    "storage",
    "persist_mode",
    "mirror",
    "sealed",
    "deliver_policy",
    "ack_policy",
    "replay_policy",
    "max_waiting",
    "mem_storage",
    "deliver_subject",
];

impl Difference {
    /// Whether the server refuses to change this in place. A denial can be set and not taken back.
    pub(super) fn is_fixed(&self) -> bool {
        let denial = matches!(self.field.as_str(), "deny_delete" | "deny_purge") && self.seen == "true";
        denial || FIXED.contains(&self.field.as_str())
    }
}

/// Where `seen` differs from `wanted`, but for its name, which is how it was found.
pub(super) fn differences(wanted: &Value, seen: &Fields, unset: &[&str]) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut differ = |field: String, seen: &Value, wanted: &Value| {
        all.push(Difference { field, seen: show(seen), wanted: show(wanted) });
    };
    for (field, wanted) in wanted.as_object().into_iter().flatten() {
        let seen = seen.get(field);
        match (field.as_str(), wanted) {
            ("name" | "durable_name", _) => {}
            ("metadata", Value::Object(keys)) => {
                for (key, wanted) in keys {
                    let seen = seen.get(key).unwrap_or(&Value::Null);
                    if seen != wanted {
                        differ(format!("metadata.{key}"), seen, wanted);
                    }
                }
            }
            ("subjects", _) => {
                if set(seen) != set(wanted) {
                    differ(field.clone(), seen, wanted);
                }
            }
            _ => {
                if !(seen == wanted || (is_unset(seen) && is_unset(wanted))) {
                    differ(field.clone(), seen, wanted);
                }
            }
        }
    }
    for field in unset.iter().filter(|field| !is_unset(seen.get(field))) {
        differ((*field).to_owned(), seen.get(field), &Value::Null);
    }
    all
}

fn set(value: &Value) -> BTreeSet<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// JetStream writes no limit as -1, and leaves zeros out.
fn is_unset(value: &Value) -> bool {
    is_zero(value) || value.as_i64() == Some(-1) || value.as_str() == Some("default")
}
