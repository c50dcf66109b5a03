//! The history's metrics, in one place.

/// Names and meanings of the counters.
pub(crate) const COUNTERS: [(&str, &str); 4] = [
    ("wavehouse_queue_history_gaps_total", "gaps that readers of a table were told of"),
    ("wavehouse_queue_history_filled_total", "blocks that were missed live and read from the history"),
    ("wavehouse_queue_history_lost_total", "stored blocks that were neither heard nor found in the history"),
    ("wavehouse_queue_history_left_total", "blocks missed live that readers look for in the history themselves"),
];

/// Names and meanings of the gauges.
pub(crate) const GAUGES: [(&str, &str); 2] = [
    ("wavehouse_queue_history_lag_blocks", "blocks that are stored and were not heard yet, by partition"),
    ("wavehouse_queue_history_ring_bytes", "bytes of recent blocks in memory"),
];

pub(super) fn describe() {
    for (name, text) in COUNTERS {
        metrics::describe_counter!(name, text);
    }
    for (name, text) in GAUGES {
        metrics::describe_gauge!(name, text);
    }
}

pub(super) fn gap() {
    metrics::counter!("wavehouse_queue_history_gaps_total").increment(1);
}

pub(super) fn filled(blocks: u64) {
    metrics::counter!("wavehouse_queue_history_filled_total").increment(blocks);
}

pub(super) fn lost(blocks: u64) {
    metrics::counter!("wavehouse_queue_history_lost_total").increment(blocks);
}

pub(super) fn left(blocks: u64) {
    metrics::counter!("wavehouse_queue_history_left_total").increment(blocks);
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
pub(super) fn lag(partition: usize, blocks: u64) {
    metrics::gauge!("wavehouse_queue_history_lag_blocks", "partition" => partition.to_string()).set(blocks as f64);
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
pub(super) fn ring(bytes: usize) {
    metrics::gauge!("wavehouse_queue_history_ring_bytes").set(bytes as f64);
}
