//! A server of its own for every case: it is up in 0.2 s, and no topology ever follows another one of its name.

use super::{Opened, profile, spec};
use crate::{Arm, Profile, Setup, Stand};
use anyhow::Context as _;
use async_trait::async_trait;
use std::time::Duration;
use wh_nats::Credentials;
use wh_testkit::nats::{Options, PASSWORD, Server, Shape};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, defaults, renderer};
use wh_types::Secret;

/// The arm, on one release of nats-server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

#[async_trait]
impl Arm for Own {
    fn name(&self) -> &'static str {
        self.name
    }

    fn profile(&self) -> Profile {
        profile()
    }

    async fn open(&self, setup: Setup) -> anyhow::Result<Box<dyn Stand>> {
        let spec = spec(&setup, &Choices::default().prefix)?;
        let server = start(self.version, &spec, &setup).await?;
        let mut connecting = wh_nats::Options::new([server.url()]);
        let (user, password) = (Role::Both.user().to_owned(), Secret::from(PASSWORD));
        connecting.credentials = Credentials::Password { user, password };
        connecting.inbox_prefix = spec.names().inbox().to_owned();
        // a machine that stalls for some seconds answers all the same
        (connecting.connect_timeout, connecting.request_timeout) = (Duration::from_secs(30), Duration::from_secs(20));
        Ok(Box::new(Opened::new(connecting, spec, server).await?))
    }
}

async fn start(version: &'static str, spec: &Spec, setup: &Setup) -> anyhow::Result<Server> {
    let topology = Topology::new(spec.clone())?;
    let rights = Rights::new(spec, Role::Both).print(RightsFormat::Nats);
    let server = Server::with(Options::default().version(version).user(Role::Both.user(), rights)).await?;
    let shape = Shape {
        ack_wait: Some(setup.ack_wait),
        pinned_ttl: Some(defaults::MIN_PINNED_TTL),
        duplicate_window: Some(setup.duplicate_window),
        ..Shape::default()
    };
    let files = renderer("nats-cli").context("no renderer of that name")?.render(&topology)?;
    let files = files.into_iter().map(|file| (file.name, file.text));
    server.operator().apply(files, &shape).await.context("creating the topology")?;
    Ok(server)
}
