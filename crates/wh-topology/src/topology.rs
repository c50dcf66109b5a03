//! Everything the operator creates: streams, durables and bucket, with their sizes.

use crate::{
    config::{Bucket, ConsumerConfig, Discard, FILE, Republish, Retention, StreamConfig},
    defaults,
    problem::{Problem, Problems},
    size::show_size,
    spec::Spec,
};
use std::{collections::BTreeMap, time::Duration};

/// The metadata key of a partition's own number.
pub const METADATA_PARTITION: &str = "wavehouse.dev/partition";
/// The metadata key of N.
pub const METADATA_PARTITIONS: &str = "wavehouse.dev/partitions";
/// The metadata key of V.
pub const METADATA_SHARDS: &str = "wavehouse.dev/shards";

/// What the streams reserve on each server that has a copy, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Each partition.
    pub partition: u64,
    /// The history.
    pub history: u64,
    /// The dead letters.
    pub dead_letters: u64,
    /// All of them together.
    pub reserved: u64,
    /// What the server's volume holds.
    pub file_store: u64,
}

impl Sizes {
    /// The shares of the file store. They need not fit it: see [`Topology::new`].
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        let choices = spec.choices();
        let percent = |share: u64| choices.file_store / 100 * share;
        let partition = choices.partition_max_bytes.unwrap_or_else(|| percent(defaults::PARTITION_PERCENT));
        let history = choices.file_store / (100 / defaults::HISTORY_PERCENT);
        let dead_letters = choices.file_store / (100 / defaults::DEAD_LETTER_PERCENT);
        let reserved = partition.saturating_mul(choices.partitions.into()).saturating_add(history + dead_letters);
        Self { partition, history, dead_letters, reserved, file_store: choices.file_store }
    }
}

/// A partition: its stream and its durables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// 0..N.
    pub index: u32,
    /// Its stream.
    pub stream: StreamConfig,
    /// Its durables, by shard.
    pub shards: Vec<ConsumerConfig>,
}

/// Everything the operator creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// What it follows from.
    pub spec: Spec,
    /// What it reserves.
    pub sizes: Sizes,
    /// The partitions, by index.
    pub partitions: Vec<Partition>,
    /// The stream that live events and replay read.
    pub history: StreamConfig,
    /// The stream of refused rows.
    pub dead_letters: StreamConfig,
    /// The bucket of leases.
    pub bucket: Bucket,
}

impl Topology {
    /// Lays out everything.
    ///
    /// # Errors
    /// The streams reserve more than the file store holds, or the file store is too small to share out.
    pub fn new(spec: Spec) -> Result<Self, Problems> {
        let sizes = Sizes::of(&spec);
        if sizes.partition == 0 || sizes.history == 0 || sizes.dead_letters == 0 {
            return Err(problem(format!("{} is too small to share out", show_size(sizes.file_store))));
        }
        if sizes.reserved > sizes.file_store {
            let (reserved, store) = (show_size(sizes.reserved), show_size(sizes.file_store));
            let partitions = spec.choices().partitions;
            return Err(problem(format!(
                "{store} is less than the {reserved} that {partitions} partitions, history and dead letters reserve: \
                 give more, or less to each partition with --partition-max-bytes"
            )));
        }
        let partitions = (0..spec.choices().partitions).map(|index| partition(&spec, sizes, index)).collect();
        let (history, dead_letters) = (history(&spec, sizes), dead_letters(&spec, sizes));
        let bucket = Bucket { name: spec.names().bucket.clone(), history: 1, replicas: spec.choices().replicas };
        Ok(Self { spec, sizes, partitions, history, dead_letters, bucket })
    }

    /// Every stream, in the order in which they are printed, the bucket's last.
    #[must_use]
    pub fn streams(&self) -> Vec<StreamConfig> {
        let partitions = self.partitions.iter().map(|partition| partition.stream.clone());
        partitions.chain([self.history.clone(), self.dead_letters.clone(), self.bucket.stream()]).collect()
    }
}

fn problem(text: String) -> Problems {
    Problems(vec![Problem::new("file-store", text)])
}

fn partition(spec: &Spec, sizes: Sizes, index: u32) -> Partition {
    let (names, choices) = (spec.names(), spec.choices());
    let stream = StreamConfig {
        retention: Retention::WorkQueue,
        discard: Discard::New,
        discard_new_per_subject: true,
        max_msgs_per_subject: defaults::PARTITION_PER_SUBJECT,
        duplicate_window: Some(spec.duplicate_window()),
        deny_delete: true,
        deny_purge: true,
        republish: Some(Republish { dest: names.history_subjects(), src: names.republish_source(index) }),
        metadata: BTreeMap::from([
            (METADATA_PARTITION.to_owned(), index.to_string()),
            (METADATA_PARTITIONS.to_owned(), choices.partitions.to_string()),
            (METADATA_SHARDS.to_owned(), choices.shards.to_string()),
        ]),
        ..limits(spec, names.partition_stream(index), names.partition_subjects(index), sizes.partition)
    };
    let shards = (0..choices.shards).map(|shard| durable(spec, index, shard)).collect();
    Partition { index, stream, shards }
}

fn history(spec: &Spec, sizes: Sizes) -> StreamConfig {
    let (names, max_age) = (spec.names(), spec.choices().history_max_age);
    StreamConfig {
        max_age,
        // the server's own default, said aloud because other tools have theirs; it may not outlast the messages
        duplicate_window: Some(defaults::DUPLICATE_WINDOW.min(max_age)),
        allow_direct: true,
        ..limits(spec, names.history.clone(), names.history_subjects(), sizes.history)
    }
}

fn dead_letters(spec: &Spec, sizes: Sizes) -> StreamConfig {
    let names = spec.names();
    StreamConfig {
        max_msgs_per_subject: defaults::DEAD_LETTERS_PER_SUBJECT,
        duplicate_window: Some(defaults::DEAD_LETTER_WINDOW),
        allow_direct: true,
        ..limits(spec, names.dead_letters.clone(), names.dead_letter_subjects(), sizes.dead_letters)
    }
}

fn limits(spec: &Spec, name: String, subject: String, max_bytes: u64) -> StreamConfig {
    StreamConfig {
        name,
        subjects: vec![subject],
        retention: Retention::Limits,
        discard: Discard::Old,
        discard_new_per_subject: false,
        max_bytes: i64::try_from(max_bytes).unwrap_or(i64::MAX),
        max_msgs_per_subject: -1,
        max_age: Duration::ZERO,
        storage: FILE,
        num_replicas: spec.choices().replicas,
        duplicate_window: None,
        allow_direct: false,
        allow_rollup_hdrs: false,
        deny_delete: false,
        deny_purge: false,
        republish: None,
        metadata: BTreeMap::new(),
    }
}

fn durable(spec: &Spec, partition: u32, shard: u32) -> ConsumerConfig {
    let name = spec.names().durable(shard);
    ConsumerConfig {
        name: name.clone(),
        durable_name: name,
        filter_subject: spec.names().shard_filter(partition, shard),
        deliver_policy: "all",
        ack_policy: "explicit",
        ack_wait: defaults::ACK_WAIT,
        max_deliver: -1,
        max_ack_pending: defaults::MAX_ACK_PENDING,
        max_waiting: defaults::MAX_WAITING,
        replay_policy: "instant",
        priority_policy: "pinned_client",
        priority_groups: vec![defaults::PRIORITY_GROUP.to_owned()],
        priority_timeout: defaults::PINNED_TTL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Choices;

    fn topology(choices: Choices) -> Result<Topology, Problems> {
        Topology::new(Spec::new(choices).unwrap())
    }

    #[test]
    fn sizes_are_shares_of_the_file_store() {
        let sizes = topology(Choices { partitions: 4, ..Choices::default() }).unwrap().sizes;
        assert_eq!((sizes.partition, sizes.history), (16_106_127_360, 10_737_418_240));
        assert_eq!((sizes.dead_letters, sizes.reserved), (5_368_709_120, 75 << 30));
    }

    #[test]
    fn streams_that_do_not_fit_the_file_store_are_refused() {
        assert!(topology(Choices { partitions: 5, ..Choices::default() }).is_ok());
        let text = topology(Choices { partitions: 6, ..Choices::default() }).unwrap_err().to_string();
        assert!(text.starts_with("file-store: 100Gi is less than the 105Gi that 6 partitions"), "{text}");
        let smaller = Choices { partitions: 6, partition_max_bytes: Some(10 << 30), ..Choices::default() };
        assert_eq!(topology(smaller).unwrap().sizes.partition, 10 << 30);
        let tiny = topology(Choices { file_store: 99, ..Choices::default() }).unwrap_err().to_string();
        assert!(tiny.contains("too small"), "{tiny}");
    }

    #[test]
    fn every_unit_has_a_durable_of_its_own_filter() {
        let topology = topology(Choices { partitions: 2, shards: 3, ..Choices::default() }).unwrap();
        let filters: Vec<_> =
            topology.partitions.iter().flat_map(|p| p.shards.iter().map(|s| &s.filter_subject)).collect();
        assert_eq!(filters.len(), 6);
        assert_eq!((filters[0].as_str(), filters[5].as_str()), ("wh.ingest.0.0.>", "wh.ingest.1.2.>"));
        assert_eq!(topology.streams().len(), 5);
    }
}
