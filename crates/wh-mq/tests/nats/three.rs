//! Three servers as a cluster, with a topology of three copies.

use crate::stand::{choices, create};
use anyhow::{Context as _, Result};
use std::time::Duration;
use wh_mq::nats;
use wh_nats::{Connection, Credentials};
use wh_testkit::{
    nats::{Cluster, Options, PASSWORD, Shape},
    until,
};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology};
use wh_types::Secret;

const SECOND: Duration = Duration::from_secs(1);

/// Three servers, everything on all of them.
#[derive(Debug)]
pub(crate) struct Three {
    pub(crate) cluster: Cluster,
    pub(crate) spec: Spec,
}

impl Three {
    pub(crate) async fn new() -> Result<Self> {
        let choices = Choices { shards: 1, replicas: 3, publish_timeout: 20 * SECOND, ..choices() };
        let topology = Topology::new(Spec::new(choices)?)?;
        let rights = Rights::new(&topology.spec, Role::Both).print(RightsFormat::Nats);
        let cluster = Cluster::with(Options::default().user(Role::Both.user(), rights)).await?;
        let shape = Shape { pinned_ttl: Some(5 * SECOND), ..Shape::default() };
        // a cluster that was just elected may not know yet that all its servers have room
        let make = || async { create(&mut cluster.operator(), &topology, &shape).await };
        until(90 * SECOND, "the topology is created", make).await?;
        Ok(Self { cluster, spec: topology.spec })
    }

    /// How WaveHouse connects to one of them.
    pub(crate) fn connecting(&self, node: usize) -> wh_nats::Options {
        self.options([self.cluster.node(node).url()])
    }

    fn options<U: Into<String>>(&self, urls: impl IntoIterator<Item = U>) -> wh_nats::Options {
        let mut options = wh_nats::Options::new(urls);
        let password = Secret::from(PASSWORD);
        options.credentials = Credentials::Password { user: Role::Both.user().into(), password };
        options.inbox_prefix = self.spec.names().inbox().to_owned();
        options
    }

    pub(crate) async fn broker(&self) -> Result<nats::Broker> {
        let connection = Connection::open(self.options(self.cluster.urls())).await.context("connecting")?;
        Ok(nats::Broker::open(connection, nats::Options::new(self.spec.clone())).await?)
    }

    pub(crate) fn stream(&self) -> String {
        self.spec.names().partition_stream(0)
    }

    pub(crate) fn durable(&self) -> String {
        self.spec.names().durable(0)
    }
}
