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

use crate::{Observed, Role, Spec};
use rule::{At, apply};

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
    let at = |stream: &str, config, partition| At {
        spec,
        config,
        partition,
        shard: 0,
        // the map's own key lives as long as `seen`
        stream: seen.streams.get_key_value(stream).map_or("", |(name, _)| name.as_str()),
        durable: "",
        shortest_window,
    };
    let mut findings = others::servers(seen);
    findings.extend(others::peers(spec, seen));
    findings.extend(objects::missing(spec, role, seen, &found));
    for (index, name) in (0..).zip(&found.partitions) {
        let Some((name, stream)) = name.as_ref().and_then(|name| Some((name, seen.streams.get(name)?))) else {
            continue;
        };
        findings.extend(apply(partition::RULES, &at(name, &stream.config, index)));
        if role.ingests() {
            findings.extend(durables(spec, seen, name, index, shortest_window));
        }
    }
    let singles = [
        (Some(&spec.names().history), history::RULES, true),
        (found.dead_letters.as_ref(), dead_letters::RULES, true),
        (Some(&spec.names().bucket_stream()), bucket::RULES, role.ingests()),
    ];
    for (name, rules, _) in singles.into_iter().filter(|(_, _, wanted)| *wanted) {
        if let Some((name, stream)) = name.and_then(|name| seen.streams.get_key_value(name)) {
            findings.extend(apply(rules, &at(name, &stream.config, 0)));
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
    shortest_window: Option<std::time::Duration>,
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
