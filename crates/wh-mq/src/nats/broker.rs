//! The port, method by method, over the parts of this backend.

use super::{
    error,
    fault::Faults,
    history::Hub,
    letters, open,
    options::Options,
    progress::NatsMarks,
    publish,
    shared::{PartitionStream, Shared},
    status, unit,
};
use crate::{
    Allowance, BrokerStatus, Budget, DeadLetter, DeadLetterId, DeadLetterPage, DeadLetterQuery, Error, Feed, From,
    History, Kind, Marks, Receipt, Result, Unit,
};
use async_trait::async_trait;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use wh_nats::{Connection, Publisher};
use wh_topology::Role;
use wh_types::{Block, BlockId, Cursor, Epoch, Stop, Table, Tasks, Tenant};

/// The queue. Cloning gives another handle to the same one; it runs until [`crate::Broker::close`], or until the last
/// handle is dropped. The connection is the caller's: close it after the queue.
#[derive(Clone, Debug)]
pub struct Broker(Arc<Open>);

#[derive(Debug)]
struct Open {
    shared: Arc<Shared>,
    /// Where this process serves.
    hub: Option<Arc<Hub>>,
    marks: Arc<NatsMarks>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.stop.give();
    }
}

impl Broker {
    /// Finds the streams, and for a role that ingests the durables, and begins to hear the history for one that serves.
    /// What it finds is not judged: see [`super::boot`].
    ///
    /// # Errors
    /// `NotFound` (a stream or durable that the names ask for), `Denied`, Unavailable.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn open(connection: Connection, options: Options) -> Result<Self> {
        let partitions = open::partitions(&connection, &options).await?;
        let leftovers = open::leftovers(&connection, &options).await?;
        open::streams(&connection, &options).await?;
        let publisher = Publisher::open(&connection).await.map_err(|error| error::request("open queue", error))?;
        let shared = Arc::new(Shared {
            publish: publish::Publish::new(publisher, options.publish_window),
            connection,
            partitions,
            leftovers,
            letters: letters::Letters::default(),
            units: unit::Units::default(),
            faults: Faults::default(),
            tasks: Tasks::new(),
            stop: Stop::new(),
            options,
        });
        if shared.options.role.ingests() {
            drop(shared.tasks.spawn("unit/late", unit::send_late_acks(shared.clone())));
        }
        let hub = if shared.options.role.serves() { Some(Hub::start(&shared).await?) } else { None };
        let marks = NatsMarks::start(&shared).await?;
        Ok(Self(Arc::new(Open { shared, hub, marks })))
    }

    /// What only a wrong topology explains, as it is seen in passing.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.0.shared.faults
    }

    /// Units of this process that have blocks and do not move although they pull (decision D11): readiness ends with one.
    #[must_use]
    pub fn stalled(&self) -> BTreeSet<Unit> {
        self.0.shared.units.stalled()
    }

    /// The partitions' streams, by index.
    #[must_use]
    pub fn streams(&self) -> Vec<&str> {
        self.0.shared.partitions.iter().map(PartitionStream::name).collect()
    }

    /// After how long an unsettled block comes back: the shortest time of all durables. Where this process owns no units
    /// it is not read, and a minute.
    #[must_use]
    pub fn ack_wait(&self) -> Duration {
        let durables = self.0.shared.partitions.iter().flat_map(|partition| partition.durables.values());
        durables.map(|durable| durable.ack_wait).min().unwrap_or(Duration::from_secs(60))
    }

    fn ingests(&self, op: &'static str) -> Result<&Arc<Shared>> {
        let shared = &self.0.shared;
        shared.running(op)?;
        match shared.options.role {
            Role::Ingest | Role::Both => Ok(shared),
            Role::Api => Err(Error::new(op, Kind::Unsupported("deliver: this process does not ingest"))),
        }
    }

    fn hub(&self, op: &'static str) -> Result<&Hub> {
        self.0.shared.running(op)?;
        let not_here = || Error::new(op, Kind::Unsupported("show what was stored: this process does not serve"));
        self.0.hub.as_deref().ok_or_else(not_here)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl crate::Broker for Broker {
    async fn publish(&self, blocks: &[Block]) -> Vec<Result<Receipt>> {
        publish::blocks(&self.0.shared, blocks).await
    }

    fn publish_budget(&self) -> Duration {
        self.0.shared.spec().publish_budget()
    }

    async fn stored_rows(&self, tenant: &Tenant, table: &Table, id: BlockId, at: Cursor) -> Result<Option<u32>> {
        let found = self.hub("stored rows")?.look_up(tenant, table, at).await?;
        Ok(found.filter(|found| found.id == id).map(|found| found.rows))
    }

    fn units(&self) -> Vec<Unit> {
        let choices = self.0.shared.spec().choices();
        let units = |partition| (0..choices.shards).map(move |shard| Unit { partition, shard });
        (0..choices.partitions).flat_map(units).collect()
    }

    async fn extra_units(&self) -> Result<BTreeSet<Unit>> {
        unit::extra(self.ingests("extra units")?).await
    }

    fn unit_of(&self, tenant: &Tenant, table: &Table) -> Unit {
        let route = self.0.shared.route(tenant, table);
        Unit { partition: route.partition, shard: route.shard }
    }

    fn epoch_of(&self, tenant: &Tenant, table: &Table) -> Option<Epoch> {
        Some(self.0.shared.partition_of(tenant, table).epoch())
    }

    async fn feed(&self, unit: Unit, budget: Budget) -> Result<Box<dyn Feed>> {
        unit::open(self.ingests("feed")?, unit, budget).await
    }

    async fn release_orphan(&self, unit: Unit) -> Result<()> {
        unit::release_orphan(self.ingests("release orphan")?, unit).await
    }

    async fn unowned(&self) -> Result<BTreeSet<Unit>> {
        unit::unowned(self.ingests("unowned")?).await
    }

    fn marks(&self) -> Arc<dyn Marks> {
        Arc::clone(&self.0.marks) as Arc<dyn Marks>
    }

    async fn history(&self, tenant: &Tenant, table: &Table, from: From) -> Result<Box<dyn History>> {
        self.hub("history")?.open(tenant, table, from).await
    }

    async fn dead_letter(&self, letters: &[DeadLetter]) -> Vec<Result<()>> {
        letters::park(&self.0.shared, letters).await
    }

    async fn dead_letters(&self, tenant: &Tenant, query: &DeadLetterQuery) -> Result<DeadLetterPage> {
        letters::list(&self.0.shared, tenant, query).await
    }

    async fn purge_dead_letters(&self, tenant: &Tenant, ids: &[DeadLetterId]) -> Result<usize> {
        letters::purge(&self.0.shared, tenant, ids).await
    }

    async fn set_allowance(&self, _: &Tenant, _: Allowance) -> Result<()> {
        self.0.shared.running("set allowance")?;
        Err(Error::new("set allowance", Kind::Unsupported("set budgets: the operator's streams have them")))
    }

    async fn status(&self) -> Result<BrokerStatus> {
        status::status(&self.0.shared).await
    }

    async fn close(&self) {
        let shared = &self.0.shared;
        shared.stop.give();
        unit::close(shared).await;
        shared.publish.drained().await;
        shared.tasks.wait().await;
    }
}
