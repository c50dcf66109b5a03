//! Leases in a NATS bucket, as the restricted user, on a server of the suite's own for each case. Every member has a
//! connection of its own, through a proxy of its own.

use super::{
    super::{Arm, Member, Stand, Way},
    options,
};
use anyhow::Context as _;
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use wh_coord::{Key, nats};
use wh_nats::{Bucket, Connection, Credentials};
use wh_testkit::{
    chaos,
    nats::{OPERATOR, Options, PASSWORD, Server, Shape},
};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, renderer};
use wh_types::Secret;

/// The arm, on one release of nats-server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nats {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

#[derive(Debug)]
struct NatsStand {
    server: Server,
    spec: Spec,
    /// The operator's view of the bucket.
    bucket: Bucket,
}

#[derive(Debug)]
struct NatsWay(chaos::Tcp);

fn connecting(url: String, user: &str, inbox: &str) -> wh_nats::Options {
    let mut connecting = wh_nats::Options::new([url]);
    connecting.credentials = Credentials::Password { user: user.to_owned(), password: Secret::from(PASSWORD) };
    connecting.inbox_prefix = inbox.to_owned();
    connecting.connect_timeout = Duration::from_secs(30);
    connecting
}

#[async_trait]
impl Arm for Nats {
    fn name(&self) -> &'static str {
        self.name
    }

    fn lapses(&self) -> bool {
        true
    }

    async fn open(&self) -> anyhow::Result<Box<dyn Stand>> {
        let choices = Choices { replicas: 1, shards: 4, file_store: 1 << 30, ..Choices::default() };
        let spec = Spec::new(choices)?;
        let rights = Rights::new(&spec, Role::Ingest).print(RightsFormat::Nats);
        let server = Server::with(Options::default().version(self.version).user(Role::Ingest.user(), rights)).await?;
        let files = renderer("nats-cli").context("no renderer of that name")?.render(&Topology::new(spec.clone())?)?;
        let files = files.into_iter().filter(|file| file.name.starts_with("KV_"));
        server.operator().apply(files.map(|file| (file.name, file.text)), &Shape::default()).await?;
        let mut connecting = connecting(server.url(), OPERATOR, "_INBOX");
        // no member of the suite's, and no subject of it
        connecting.request_timeout = Duration::from_secs(20);
        let operator = Connection::open(connecting).await?;
        let bucket = Bucket::open(&operator, &spec.names().bucket).await?;
        Ok(Box::new(NatsStand { server, spec, bucket }))
    }
}

#[async_trait]
impl Stand for NatsStand {
    async fn join(&self, holder: &str, lease: Duration) -> anyhow::Result<Member> {
        let proxy = chaos::Tcp::start(self.server.port()).await?;
        let (user, inbox) = (Role::Ingest.user(), self.spec.names().inbox());
        let connection = Connection::open(connecting(proxy.url("nats"), user, inbox)).await?;
        let leases = nats::Leases::open(&connection, &self.spec.names().bucket, options(holder, lease)).await?;
        Ok(Member { leases: Arc::new(leases), way: Arc::new(NatsWay(proxy)) })
    }

    async fn overwrite(&self, key: &Key, value: &str) -> anyhow::Result<()> {
        let (key, value) = (format!("lease.{key}"), value.to_owned().into());
        match self.bucket.read(&key).await? {
            Some(entry) => self.bucket.update(&key, value, entry.revision).await?,
            None => self.bucket.create(&key, value).await?,
        };
        Ok(())
    }

    async fn remove(&self, key: &Key) -> anyhow::Result<()> {
        let key = format!("lease.{key}");
        let entry = self.bucket.read(&key).await?.context("there is nothing to remove")?;
        self.bucket.delete(&key, entry.revision).await?;
        Ok(())
    }
}

#[async_trait]
impl Way for NatsWay {
    async fn slow(&self) {
        let pace = chaos::Pace { delay: Duration::from_millis(300), bytes_per_second: None };
        self.0.slow(chaos::Way::ToClient, pace);
    }

    async fn cut(&self) {
        self.0.black_hole(chaos::Way::Both);
    }

    async fn deafen(&self) {
        self.0.black_hole(chaos::Way::ToClient);
    }

    async fn heal(&self) {
        self.0.heal();
    }
}
