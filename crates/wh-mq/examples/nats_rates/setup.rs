//! One server with the topologies that are measured, each with its restricted user.

use std::time::Duration;
use wh_mq::nats;
use wh_nats::{Connection, Credentials};
use wh_testkit::{
    free_port,
    nats::{Options, PASSWORD, Server, Shape},
    servers::NATS_VERSIONS,
};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, renderer};
use wh_types::Secret;

/// A topology.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) prefix: &'static str,
    pub(crate) partitions: u32,
    pub(crate) shards: u32,
}

impl Place {
    pub(crate) fn spec(self) -> Spec {
        let Self { prefix, partitions, shards } = self;
        let prefix = prefix.to_owned();
        let file_store = 64 << 30;
        let partition_max_bytes = Some(4 << 30);
        Spec::new(Choices {
            prefix,
            partitions,
            shards,
            replicas: 1,
            file_store,
            partition_max_bytes,
            ..Choices::default()
        })
        .unwrap()
    }
}

pub(crate) struct Setup {
    pub(crate) server: Server,
    pub(crate) version: &'static str,
    pub(crate) monitor: u16,
}

impl Setup {
    pub(crate) async fn start(version: Option<&str>, ttl: Duration) -> Self {
        let wanted = version.unwrap_or(NATS_VERSIONS[0]);
        let version = NATS_VERSIONS.into_iter().find(|known| *known == wanted).unwrap();
        let monitor = free_port().unwrap();
        let mut options = Options { jetstream: "max_file_store: 200G".into(), ..Options::default() }.version(version);
        options = options.lines(&format!("http: \"127.0.0.1:{monitor}\""));
        for place in super::PLACES {
            options = options.user(place.prefix, Rights::new(&place.spec(), Role::Both).print(RightsFormat::Nats));
        }
        let server = Server::with(options).await.unwrap();
        for place in super::PLACES {
            let files = renderer("nats-cli").unwrap().render(&Topology::new(place.spec()).unwrap()).unwrap();
            let files = files.into_iter().map(|file| (file.name, file.text));
            server.operator().apply(files, &Shape { pinned_ttl: Some(ttl), ..Shape::default() }).await.unwrap();
        }
        Self { server, version, monitor }
    }

    pub(crate) async fn broker(&self, place: Place, role: Role) -> nats::Broker {
        broker(&self.server.url(), place, role).await
    }
}

/// A queue on a connection of its own.
pub(crate) async fn broker(url: &str, place: Place, role: Role) -> nats::Broker {
    let mut options = wh_nats::Options::new([url]);
    options.inbox_prefix = format!("_INBOX_{}", place.prefix);
    options.credentials = Credentials::Password { user: place.prefix.into(), password: Secret::from(PASSWORD) };
    let mut queue = nats::Options::new(place.spec());
    queue.role = role;
    nats::Broker::open(Connection::open(options).await.unwrap(), queue).await.unwrap()
}
