//! The cache's metrics, in one place.

use crate::Outcome;

/// Names, units and meanings: the generated metrics page is made of this.
pub(crate) const COUNTERS: [(&str, &str); 4] = [
    ("wavehouse_cache_lookups_total", "answers looked up, by result: hit, miss, stale, bypass, error"),
    ("wavehouse_cache_invalidations_total", "changes told to the cache, by result: ok, deferred"),
    ("wavehouse_cache_oversize_total", "answers not kept because they were too large"),
    ("wavehouse_cache_set_failures_total", "answers not kept because the store failed, by reason: oom, timeout, other"),
];

fn describe() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for (name, text) in COUNTERS {
            metrics::describe_counter!(name, text);
        }
        let bytes = metrics::Unit::Bytes;
        metrics::describe_histogram!("wavehouse_cache_value_bytes", bytes, "size of answers that were kept");
        let seconds = metrics::Unit::Seconds;
        let text = "time of an operation on the store: lookup, set, invalidate";
        metrics::describe_histogram!("wavehouse_cache_op_duration_seconds", seconds, text);
        let text = "1 while the store is not asked because it failed";
        metrics::describe_gauge!("wavehouse_cache_breaker_open", text);
        metrics::describe_gauge!("wavehouse_cache_invalidations_pending", "invalidations that are owed");
    });
}

pub(crate) fn looked_up(backend: &'static str, outcome: &Outcome) {
    describe();
    metrics::counter!("wavehouse_cache_lookups_total", "backend" => backend, "result" => outcome.name()).increment(1);
}

pub(crate) fn invalidated(backend: &'static str, landed: bool) {
    let result = if landed { "ok" } else { "deferred" };
    metrics::counter!("wavehouse_cache_invalidations_total", "backend" => backend, "result" => result).increment(1);
}

#[expect(clippy::cast_precision_loss, reason = "an answer is far smaller than 2^52 bytes")]
pub(crate) fn kept(backend: &'static str, bytes: usize) {
    metrics::histogram!("wavehouse_cache_value_bytes", "backend" => backend).record(bytes as f64);
}

pub(crate) fn oversize(backend: &'static str) {
    metrics::counter!("wavehouse_cache_oversize_total", "backend" => backend).increment(1);
}

#[cfg(any(feature = "redis", feature = "sim"))]
pub(crate) fn set_failed(backend: &'static str, kind: &crate::Kind) {
    let timeout = if *kind == crate::Kind::TimedOut { "timeout" } else { "other" };
    let reason = if *kind == crate::Kind::Full { "oom" } else { timeout };
    metrics::counter!("wavehouse_cache_set_failures_total", "backend" => backend, "reason" => reason).increment(1);
}

#[cfg(any(feature = "redis", feature = "sim"))]
pub(crate) fn took(backend: &'static str, op: &'static str, time: std::time::Duration) {
    metrics::histogram!("wavehouse_cache_op_duration_seconds", "backend" => backend, "op" => op)
        .record(time.as_secs_f64());
}

#[cfg(any(feature = "redis", feature = "sim"))]
pub(crate) fn breaker(backend: &'static str, open: bool) {
    describe();
    metrics::gauge!("wavehouse_cache_breaker_open", "backend" => backend).set(f64::from(u8::from(open)));
}

#[cfg(any(feature = "redis", feature = "sim"))]
#[expect(clippy::cast_precision_loss, reason = "at most 100,000")]
pub(crate) fn pending(backend: &'static str, owed: usize) {
    metrics::gauge!("wavehouse_cache_invalidations_pending", "backend" => backend).set(owed as f64);
}
