//! Metrics of publishing.

/// Names and meanings.
const DESCRIBED: [(&str, &str); 1] = [(
    "wavehouse_queue_publish_failed_attempts_total",
    "attempts of a publish without an outcome, by why: refused (nothing was stored, or sent) or unanswered",
)];

pub(super) fn describe() {
    for (name, text) in DESCRIBED {
        metrics::describe_counter!(name, text);
    }
    crate::metrics::describe();
}

pub(super) fn failed_attempt(unanswered: bool) {
    let why = if unanswered { "unanswered" } else { "refused" };
    metrics::counter!("wavehouse_queue_publish_failed_attempts_total", "why" => why).increment(1);
}
