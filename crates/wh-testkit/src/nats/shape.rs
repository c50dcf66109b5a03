//! How a test's topology differs from the one that is shipped: shorter waits, smaller streams.

use serde_json::{Value, json};
use std::time::Duration;

/// What differs; everything else is created as it was printed.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// How long a delivered block may stay unsettled.
    pub ack_wait: Option<Duration>,
    /// How long a pin outlives its last renewal.
    pub pinned_ttl: Option<Duration>,
    /// How many blocks of a unit may be unsettled.
    pub max_ack_pending: Option<i64>,
    /// How long partitions remember block ids.
    pub duplicate_window: Option<Duration>,
    /// How many bytes a partition holds.
    pub max_bytes: Option<i64>,
    /// How many blocks of a subject a partition holds.
    pub max_msgs_per_subject: Option<i64>,
    /// How many bytes the other streams hold, the bucket excepted.
    pub other_bytes: Option<i64>,
}

impl Shape {
    /// Changes a stream.
    pub(super) fn stream(&self, config: &mut Value) {
        if config["retention"] == "workqueue" {
            put(config, "duplicate_window", self.duplicate_window.map(nanos));
            put(config, "max_bytes", self.max_bytes.map(Value::from));
            put(config, "max_msgs_per_subject", self.max_msgs_per_subject.map(Value::from));
        } else if config["max_bytes"].as_i64().is_some_and(|bytes| bytes > 0) {
            put(config, "max_bytes", self.other_bytes.map(Value::from));
        }
    }

    /// Changes a durable.
    pub(super) fn durable(&self, config: &mut Value) {
        put(config, "ack_wait", self.ack_wait.map(nanos));
        put(config, "priority_timeout", self.pinned_ttl.map(nanos));
        put(config, "max_ack_pending", self.max_ack_pending.map(Value::from));
    }
}

fn put(config: &mut Value, field: &str, value: Option<Value>) {
    if let Some(value) = value {
        config[field] = value;
    }
}

fn nanos(span: Duration) -> Value {
    json!(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}
