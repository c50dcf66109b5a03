//! What happens to each object.

use super::{
    Action, Change, Counts,
    difference::{CONSUMER_UNSET, Difference, STREAM_UNSET, differences},
};
use crate::{
    Fields, Names, Observed, Stream, StreamConfig, Topology,
    topology::{METADATA_PARTITIONS, METADATA_SHARDS},
    verify::{Found, find, pieces},
};
use serde::Serialize;
use serde_json::Value;

/// Which stream serves what. One that takes no subject of ours but has the generated name counts as the one that should.
pub(super) fn find_all(wanted: &Topology, seen: &Observed) -> Found {
    let mut found = find(&wanted.spec, seen);
    let named = |name: &str| seen.streams.get_key_value(name).map(|(name, _)| name.clone());
    for (stream, partition) in found.partitions.iter_mut().zip(&wanted.partitions) {
        if stream.is_none() {
            *stream = named(&partition.stream.name);
        }
    }
    let taken: Vec<_> = found.partitions.iter().flatten().cloned().collect();
    found.extra.retain(|name| !taken.contains(name));
    found.extra.sort_by_cached_key(|name| pieces(name));
    found.dead_letters = found.dead_letters.or_else(|| named(&wanted.dead_letters.name));
    found
}

/// The counts that the partitions say they have, else those that are there.
pub(super) fn counts(wanted: &Topology, seen: &Observed, found: &Found) -> Option<Counts> {
    let streams: Vec<&String> = found.partitions.iter().flatten().chain(&found.extra).collect();
    let first = streams.first()?;
    let says = |key: &str| {
        streams.iter().find_map(|name| seen.streams.get(*name)?.config.inner("metadata", key)?.parse().ok())
    };
    let names = wanted.spec.names();
    let durables =
        seen.consumers.keys().filter(|(stream, durable)| stream == *first && names.shard_of(durable).is_some());
    let there = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Some(Counts {
        partitions: says(METADATA_PARTITIONS).unwrap_or_else(|| there(streams.len())),
        shards: says(METADATA_SHARDS).unwrap_or_else(|| there(durables.count())),
    })
}

/// Every object of either side, in the order in which a topology is printed; what is to be drained last.
pub(super) fn changes(wanted: &Topology, seen: &Observed, found: &Found) -> Vec<Change> {
    let mut changes = Vec::new();
    for (partition, name) in wanted.partitions.iter().zip(&found.partitions) {
        let name = name.as_ref().unwrap_or(&partition.stream.name);
        changes.push(Change { partition: true, ..stream(seen, name, &partition.stream) });
        for durable in &partition.shards {
            changes.push(consumer(seen, name, &durable.name, durable));
        }
    }
    let dead_letters = found.dead_letters.as_ref().unwrap_or(&wanted.dead_letters.name);
    let bucket = wanted.bucket.stream();
    changes.push(stream(seen, &wanted.history.name, &wanted.history));
    changes.push(stream(seen, dead_letters, &wanted.dead_letters));
    changes.push(stream(seen, &bucket.name, &bucket));
    changes.extend(leftovers(wanted, seen, found));
    changes
}

fn stream(seen: &Observed, name: &str, wanted: &StreamConfig) -> Change {
    let there = seen.streams.get(name);
    let (action, differences) = compare(there.map(|stream| &stream.config), wanted, STREAM_UNSET);
    let messages = there.map_or(0, |stream| stream.state.messages);
    Change {
        action,
        object: name.to_owned(),
        differences,
        messages,
        stream: name.to_owned(),
        durable: None,
        partition: false,
    }
}

fn consumer(seen: &Observed, stream: &str, durable: &str, wanted: &impl Serialize) -> Change {
    let there = seen.consumers.get(&(stream.to_owned(), durable.to_owned()));
    let (action, differences) = compare(there.map(|consumer| &consumer.config), wanted, CONSUMER_UNSET);
    Change {
        action,
        object: Names::unit(stream, durable),
        differences,
        messages: there.map_or(0, |consumer| consumer.num_pending + consumer.num_ack_pending),
        stream: stream.to_owned(),
        durable: Some(durable.to_owned()),
        partition: false,
    }
}

fn compare(seen: Option<&Fields>, wanted: &impl Serialize, unset: &[&str]) -> (Action, Vec<Difference>) {
    let Some(seen) = seen else { return (Action::Create, Vec::new()) };
    // plain data: it always serialises
    let wanted = serde_json::to_value(wanted).unwrap_or(Value::Null);
    let differences = differences(&wanted, seen, unset);
    let action = match &differences[..] {
        [] => Action::Leave,
        some if some.iter().any(Difference::is_fixed) => Action::Replace,
        _ => Action::Update,
    };
    (action, differences)
}

/// Streams and durables outside the wanted counts.
fn leftovers(wanted: &Topology, seen: &Observed, found: &Found) -> Vec<Change> {
    let (names, shards) = (wanted.spec.names(), wanted.spec.choices().shards);
    let drain = |object: String, stream: &str, durable: Option<&str>, messages: u64| Change {
        action: Action::Drain,
        object,
        differences: Vec::new(),
        messages,
        stream: stream.to_owned(),
        durable: durable.map(str::to_owned),
        partition: durable.is_none(),
    };
    let mut changes = Vec::new();
    let configured = found.partitions.iter().flatten();
    for stream in configured.clone().chain(&found.extra) {
        let extra = found.extra.contains(stream);
        if extra {
            let messages = seen.streams.get(stream).map_or(0, |Stream { state, .. }| state.messages);
            changes.push(drain(stream.clone(), stream, None, messages));
        }
        let own = seen.consumers.iter().filter(|((of, _), _)| of == stream);
        let mut durables: Vec<_> = own
            .filter_map(|((_, durable), consumer)| Some((names.shard_of(durable)?, durable, consumer)))
            .filter(|(shard, _, _)| extra || *shard >= shards)
            .collect();
        durables.sort_by_key(|(shard, _, _)| *shard);
        for (_, durable, consumer) in durables {
            let messages = consumer.num_pending + consumer.num_ack_pending;
            changes.push(drain(Names::unit(stream, durable), stream, Some(durable), messages));
        }
    }
    changes
}

impl Change {
    /// Whether it is about the stream of a partition, also of one that is to go.
    pub(super) fn is_partition(&self) -> bool {
        self.partition
    }
}
