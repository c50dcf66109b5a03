//! What the queue holds, from the streams' own counts. Rows are not counted: a stream counts messages.

use super::{error, letters, shared::Shared};
use crate::{BrokerStatus, Result, TenantStatus};
use std::collections::BTreeMap;
use wh_types::{Tenant, TopicKey};

const OP: &str = "status";

/// The status; it answers also while nothing is connected, without counts.
///
/// # Errors
/// Unavailable, Denied.
pub(super) async fn status(shared: &Shared) -> Result<BrokerStatus> {
    let reason = reason(shared);
    let mut status = BrokerStatus { accepting: reason.is_none(), reason, ..BrokerStatus::default() };
    if !shared.connection.is_connected() || shared.stop.given() {
        return Ok(status);
    }
    let mut tenants: BTreeMap<Tenant, TenantStatus> = BTreeMap::new();
    let api = shared.connection.api();
    let mut bytes = 0;
    for partition in &shared.partitions {
        let state = api.stream_state(&partition.stream).await.map_err(|error| error::request(OP, error))?;
        bytes += state.bytes;
        let all = shared.names().partition_subjects(partition.index);
        let subjects = api.stream_subjects(&partition.stream, &all).await;
        for (subject, blocks) in subjects.map_err(|error| error::request(OP, error))? {
            if let Some(key) = shared.ingest_tail(&subject).and_then(TopicKey::parse) {
                tenants.entry(key.tenant().clone()).or_default().unsettled_blocks += blocks;
            }
        }
    }
    for ((tenant, table), count) in letters::counts(shared).await? {
        *tenants.entry(tenant).or_default().dead_letters.entry(table).or_default() += count;
    }
    for stream in [&shared.names().history, &shared.names().dead_letters] {
        bytes += api.stream_state(stream).await.map_err(|error| error::request(OP, error))?.bytes;
    }
    status.disk_bytes = Some(bytes);
    status.tenants = tenants;
    Ok(status)
}

/// Why a publish would not be taken now.
fn reason(shared: &Shared) -> Option<String> {
    if shared.stop.given() {
        return Some("the queue is closing".to_owned());
    }
    let state = shared.connection.state();
    if !state.connected {
        let why = state.last_error.map(|error| format!(": {error}")).unwrap_or_default();
        return Some(format!("no NATS server is connected{why}"));
    }
    shared.faults.last().map(|fault| fault.to_string())
}
