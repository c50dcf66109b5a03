//! Reading a durable: what its information means to us.

use super::pull::Reading;
use serde_json::Value;
use std::time::Duration;
use wh_nats::{Api, ConsumerInfo, Error, Kind};
use wh_types::Timestamp;

/// Reads a durable.
///
/// # Errors
/// The client's. [`Kind::NoResponders`] also where a server answered for a durable that nobody leads.
pub(super) async fn read(api: &Api, stream: &str, durable: &str) -> Result<Reading, Error> {
    let info = api.consumer_info(stream, durable).await?;
    reading(&info).ok_or_else(|| Error::from(Kind::NoResponders))
}

/// The same, with its [`places`].
///
/// # Errors
/// As [`read`].
pub(super) async fn read_with_places(api: &Api, stream: &str, durable: &str) -> Result<(Reading, (u64, u64)), Error> {
    let info = api.consumer_info(stream, durable).await?;
    reading(&info).zip(places(&info)).ok_or_else(|| Error::from(Kind::NoResponders))
}

/// What matters of a durable's information. None where nobody leads it: during an election any of its servers may answer,
/// with what it last heard, and nothing of that can be relied on.
pub(super) fn reading(info: &ConsumerInfo) -> Option<Reading> {
    if is_leaderless(&info.raw) {
        return None;
    }
    // without the server's clock its activity cannot be judged, and counts as this moment's
    let ago = |at: Option<Timestamp>| at.map(|at| info.ts.map_or(Duration::ZERO, |ts| ts.since(at)));
    Some(Reading {
        created: info.created.clone(),
        delivered: info.delivered.consumer_seq,
        unsettled: info.num_ack_pending,
        pending: info.num_pending,
        waiting: info.num_waiting,
        pinned: info.pinned.clone(),
        quiet: ago(info.delivered.last_active.max(info.ack_floor.last_active)),
        undelivered: ago(info.delivered.last_active),
    })
}

/// Up to where everything is settled, and up to where something was delivered, by sequences of the stream. None where
/// nobody leads the durable.
pub(crate) fn places(info: &ConsumerInfo) -> Option<(u64, u64)> {
    let settled = info.ack_floor.stream_seq;
    (!is_leaderless(&info.raw)).then(|| (settled, info.delivered.stream_seq.max(settled)))
}

/// A server that is none of a cluster names no cluster.
fn is_leaderless(raw: &Value) -> bool {
    let Some(cluster) = raw.get("cluster").filter(|cluster| cluster.get("name").is_some()) else { return false };
    cluster.get("leader").and_then(Value::as_str).is_none_or(str::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_member_of_a_cluster_can_be_without_a_leader() {
        for (raw, leaderless) in [
            (json!({}), false),
            (json!({"cluster": {}}), false),
            (json!({"cluster": {"name": "wh", "leader": "n0"}}), false),
            (json!({"cluster": {"name": "wh"}}), true),
            (json!({"cluster": {"name": "wh", "leader": ""}}), true),
        ] {
            assert_eq!(is_leaderless(&raw), leaderless, "{raw}");
        }
    }
}
