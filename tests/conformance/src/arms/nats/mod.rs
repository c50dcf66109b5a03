//! The queue on NATS, as the restricted user whose rights `wavehouse mq permissions` prints: on servers of the suite's
//! own, one for each case, or on one that the user names.

mod live;
mod own;

pub use live::{Live, LiveOptions};
pub(crate) use own::Own;

use crate::{Ending, Profile, Setup, Stand};
use anyhow::Context as _;
use async_trait::async_trait;
use std::{fmt::Debug, sync::Arc, time::Duration};
use wh_mq::{Broker, nats};
use wh_nats::Connection;
use wh_topology::{Choices, Role, Spec};

/// The largest body of a block where a server takes 1 MiB, as it does by itself.
const MAX_BODY: usize = 1024 * 1024 - 8 * 1024;

fn profile() -> Profile {
    Profile {
        allowances: false,
        purge: true,
        tables_take_turns: false,
        whole_history: true,
        ack_wait: true,
        max_body: MAX_BODY,
    }
}

/// What the topology of a case follows from. One partition: a case counts its units by shards, and compares cursors of
/// tables with each other.
fn spec(setup: &Setup, prefix: &str) -> anyhow::Result<Spec> {
    let choices = Choices {
        prefix: prefix.to_owned(),
        partitions: 1,
        shards: setup.shards,
        replicas: 1,
        file_store: 1 << 30,
        publish_timeout: Duration::from_secs(2),
        ..Choices::default()
    };
    Ok(Spec::new(choices)?)
}

/// A queue and its connection. `keep` is what must live as long.
#[derive(Debug)]
struct Opened<K> {
    connecting: wh_nats::Options,
    spec: Spec,
    connection: Connection,
    broker: nats::Broker,
    _keep: K,
}

impl<K> Opened<K> {
    async fn new(connecting: wh_nats::Options, spec: Spec, keep: K) -> anyhow::Result<Self> {
        let (connection, broker) = open(&connecting, &spec).await?;
        Ok(Self { connecting, spec, connection, broker, _keep: keep })
    }
}

async fn open(connecting: &wh_nats::Options, spec: &Spec) -> anyhow::Result<(Connection, nats::Broker)> {
    let connection = Connection::open(connecting.clone()).await.context("connecting")?;
    let options = nats::Options { role: Role::Both, ..nats::Options::new(spec.clone()) };
    let broker = nats::Broker::open(connection.clone(), options).await?;
    Ok((connection, broker))
}

#[async_trait]
impl<K: Debug + Send + Sync> Stand for Opened<K> {
    fn broker(&self) -> Arc<dyn Broker> {
        Arc::new(self.broker.clone())
    }

    async fn reopen(&mut self, ending: Ending) -> anyhow::Result<()> {
        match ending {
            Ending::Clean => {
                self.broker.close().await;
                self.connection.close().await;
            }
            // to a server a process that is killed is a connection that ends: nothing is unpinned, halted or settled
            Ending::Crash => {
                self.connection.close().await;
                self.broker.close().await;
            }
        }
        (self.connection, self.broker) = open(&self.connecting, &self.spec).await?;
        Ok(())
    }
}
