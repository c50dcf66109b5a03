//! Reading a durable: what its information means to us.

use super::pull::Reading;
use std::time::Duration;
use wh_nats::ConsumerInfo;
use wh_types::Timestamp;

/// What matters of a durable's information.
pub(super) fn reading(info: &ConsumerInfo) -> Reading {
    // without the server's clock its activity cannot be judged, and counts as this moment's
    let ago = |at: Option<Timestamp>| at.map(|at| info.ts.map_or(Duration::ZERO, |ts| ts.since(at)));
    Reading {
        created: info.created.clone(),
        delivered: info.delivered.consumer_seq,
        unsettled: info.num_ack_pending,
        pending: info.num_pending,
        waiting: info.num_waiting,
        pinned: info.pinned.clone(),
        quiet: ago(info.delivered.last_active.max(info.ack_floor.last_active)),
        undelivered: ago(info.delivered.last_active),
    }
}
