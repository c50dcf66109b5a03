//! Reading a durable: what its information means to us.

use super::pull::Reading;
use std::time::Duration;
use wh_nats::ConsumerInfo;

/// What matters of a durable's information.
pub(super) fn reading(info: &ConsumerInfo) -> Reading {
    let active = info.delivered.last_active.max(info.ack_floor.last_active);
    // without the server's clock its activity cannot be judged, and counts as this moment's
    let quiet = active.map(|at| info.ts.map_or(Duration::ZERO, |ts| ts.since(at)));
    Reading {
        created: info.created.clone(),
        delivered: info.delivered.consumer_seq,
        unsettled: info.num_ack_pending,
        pending: info.num_pending,
        waiting: info.num_waiting,
        pinned: info.pinned.clone(),
        quiet,
    }
}
