//! The process's own metrics, in one place.

use std::{sync::OnceLock, time::Duration};

/// Names and meanings: the generated metrics page is made of this.
pub(crate) const DESCRIBED: [(&str, &str); 11] = [
    ("wavehouse_build_info", "1, with version and commit as labels"),
    ("wavehouse_process_uptime_seconds", "seconds since this process started"),
    ("wavehouse_process_resident_bytes", "memory of this process that is in use"),
    ("wavehouse_http_connections", "open connections"),
    ("wavehouse_http_connections_full_total", "how often server.max_connections was reached"),
    ("wavehouse_pipes", "pipes that can be run"),
    ("wavehouse_pipes_file_refused", "1 while the file of pipes has errors and older pipes are in use"),
    ("wavehouse_dedupe_known_keys", "keys that the dedupe store in the data folder knows"),
    ("wavehouse_dedupe_open_claims", "its claims that are neither committed nor released"),
    ("wavehouse_dedupe_memory_bytes", "memory of its table of keys"),
    ("wavehouse_dedupe_disk_bytes", "its segments on the disk"),
];

pub(crate) fn describe() {
    for (name, text) in DESCRIBED {
        match name {
            n if n.ends_with("_total") => metrics::describe_counter!(n, text),
            n => metrics::describe_gauge!(n, text),
        }
    }
}

pub(crate) fn build(about: crate::About) {
    metrics::gauge!("wavehouse_build_info", "version" => about.version, "commit" => about.commit).set(1.0);
}

/// What is measured when somebody looks.
pub(crate) fn process(since_start: Duration) {
    metrics::gauge!("wavehouse_process_uptime_seconds").set(since_start.as_secs_f64());
    if let Some(kib) = resident_kib() {
        metrics::gauge!("wavehouse_process_resident_bytes").set(f64::from(kib) * 1024.0);
    }
}

/// As Linux says it; nothing elsewhere.
fn resident_kib() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "gauges are read by people")]
pub(crate) fn dedupe(known: u64, claims: u64, table_bytes: u64, disk_bytes: u64) {
    metrics::gauge!("wavehouse_dedupe_known_keys").set(known as f64);
    metrics::gauge!("wavehouse_dedupe_open_claims").set(claims as f64);
    metrics::gauge!("wavehouse_dedupe_memory_bytes").set(table_bytes as f64);
    metrics::gauge!("wavehouse_dedupe_disk_bytes").set(disk_bytes as f64);
}

/// A file of pipes is in use.
#[expect(clippy::cast_precision_loss, reason = "gauges are read by people")]
pub(crate) fn pipes(count: usize) {
    metrics::gauge!("wavehouse_pipes").set(count as f64);
    metrics::gauge!("wavehouse_pipes_file_refused").set(0.0);
}

/// A file of pipes is not used.
pub(crate) fn pipes_refused() {
    metrics::gauge!("wavehouse_pipes_file_refused").set(1.0);
}

pub(crate) fn connections_full() {
    metrics::counter!("wavehouse_http_connections_full_total").increment(1);
}

/// One open connection, counted while it lives.
#[derive(Debug)]
pub(crate) struct Connection(());

impl Connection {
    pub(crate) fn open() -> Self {
        gauge().increment(1.0);
        Self(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        gauge().decrement(1.0);
    }
}

fn gauge() -> &'static metrics::Gauge {
    static GAUGE: OnceLock<metrics::Gauge> = OnceLock::new();
    GAUGE.get_or_init(|| metrics::gauge!("wavehouse_http_connections"))
}
