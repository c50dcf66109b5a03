//! The metrics of units, in one place.

use super::pull::Event;
use crate::Unit;

/// Counters: names and meanings.
const COUNTERS: [(&str, &str); 9] = [
    ("wavehouse_queue_pulls_total", "requests for blocks of a unit"),
    ("wavehouse_queue_renewals_total", "renewals of a unit's pin"),
    ("wavehouse_queue_pins_total", "pins gained"),
    ("wavehouse_queue_pins_lost_total", "pins lost to another process or by time"),
    ("wavehouse_queue_gaps_total", "gaps in the deliveries of a unit; each is mended by a reset"),
    ("wavehouse_queue_resets_total", "resets of a durable, by cause: gap, release, orphan"),
    ("wavehouse_queue_redeliveries_total", "copies of blocks that were here, by what became of them"),
    ("wavehouse_queue_acks_unconfirmed_total", "settled blocks whose acks nobody confirmed; they may come again"),
    ("wavehouse_queue_lapsed_total", "blocks that were neither settled nor kept alive in time"),
];

/// Gauges: names and meanings.
const GAUGES: [(&str, &str); 4] = [
    ("wavehouse_queue_unit_held_rows", "rows delivered and not settled, by unit"),
    ("wavehouse_queue_unit_held_bytes", "bytes of blocks in memory, by unit"),
    ("wavehouse_queue_unit_progress", "0: blocks are pending and none was delivered for 30 s, by unit"),
    ("wavehouse_queue_unit_unsettled_ratio", "unsettled blocks by the most the durable allows, by unit"),
];

pub(super) fn describe() {
    for (name, text) in COUNTERS {
        metrics::describe_counter!(name, text);
    }
    for (name, text) in GAUGES {
        metrics::describe_gauge!(name, text);
    }
}

pub(super) fn pulled() {
    metrics::counter!("wavehouse_queue_pulls_total").increment(1);
}

pub(super) fn renewed() {
    metrics::counter!("wavehouse_queue_renewals_total").increment(1);
}

pub(super) fn event(event: &Event) {
    match event {
        Event::Pinned => metrics::counter!("wavehouse_queue_pins_total").increment(1),
        Event::PinLost => metrics::counter!("wavehouse_queue_pins_lost_total").increment(1),
        Event::Gap { .. } => metrics::counter!("wavehouse_queue_gaps_total").increment(1),
        Event::LeaderChanged | Event::Silent | Event::Limited(_) | Event::Cut { .. } => {}
    }
}

pub(super) fn reset(cause: &'static str) {
    metrics::counter!("wavehouse_queue_resets_total", "cause" => cause).increment(1);
}

pub(super) fn copy(became: &'static str) {
    metrics::counter!("wavehouse_queue_redeliveries_total", "became" => became).increment(1);
}

pub(super) fn unconfirmed(acks: u64) {
    metrics::counter!("wavehouse_queue_acks_unconfirmed_total").increment(acks);
}

pub(super) fn lapsed(blocks: u64) {
    metrics::counter!("wavehouse_queue_lapsed_total").increment(blocks);
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; far below 2^53")]
pub(super) fn held(unit: Unit, rows: usize, bytes: usize, ratio: f64) {
    let unit = unit.to_string();
    metrics::gauge!("wavehouse_queue_unit_held_rows", "unit" => unit.clone()).set(rows as f64);
    metrics::gauge!("wavehouse_queue_unit_held_bytes", "unit" => unit.clone()).set(bytes as f64);
    metrics::gauge!("wavehouse_queue_unit_unsettled_ratio", "unit" => unit).set(ratio);
}

pub(super) fn progress(unit: Unit, moves: bool) {
    metrics::gauge!("wavehouse_queue_unit_progress", "unit" => unit.to_string()).set(f64::from(u8::from(moves)));
}
