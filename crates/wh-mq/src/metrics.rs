//! The queue's metrics, in one place.

use std::sync::LazyLock;
use wh_types::{LabelCap, Table, Tenant};

/// Most tenants, tables and codes that counters of dead letters tell apart (decision D28).
static TENANTS: LazyLock<LabelCap> = LazyLock::new(|| LabelCap::new(200));
static TABLES: LazyLock<LabelCap> = LazyLock::new(|| LabelCap::new(500));
static CODES: LazyLock<LabelCap> = LazyLock::new(|| LabelCap::new(100));

/// Letters newly kept by this process. Of all processes together, and since the store was made: parked less purged less
/// dropped is what the store holds, code by code.
pub(crate) const PARKED: &str = "wavehouse_dead_letters_parked_total";
pub(crate) const PURGED: &str = "wavehouse_dead_letters_purged_total";
pub(crate) const DROPPED: &str = "wavehouse_dead_letters_dropped_total";

/// Names, units and meanings: the generated metrics page is made of this.
pub(crate) const DESCRIBED: [(&str, &str); 8] = [
    ("wavehouse_queue_refused_total", "blocks refused because a tenant or a table was at its budget"),
    ("wavehouse_queue_quarantined_total", "stored blocks and dead letters that could not be read and were put aside"),
    ("wavehouse_queue_history_given_up_total", "settled blocks dropped before their time because the disk was full"),
    ("wavehouse_queue_missing_segments_total", "segments found missing or cut short when the queue was opened"),
    ("wavehouse_queue_dead_letters_dropped_total", "dead letters dropped because their share was full, by tenant"),
    (PARKED, "dead letters newly parked by this process, by tenant, table and code"),
    (PURGED, "dead letters purged by this process, after a replay too, by tenant, table and code"),
    (DROPPED, "dead letters this process dropped because their share was full, by tenant, table and code"),
];

pub(crate) fn describe() {
    for (name, text) in DESCRIBED {
        metrics::describe_counter!(name, text);
    }
}

pub(crate) fn refused() {
    metrics::counter!("wavehouse_queue_refused_total").increment(1);
}

pub(crate) fn quarantined() {
    metrics::counter!("wavehouse_queue_quarantined_total").increment(1);
}

#[cfg(feature = "embedded")]
pub(crate) fn history_given_up(blocks: u64) {
    metrics::counter!("wavehouse_queue_history_given_up_total").increment(blocks);
}

#[cfg(feature = "embedded")]
pub(crate) fn missing(segments: usize) {
    metrics::counter!("wavehouse_queue_missing_segments_total").increment(segments as u64);
}

pub(crate) fn letters_dropped(tenant: &Tenant, count: u64) {
    metrics::counter!("wavehouse_queue_dead_letters_dropped_total", "tenant" => tenant.to_string()).increment(count);
}

pub(crate) fn letter(counter: &'static str, tenant: &Tenant, table: &Table, code: &str) {
    let (tenant, table) = (TENANTS.get(tenant.as_str()), TABLES.get(table.as_str()));
    metrics::counter!(counter, "tenant" => tenant, "table" => table, "code" => CODES.get(code)).increment(1);
}
