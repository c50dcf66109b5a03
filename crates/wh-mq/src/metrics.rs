//! The queue's metrics, in one place.

use wh_types::Tenant;

/// Names, units and meanings: the generated metrics page is made of this.
pub(crate) const DESCRIBED: [(&str, &str); 5] = [
    ("wavehouse_queue_refused_total", "blocks refused because a tenant or a table was at its budget"),
    ("wavehouse_queue_quarantined_total", "stored blocks and dead letters that could not be read and were put aside"),
    ("wavehouse_queue_history_given_up_total", "settled blocks dropped before their time because the disk was full"),
    ("wavehouse_queue_missing_segments_total", "segments found missing or cut short when the queue was opened"),
    ("wavehouse_queue_dead_letters_dropped_total", "dead letters dropped because their share was full, by tenant"),
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
