//! What one stream, durable or bucket is created with, in JetStream's own field names.
//!
//! Only what is asked for. What a server answers may hold more, and is read by [`crate::Observed`].

use serde::{Serialize, Serializer};
use std::{collections::BTreeMap, time::Duration};

/// When a stream lets a message go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Retention {
    /// At a limit.
    Limits,
    /// When it was acked.
    WorkQueue,
}

impl Retention {
    /// Its name on the wire, and in every format that is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Limits => "limits",
            Self::WorkQueue => "workqueue",
        }
    }
}

/// What a full stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Discard {
    /// It drops the oldest.
    Old,
    /// It refuses the new.
    New,
}

impl Discard {
    /// Its name on the wire, and in every format that is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// Where a stream's messages are published again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Republish {
    /// The pattern they go to.
    pub dest: String,
    /// The pattern they are taken from.
    pub src: String,
}

/// A stream. Always on files, and always acknowledging.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamConfig {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub subjects: Vec<String>,
    /// When it lets a message go.
    pub retention: Retention,
    /// What it does when full.
    pub discard: Discard,
    /// Whether a subject at its own limit refuses too.
    pub discard_new_per_subject: bool,
    /// Its limit in bytes; -1 for none.
    pub max_bytes: i64,
    /// The limit of each subject in messages; -1 for none.
    pub max_msgs_per_subject: i64,
    /// How old a message gets; zero for any age.
    #[serde(serialize_with = "nanos")]
    pub max_age: Duration,
    /// `file`.
    pub storage: &'static str,
    /// Its copies.
    pub num_replicas: u32,
    /// How long it remembers message ids; the server's default where absent.
    #[serde(serialize_with = "some_nanos", skip_serializing_if = "Option::is_none")]
    pub duplicate_window: Option<Duration>,
    /// Whether messages may be read directly.
    pub allow_direct: bool,
    /// Whether a message may replace those before it.
    pub allow_rollup_hdrs: bool,
    /// Whether single messages may never be deleted.
    pub deny_delete: bool,
    /// Whether it may never be purged.
    pub deny_purge: bool,
    /// Where its messages are published again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub republish: Option<Republish>,
    /// What it says of itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// The value of [`StreamConfig::storage`].
pub const FILE: &str = "file";

/// A pull consumer that delivers to one pinned client. Everything but names and filter is the same for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConsumerConfig {
    /// Its name.
    pub name: String,
    /// Its name again, which makes it durable.
    pub durable_name: String,
    /// The one pattern it delivers.
    pub filter_subject: String,
    /// `all`: from the first message on.
    pub deliver_policy: &'static str,
    /// `explicit`: each message on its own.
    pub ack_policy: &'static str,
    /// How long a delivered message may stay unsettled.
    #[serde(serialize_with = "nanos")]
    pub ack_wait: Duration,
    /// -1: it never gives a message up.
    pub max_deliver: i64,
    /// How many may be unsettled.
    pub max_ack_pending: i64,
    /// How many pulls may wait.
    pub max_waiting: i64,
    /// `instant`.
    pub replay_policy: &'static str,
    /// `pinned_client`.
    pub priority_policy: &'static str,
    /// The one group.
    pub priority_groups: Vec<String>,
    /// How long a pin outlives its last renewal.
    #[serde(serialize_with = "nanos")]
    pub priority_timeout: Duration,
}

/// A key-value bucket, without a time to live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// How many values of a key it keeps.
    pub history: u32,
    /// Its copies.
    pub replicas: u32,
}

impl Bucket {
    /// The stream that the bucket is.
    #[must_use]
    pub fn stream(&self) -> StreamConfig {
        StreamConfig {
            name: format!("KV_{}", self.name),
            subjects: vec![format!("$KV.{}.>", self.name)],
            retention: Retention::Limits,
            discard: Discard::New,
            discard_new_per_subject: false,
            max_bytes: -1,
            max_msgs_per_subject: i64::from(self.history),
            max_age: Duration::ZERO,
            storage: FILE,
            num_replicas: self.replicas,
            duplicate_window: None,
            allow_direct: true,
            allow_rollup_hdrs: true,
            deny_delete: true,
            deny_purge: false,
            republish: None,
            metadata: BTreeMap::new(),
        }
    }
}

fn nanos<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

fn some_nanos<S: Serializer>(span: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    nanos(&span.unwrap_or_default(), to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_json_says() {
        for retention in [Retention::Limits, Retention::WorkQueue] {
            assert_eq!(serde_json::to_value(retention).unwrap(), retention.name());
        }
        for discard in [Discard::Old, Discard::New] {
            assert_eq!(serde_json::to_value(discard).unwrap(), discard.name());
        }
    }
}
