//! What is wrong with a topology. Pure: it reads what was seen, and repairs nothing.
//!
//! Rules on one object are data, a file a kind; what concerns which objects there are is in `objects` and `others`.

mod bucket;
mod consumer;
mod dead_letters;
mod finding;
mod history;
mod objects;
mod others;
mod partition;
mod rule;

pub(crate) use finding::pieces;
pub use finding::{Finding, Severity};
pub(crate) use objects::{Found, find};

use crate::{Observed, Role, Spec, Stream};
use rule::{At, apply};
use std::time::Duration;

/// Everything that is wrong for a process of this role, sorted. Without a required finding it may run.
///
/// A process without the ingest role checks partitions, history and dead letters; the durables and the bucket of leases
/// are the workers'.
#[must_use]
pub fn verify(spec: &Spec, role: Role, seen: &Observed) -> Vec<Finding> {
    let found = find(spec, seen);
    let streams: Vec<&str> = found.partitions.iter().flatten().map(String::as_str).collect();
    let windows = seen.duplicate_windows(streams);
    let shortest_window = windows.map(|(shortest, _)| shortest);
    fn at<'a>(spec: &'a Spec, name: &'a str, stream: &'a Stream, shortest_window: Option<Duration>) -> At<'a> {
        At { spec, config: &stream.config, partition: 0, shard: 0, stream: name, durable: "", shortest_window }
    }
    let at = |name, stream| at(spec, name, stream, shortest_window);
    let mut findings = others::servers(seen);
    findings.extend(others::peers(spec, seen));
    findings.extend(objects::missing(spec, role, seen, &found));
    for (index, name) in (0..).zip(&found.partitions) {
        let Some((name, stream)) = name.as_ref().and_then(|name| Some((name, seen.streams.get(name)?))) else {
            continue;
        };
        findings.extend(apply(partition::RULES, &At { partition: index, ..at(name, stream) }));
        if role.ingests() {
            findings.extend(durables(spec, seen, name, index, shortest_window));
        }
    }
    let (history, bucket) = (&spec.names().history, spec.names().bucket_stream());
    let mut singles = vec![(Some(history), history::RULES), (found.dead_letters.as_ref(), dead_letters::RULES)];
    if role.ingests() {
        singles.push((Some(&bucket), bucket::RULES));
    }
    for (name, rules) in singles {
        if let Some((name, stream)) = name.and_then(|name| seen.streams.get_key_value(name)) {
            findings.extend(apply(rules, &at(name, stream)));
        }
    }
    if role.ingests() {
        findings.extend(others::extra(spec, seen, &found));
        findings.extend(others::refused(spec, role, seen));
    }
    findings.extend(others::retention(spec, windows.map(|(_, longest)| longest)));
    findings.sort_by_cached_key(Finding::place);
    findings
}

fn durables(
    spec: &Spec,
    seen: &Observed,
    stream: &str,
    partition: u32,
    shortest_window: Option<Duration>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for shard in 0..spec.choices().shards {
        let durable = spec.names().durable(shard);
        let Some(consumer) = seen.consumers.get(&(stream.to_owned(), durable.clone())) else { continue };
        let config = &consumer.config;
        let at = At { spec, config, partition, shard, stream, durable: &durable, shortest_window };
        findings.extend(apply(consumer::RULES, &at));
    }
    findings
}

#[cfg(test)]
mod tests;
