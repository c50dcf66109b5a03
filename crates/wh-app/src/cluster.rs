//! Opening the queue on NATS: connect, wait for a sound topology, find its streams. And what readiness and the stop need
//! of it afterwards.

use crate::{
    StartError,
    backend::Queue,
    membership::Watched,
    nats::{options, role},
    peers::Counts,
};
use std::{fmt, sync::Arc, time::Duration};
use tracing::info;
use wh_api::{Check, Health};
use wh_config::{Config, CoordBackend, NatsQueue};
use wh_coord::Leases;
use wh_mq::nats::{self, boot};
use wh_nats::Connection;
use wh_topology::{Peer, Role};
use wh_types::{Clock, Entropy, Stop, Tasks};

/// What a server's limit of a message leaves for everything but a row.
const ENVELOPE: usize = 8 << 10;

/// What opening takes.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    queue: NatsQueue,
    role: Role,
    /// How long leases last, where they are on NATS too.
    lease: Option<Duration>,
    held_bytes: usize,
    instance: String,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// What stands behind an open queue on NATS.
pub(crate) struct Cluster {
    connection: Connection,
    broker: nats::Broker,
    check: boot::Check,
    found: boot::Report,
    recheck: Duration,
    leases: Option<Arc<Watched>>,
    tasks: Tasks,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl Opening {
    pub(crate) fn new(config: &Config, instance: &str, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let role = role(config.roles);
        Self {
            queue: config.mq.nats.clone(),
            role,
            lease: (role.ingests() && config.coord.backend == CoordBackend::Nats).then_some(config.coord.lease),
            held_bytes: config.ingest.held_bytes,
            instance: instance.to_owned(),
            clock,
            entropy,
        }
    }

    /// Connects and waits, at most `mq.nats.topology_wait`, for a topology that this process may work on.
    pub(crate) async fn open(&self) -> Result<Queue, StartError> {
        let names = self.queue.name.clone().unwrap_or_else(|| format!("wavehouse-{}", self.instance));
        let mut options = options(&self.queue, &names);
        options.clock = self.clock.clone();
        options.entropy = self.entropy.clone();
        let connection = Connection::start(options).await.map_err(StartError::Nats)?;
        let opened = self.open_on(&connection).await;
        if opened.is_err() {
            connection.close().await;
        }
        opened
    }

    async fn open_on(&self, connection: &Connection) -> Result<Queue, StartError> {
        let spec = &self.queue.topology;
        let (partitions, shards) = (spec.choices().partitions, spec.choices().shards);
        let urls = self.queue.urls.join(", ");
        info!(
            urls,
            partitions, shards, "looking for a topology of {partitions} partitions of {shards} shards on {urls}"
        );
        let tasks = Tasks::new();
        let leases = match self.lease {
            Some(duration) => Some(self.leases(connection, duration, &tasks).await?),
            None => None,
        };
        let mut check = boot::Check::new(connection, spec, self.role);
        if let Some(leases) = leases.clone() {
            check = check.with_peers(move || leases.differing());
        }
        let found = self.sound(&check, leases.as_deref()).await?;
        let options = nats::Options {
            role: self.role,
            held_bytes: self.held_bytes,
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            ..nats::Options::new(spec.clone())
        };
        let broker = nats::Broker::open(connection.clone(), options).await.map_err(StartError::Broker)?;
        info!(partitions, shards, "the queue on NATS is open: {partitions} partitions of {shards} shards");
        let cluster = Cluster {
            connection: connection.clone(),
            broker: broker.clone(),
            check,
            found,
            recheck: self.queue.topology_recheck,
            leases,
            tasks,
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        };
        Ok(Queue { ack_wait: broker.ack_wait(), broker: Arc::new(broker), cluster: Some(cluster) })
    }

    /// Waits for a topology that this process may work on, beside members that run with the same counts.
    async fn sound(&self, check: &boot::Check, leases: Option<&Watched>) -> Result<boot::Report, StartError> {
        let deadline = self.clock.now() + self.queue.topology_wait;
        let sound = async || {
            let left = deadline.saturating_duration_since(self.clock.now());
            boot::wait(check, left, &*self.clock).await.map_err(StartError::Topology)
        };
        let Some(leases) = leases else { return sound().await };
        let found = async {
            let found = sound().await?;
            leases.told_apart(deadline).await.map_err(StartError::Leases)?;
            if leases.differing().is_empty() { Ok(found) } else { sound().await }
        };
        tokio::select! {
            found = found => found,
            never = leases.look_on() => match never {},
        }
    }

    async fn leases(
        &self,
        connection: &Connection,
        duration: Duration,
        tasks: &Tasks,
    ) -> Result<Arc<Watched>, StartError> {
        let options = wh_coord::Options {
            holder: self.instance.clone(),
            duration,
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
            tasks: tasks.clone(),
        };
        let leases = wh_coord::nats::Leases::open(connection, &self.queue.topology.names().bucket, options).await;
        let leases = Arc::new(leases.map_err(StartError::Leases)?);
        let counts = Counts::of(self.queue.topology.choices());
        Ok(Arc::new(Watched::new(leases, counts, self.clock.clone())))
    }
}

impl Cluster {
    /// Where processes agree on who has which unit; with the role `ingest` only.
    pub(crate) fn leases(&self) -> Option<Arc<dyn Leases>> {
        self.leases.clone().map(|leases| leases as Arc<dyn Leases>)
    }

    /// The largest row that fits into a message.
    pub(crate) fn largest_row(&self) -> usize {
        self.connection.max_payload().saturating_sub(ENVELOPE)
    }

    /// Checks the topology again every few minutes from now on, and gives what readiness looks at (decision D33).
    pub(crate) fn watch(&self, tasks: &Tasks, stop: Stop) -> Vec<Check> {
        let recheck = boot::Recheck {
            check: self.check.clone(),
            faults: self.broker.faults().clone(),
            every: self.recheck,
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        };
        let health = recheck.start(&self.found, tasks, stop);
        let connection = self.connection.clone();
        let leases = self.leases.clone();
        let topology = move || {
            let verdict = health.now();
            let other = || leases.as_ref().and_then(|leases| leases.differing().into_iter().next());
            match (verdict.sound, other()) {
                (true, None) => Health::Good,
                (true, Some(Peer { name, partitions, shards })) => Health::Failed(format!(
                    "process {name} runs with {partitions} partitions of {shards} shards: all must run with one N and one V"
                )),
                (false, _) => Health::Failed(verdict.reason.unwrap_or_default()),
            }
        };
        let queue = move || {
            let state = connection.state();
            let why = || state.last_error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
            if state.connected { Health::Good } else { Health::Failed(format!("no NATS server is connected{}", why())) }
        };
        let broker = self.broker.clone();
        let delivery = move || {
            let stalled: Vec<_> = broker.stalled().iter().map(ToString::to_string).collect();
            match stalled.as_slice() {
                [] => Health::Good,
                units => Health::Failed(format!("rows wait and none is delivered for 30 s: {}", units.join(", "))),
            }
        };
        let mut checks = vec![
            Check { name: "queue", look: Arc::new(queue) },
            Check { name: "topology", look: Arc::new(topology) },
            Check { name: "delivery", look: Arc::new(delivery) },
        ];
        if let Some(leases) = self.leases.clone() {
            checks.push(Check { name: "membership", look: Arc::new(move || leases.health()) });
        }
        checks
    }

    /// Ends the connection. The queue is closed before.
    pub(crate) async fn close(&self) {
        if let Some(leases) = &self.leases {
            leases.close().await;
        }
        self.tasks.wait().await;
        self.connection.close().await;
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("broker", &self.broker).finish_non_exhaustive()
    }
}
