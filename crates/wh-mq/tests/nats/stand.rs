//! A server of a test's own with a topology on it, and queues opened there as the restricted user.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use wh_mq::{Broker as _, Receipt, nats};
use wh_nats::{Connection, Credentials};
use wh_testkit::nats::{Operator, Options, PASSWORD, Server, Shape};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, renderer};
use wh_types::{Block, BlockId, Encoding, Entropy as _, OsEntropy, Secret, Table, Tenant, Timestamp, frame};

/// A server, its topology, and the user that WaveHouse is there.
#[derive(Debug)]
pub(crate) struct Stand {
    pub(crate) server: Server,
    pub(crate) spec: Spec,
}

/// What a test that says nothing else has: one partition, two shards, a publish timeout that a busy machine keeps.
pub(crate) fn choices() -> Choices {
    Choices {
        partitions: 1,
        shards: 2,
        replicas: 1,
        file_store: 1 << 30,
        publish_timeout: Duration::from_secs(4),
        // a claim must outlast every publish, and some tests are patient: nothing is claimed here
        dedupe_lease: Duration::ZERO,
        ..Choices::default()
    }
}

impl Stand {
    pub(crate) async fn new() -> Result<Self> {
        Self::with(choices(), &Shape::default(), Options::default()).await
    }

    /// The restricted user is added to the options.
    pub(crate) async fn with(choices: Choices, shape: &Shape, options: Options) -> Result<Self> {
        let topology = Topology::new(Spec::new(choices)?)?;
        let rights = Rights::new(&topology.spec, Role::Both).print(RightsFormat::Nats);
        let server = Server::with(options.user(Role::Both.user(), rights)).await?;
        create(&mut server.operator(), &topology, shape).await?;
        Ok(Self { server, spec: topology.spec })
    }

    pub(crate) fn operator(&self) -> Operator {
        self.server.operator()
    }

    /// How WaveHouse connects, over another port than the server's where one is given.
    pub(crate) fn connecting(&self, through: Option<u16>) -> wh_nats::Options {
        let port = through.unwrap_or_else(|| self.server.port());
        let mut options = wh_nats::Options::new([format!("nats://127.0.0.1:{port}")]);
        let password = Secret::from(PASSWORD);
        options.credentials = Credentials::Password { user: Role::Both.user().into(), password };
        options.inbox_prefix = self.spec.names().inbox().to_owned();
        // a machine that stalls for some seconds answers all the same
        (options.connect_timeout, options.request_timeout) = (Duration::from_secs(30), Duration::from_secs(6));
        options
    }

    pub(crate) async fn connect(&self) -> Result<Connection> {
        Connection::open(self.connecting(None)).await.context("connecting")
    }

    pub(crate) async fn broker(&self) -> Result<nats::Broker> {
        self.broker_on(self.connect().await?).await
    }

    pub(crate) async fn broker_on(&self, connection: Connection) -> Result<nats::Broker> {
        Ok(nats::Broker::open(connection, nats::Options::new(self.spec.clone())).await?)
    }

    /// What the partition's stream holds.
    pub(crate) async fn messages(&self) -> Result<u64> {
        let info = self.operator().stream_info(&self.spec.names().partition_stream(0)).await?;
        info["state"]["messages"].as_u64().context("a stream counts its messages")
    }
}

/// Creates a topology from our own files for the command line.
pub(crate) async fn create(operator: &mut Operator, topology: &Topology, shape: &Shape) -> Result<()> {
    let files = renderer("nats-cli").context("a renderer")?.render(topology)?;
    operator.apply(files.into_iter().map(|file| (file.name, file.text)), shape).await
}

pub(crate) fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

pub(crate) fn table(name: &str) -> Table {
    Table::new(name).unwrap()
}

/// A block of `acme` under an id of its own.
pub(crate) fn block(name: &str, rows: u32) -> Block {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let text: String = (0..rows).map(|row| format!("{{\"block\":{n},\"row\":{row}}}\n")).collect();
    let (mut id, entropy) = ([0; 16], OsEntropy.next_u64());
    id[..8].copy_from_slice(&entropy.to_le_bytes());
    id[8..].copy_from_slice(&n.to_le_bytes());
    Block {
        id: BlockId(id),
        tenant: tenant(),
        table: table(name),
        received: Timestamp::from_millis(1_750_000_000_000),
        rows,
        decoded_bytes: u32::try_from(text.len()).unwrap(),
        encoding: Encoding::Zstd,
        body: if rows == 0 { Bytes::new() } else { frame::encode(Encoding::Zstd, text.as_bytes()).unwrap() },
        chain: None,
        trace: None,
    }
}

/// Publishes one block.
pub(crate) async fn publish(broker: &nats::Broker, block: &Block) -> wh_mq::Result<Receipt> {
    let mut outcomes = broker.publish(std::slice::from_ref(block)).await;
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}
