//! Names and subjects: what each object is called, and which messages it takes.

use crate::placement::Route;
use wh_types::TopicKey;

/// Every name that follows from an operator's choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The first token of every subject.
    pub prefix: String,
    /// What the durables' names begin with.
    pub ingest_consumer: String,
    /// The history's stream.
    pub history: String,
    /// The dead letters' stream.
    pub dead_letters: String,
    /// The bucket of leases.
    pub bucket: String,
    /// What a client's inboxes begin with.
    pub inbox: String,
}

impl Names {
    /// The stream of partition `partition` as it is generated; an operator may call it otherwise.
    #[must_use]
    pub fn partition_stream(&self, partition: u32) -> String {
        format!("{}_INGEST_{partition}", self.prefix.to_ascii_uppercase())
    }

    /// The durable of shard `shard`, the same on every partition.
    #[must_use]
    pub fn durable(&self, shard: u32) -> String {
        format!("{}-{shard}", self.ingest_consumer)
    }

    /// The shard that a durable's name stands for: decimal, never padded with zeros, below 2^31.
    #[must_use]
    pub fn shard_of(&self, durable: &str) -> Option<u32> {
        let digits = durable.strip_prefix(&self.ingest_consumer)?.strip_prefix('-')?;
        let padded = digits.len() > 1 && digits.starts_with('0');
        if padded || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok().filter(|shard| *shard <= i32::MAX.unsigned_abs())
    }

    /// The id of a unit: one durable on one stream.
    #[must_use]
    pub fn unit(stream: &str, durable: &str) -> String {
        format!("{stream}/{durable}")
    }

    /// What every partition's subjects begin with.
    #[must_use]
    pub fn ingest_subjects(&self) -> String {
        format!("{}.ingest.>", self.prefix)
    }

    /// What partition `partition` takes.
    #[must_use]
    pub fn partition_subjects(&self, partition: u32) -> String {
        format!("{}.ingest.{partition}.>", self.prefix)
    }

    /// The partition whose subjects these are: the reverse of [`Self::partition_subjects`].
    #[must_use]
    pub fn partition_of(&self, subjects: &str) -> Option<u32> {
        let rest = subjects.strip_prefix(&self.prefix)?.strip_prefix(".ingest.")?;
        let partition = rest.strip_suffix(".>")?.parse().ok()?;
        (self.partition_subjects(partition) == subjects).then_some(partition)
    }

    /// A subject of partition `partition` that no block has: the stream that takes it is the partition's.
    #[must_use]
    pub fn partition_probe(&self, partition: u32) -> String {
        format!("{}.ingest.{partition}.x", self.prefix)
    }

    /// What shard `shard` of partition `partition` is filtered by.
    #[must_use]
    pub fn shard_filter(&self, partition: u32, shard: u32) -> String {
        format!("{}.ingest.{partition}.{shard}.>", self.prefix)
    }

    /// What the partition republishes: its tokens of partition and shard are dropped, the rest is kept.
    #[must_use]
    pub fn republish_source(&self, partition: u32) -> String {
        format!("{}.ingest.{partition}.*.>", self.prefix)
    }

    /// What the history takes.
    #[must_use]
    pub fn history_subjects(&self) -> String {
        format!("{}.hist.>", self.prefix)
    }

    /// What the dead letters' stream takes.
    #[must_use]
    pub fn dead_letter_subjects(&self) -> String {
        format!("{}.dlq.>", self.prefix)
    }

    /// A subject of the dead letters that no dead letter has.
    #[must_use]
    pub fn dead_letter_probe(&self) -> String {
        format!("{}.dlq.x", self.prefix)
    }

    /// Where workers announce how far they are. No stream takes it.
    #[must_use]
    pub fn progress_subjects(&self) -> String {
        format!("{}.done.>", self.prefix)
    }

    /// The stream under the bucket.
    #[must_use]
    pub fn bucket_stream(&self) -> String {
        format!("KV_{}", self.bucket)
    }

    /// What the bucket's stream takes.
    #[must_use]
    pub fn bucket_subjects(&self) -> String {
        format!("$KV.{}.>", self.bucket)
    }

    /// The keys of the bucket that are leases.
    #[must_use]
    pub fn lease_subjects(&self) -> String {
        format!("$KV.{}.lease.>", self.bucket)
    }

    /// What a client's inboxes begin with.
    #[must_use]
    pub fn inbox(&self) -> &str {
        &self.inbox
    }

    /// Where a table's blocks are published.
    #[must_use]
    pub fn ingest_subject(&self, route: Route, key: &TopicKey) -> String {
        format!("{}.ingest.{}.{}.{key}", self.prefix, route.partition, route.shard)
    }

    /// Where a table's blocks are heard.
    #[must_use]
    pub fn history_subject(&self, key: &TopicKey) -> String {
        format!("{}.hist.{key}", self.prefix)
    }

    /// Where a table's dead letters are parked.
    #[must_use]
    pub fn dead_letter_subject(&self, key: &TopicKey) -> String {
        format!("{}.dlq.{key}", self.prefix)
    }

    /// Where a table's progress is announced.
    #[must_use]
    pub fn progress_subject(&self, key: &TopicKey) -> String {
        format!("{}.done.{key}", self.prefix)
    }
}

/// `[a-z0-9_-]+`, bounded.
pub(crate) fn is_prefix(text: &str) -> bool {
    is_name(text) && !text.bytes().any(|b| b.is_ascii_uppercase())
}

/// `[A-Za-z0-9_-]+`, bounded.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=crate::defaults::MAX_NAME).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Names with dots between, bounded.
pub(crate) fn is_inbox(text: &str) -> bool {
    text.len() <= crate::defaults::MAX_NAME && text.split('.').all(is_name)
}

#[cfg(test)]
mod tests {
    use crate::{Choices, Route, Spec};
    use wh_types::{Table, Tenant, TopicKey};

    #[test]
    fn a_durable_is_read_back_only_in_its_one_spelling() {
        let spec = Spec::new(Choices::default()).unwrap();
        let shard = |name: &str| spec.names().shard_of(name);
        for good in [0, 7, 31, 255, 2_147_483_647] {
            assert_eq!(shard(&spec.names().durable(good)), Some(good));
        }
        for bad in ["wh-ingest", "wh-ingest-", "wh-ingest-00", "wh-ingest-07", "wh-ingest-+1", "wh-ingest--1"] {
            assert_eq!(shard(bad), None, "{bad}");
        }
        for bad in ["wh-ingest-2147483648", "wh-ingest-99999999999", "wh-ingest-1x", "other-1", "wh-ingest1"] {
            assert_eq!(shard(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_partition_is_read_back_only_from_its_own_subjects() {
        let spec = Spec::new(Choices { prefix: "prod".into(), ..Choices::default() }).unwrap();
        let names = spec.names();
        for good in [0, 7, 1023] {
            assert_eq!(names.partition_of(&names.partition_subjects(good)), Some(good));
        }
        for bad in
            ["prod.ingest.>", "prod.ingest.07.>", "prod.ingest.1", "prod.ingest.1.2.>", "wh.ingest.1.>", "prod.hist.>"]
        {
            assert_eq!(names.partition_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_tail_of_a_subject_is_the_same_everywhere() {
        let spec = Spec::new(Choices { prefix: "prod".into(), ..Choices::default() }).unwrap();
        let names = spec.names();
        let key = TopicKey::new(Tenant::new("acme").unwrap(), Table::new("a.b").unwrap());
        let route = Route { partition: 3, shard: 20 };
        assert_eq!(names.ingest_subject(route, &key), "prod.ingest.3.20.acme.a%2Eb");
        assert_eq!(names.history_subject(&key), "prod.hist.acme.a%2Eb");
        assert_eq!(names.dead_letter_subject(&key), "prod.dlq.acme.a%2Eb");
        assert_eq!(names.progress_subject(&key), "prod.done.acme.a%2Eb");
        assert_eq!((names.partition_stream(0).as_str(), names.history.as_str()), ("PROD_INGEST_0", "PROD_HISTORY"));
        assert_eq!((names.dead_letters.as_str(), names.bucket.as_str()), ("PROD_DLQ", "prod_coord"));
        assert_eq!(names.inbox(), "_INBOX_prod");
    }
}
