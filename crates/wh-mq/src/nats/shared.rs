//! What publish, units, history and letters share: the connection, the names, the streams as they were found.

use super::{cursor::epoch, fault::Faults, letters::Letters, options::Options, publish::Publish, unit::Units};
use crate::{Error, Kind, Result, Unit};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use wh_nats::Connection;
use wh_topology::{Names, Route, Spec, route};
use wh_types::{Clock, Cursor, Entropy, Epoch, Stop, Table, Tasks, Tenant, Timestamp, TopicKey};

/// A partition as it was found.
#[derive(Debug)]
pub(crate) struct PartitionStream {
    /// 0..N.
    pub(crate) index: u32,
    /// Its stream's name.
    pub(crate) stream: String,
    /// Its durables as they were found, by shard; also such that a higher count left behind. Empty where this process owns
    /// no units.
    pub(crate) durables: BTreeMap<u32, Durable>,
    epoch: AtomicU32,
}

impl PartitionStream {
    pub(crate) fn new(index: u32, stream: String, epoch: Epoch, durables: BTreeMap<u32, Durable>) -> Self {
        Self { index, stream, durables, epoch: AtomicU32::new(epoch.0) }
    }

    /// Which history its sequences count in.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Relaxed))
    }

    /// Its stream was seen again, with the time it was made. Gives whether it is another one than before.
    pub(crate) fn seen(&self, created: Timestamp) -> bool {
        let now = epoch(&self.stream, created).0;
        self.epoch.swap(now, Ordering::Relaxed) != now
    }

    /// The place of a sequence.
    pub(crate) fn cursor(&self, sequence: u64) -> Cursor {
        Cursor { epoch: self.epoch(), sequence }
    }

    pub(crate) fn name(&self) -> &str {
        &self.stream
    }
}

/// A unit's durable as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Durable {
    /// Its name.
    pub(crate) name: String,
    /// After how long an unsettled block comes back.
    pub(crate) ack_wait: Duration,
    /// How long a pin outlives its last renewal.
    pub(crate) pinned_ttl: Duration,
    /// Most unsettled blocks.
    pub(crate) max_ack_pending: u64,
}

/// The queue's parts have it in common.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Pulls, acks, requests, subscriptions.
    pub(crate) connection: Connection,
    /// How it was opened.
    pub(crate) options: Options,
    /// By index.
    pub(crate) partitions: Vec<PartitionStream>,
    /// Partitions that a higher count left behind. Only units of them are of use: nothing is published there.
    pub(crate) leftovers: Vec<PartitionStream>,
    /// The way to the partitions.
    pub(crate) publish: Publish,
    /// Where letters stand.
    pub(crate) letters: Letters,
    /// Which units this process holds.
    pub(crate) units: Units,
    /// What only a wrong topology explains.
    pub(crate) faults: Faults,
    /// Tasks of this queue.
    pub(crate) tasks: Tasks,
    /// Given by `close`.
    pub(crate) stop: Stop,
}

impl Shared {
    pub(crate) fn spec(&self) -> &Spec {
        &self.options.spec
    }

    pub(crate) fn names(&self) -> &Names {
        self.options.spec.names()
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.options.clock
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.options.entropy
    }

    /// Where a table's blocks go.
    pub(crate) fn route(&self, tenant: &Tenant, table: &Table) -> Route {
        let choices = self.spec().choices();
        route(tenant, table, choices.partitions, choices.shards)
    }

    /// The partition a table's blocks are stored in.
    pub(crate) fn partition_of(&self, tenant: &Tenant, table: &Table) -> &PartitionStream {
        // `open` found every partition that a route can give
        &self.partitions[self.route(tenant, table).partition as usize]
    }

    /// The partition and the durable of a unit.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn durable(&self, op: &'static str, unit: Unit) -> Result<(&PartitionStream, &Durable)> {
        let missing = || Error::new(op, Kind::NotFound(format!("unit {unit}").into()));
        let partition = self.partition(unit).ok_or_else(missing)?;
        Ok((partition, partition.durables.get(&unit.shard).ok_or_else(missing)?))
    }

    /// The partition of a unit, were it one that was left behind.
    pub(crate) fn partition(&self, unit: Unit) -> Option<&PartitionStream> {
        let left = || self.leftovers.iter().find(|partition| partition.index == unit.partition);
        self.partitions.get(unit.partition as usize).or_else(left)
    }

    /// Where a block of a unit stands.
    pub(crate) fn cursor(&self, unit: Unit, sequence: u64) -> Cursor {
        // a unit that has blocks here was opened on a partition that was found
        self.partition(unit).map_or(Cursor { epoch: Epoch(0), sequence }, |partition| partition.cursor(sequence))
    }

    /// Whether a unit is beyond the configured counts.
    pub(crate) fn is_extra(&self, unit: Unit) -> bool {
        let choices = self.spec().choices();
        unit.partition >= choices.partitions || unit.shard >= choices.shards
    }

    /// The tail of a table's subjects.
    pub(crate) fn key(tenant: &Tenant, table: &Table) -> TopicKey {
        TopicKey::new(tenant.clone(), table.clone())
    }

    /// A block's subject in a partition after prefix, partition and shard.
    pub(crate) fn ingest_tail<'a>(&self, subject: &'a str) -> Option<&'a str> {
        let rest = subject.strip_prefix(self.names().prefix.as_str())?.strip_prefix(".ingest.")?;
        rest.splitn(3, '.').nth(2)
    }

    /// Whether the queue is open.
    ///
    /// # Errors
    /// `Stopping`.
    pub(crate) fn running(&self, op: &'static str) -> Result<()> {
        if self.stop.given() { Err(Error::new(op, Kind::Stopping)) } else { Ok(()) }
    }
}
