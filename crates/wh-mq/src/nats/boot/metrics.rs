//! The metrics of the topology's checks, in one place.

const SOUND: &str = "wavehouse_queue_topology_sound";
const CHECKS: &str = "wavehouse_queue_topology_checks_total";

/// Tells the exporter what they mean.
pub(super) fn describe() {
    metrics::describe_gauge!(SOUND, "1 while the topology on the NATS servers has no required finding, else 0");
    metrics::describe_counter!(CHECKS, "checks of the topology while running, by result: sound, unsound, unread");
}

pub(super) fn sound(sound: bool) {
    metrics::gauge!(SOUND).set(if sound { 1.0 } else { 0.0 });
}

pub(super) fn checked(result: &'static str) {
    metrics::counter!(CHECKS, "result" => result).increment(1);
}
