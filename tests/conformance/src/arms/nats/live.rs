//! A NATS that the user names. With an operator's credentials the suite creates a topology there and deletes it at the
//! end; without them it uses one that exists and is empty, and removes only messages.
//!
//! Cases run one after another on the one topology, each under tenants of its own, since nobody but an operator can
//! empty a history.

mod clean;
mod operate;
mod options;

pub use options::LiveOptions;

use super::{Opened, profile, spec};
use crate::{Arm, Profile, Setup, Stand};
use anyhow::{Context as _, bail, ensure};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::sync::Mutex;
use wh_mq::Broker as _;
use wh_nats::Connection;
use wh_topology::{METADATA_PARTITIONS, METADATA_SHARDS, Spec};

/// Shards of a topology that the suite makes: as many as any case wants.
const SHARDS: u32 = 4;

/// The arm. Its cases share one topology and take turns.
#[derive(Debug)]
pub struct Live {
    options: LiveOptions,
    turn: Arc<Mutex<Option<Ready>>>,
}

/// The topology once it is there.
#[derive(Clone, Copy, Debug)]
struct Ready {
    shards: u32,
    ack_wait: Option<Duration>,
}

impl Live {
    /// On the NATS that the options name.
    #[must_use]
    pub fn new(options: LiveOptions) -> Self {
        Self { options, turn: Arc::default() }
    }

    /// The choices of a case: at most as many shards as there are.
    fn spec(&self, setup: &Setup, shards: u32) -> anyhow::Result<Spec> {
        spec(&Setup { shards: setup.shards.min(shards), ..setup.clone() }, &self.options.prefix)
    }

    async fn prepare(&self, setup: &Setup) -> anyhow::Result<Ready> {
        let Some(operator) = &self.options.operator else { return self.existing(setup).await };
        let connection =
            Connection::open(self.options.connecting(operator, "_INBOX")).await.context("as the operator")?;
        let spec = self.spec(&Setup { shards: SHARDS, ..setup.clone() }, SHARDS)?;
        operate::create(&connection, spec, setup.duplicate_window).await?;
        connection.close().await;
        Ok(Ready { shards: SHARDS, ack_wait: None })
    }

    /// What is there, if it is empty.
    async fn existing(&self, setup: &Setup) -> anyhow::Result<Ready> {
        let probe = self.spec(setup, 1)?;
        let connection = Connection::open(self.options.connecting(&self.options.user, probe.names().inbox())).await?;
        let api = connection.api();
        let streams = api.stream_names(&probe.names().partition_probe(0)).await?;
        let [stream] = &streams[..] else {
            bail!(
                "no stream takes {}: create a topology of the prefix {} (`wavehouse mq manifests`), or give \
                 --operator-creds",
                probe.names().partition_probe(0),
                self.options.prefix
            )
        };
        let info = api.stream_info(stream).await?;
        let count = |key: &str| info["config"]["metadata"][key].as_str().and_then(|text| text.parse::<u32>().ok());
        let (partitions, shards) = (count(METADATA_PARTITIONS), count(METADATA_SHARDS));
        ensure!(
            partitions == Some(1),
            "the suite wants a topology of one partition, {stream} is one of {partitions:?}"
        );
        let shards = shards.with_context(|| format!("{stream} does not say how many shards it has"))?;
        for stream in [stream, &probe.names().dead_letters] {
            let messages = api.stream_state(stream).await?.messages;
            ensure!(
                messages == 0,
                "{stream} holds {messages} messages: the suite removes what it finds and runs only on an empty topology"
            );
        }
        connection.close().await;
        Ok(Ready { shards, ack_wait: None })
    }
}

#[async_trait]
impl Arm for Live {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn profile(&self) -> Profile {
        // without an operator the topology is older than the suite
        let own = self.options.operator.is_some();
        Profile { ack_wait: own, whole_history: own, ..profile() }
    }

    fn shared(&self) -> bool {
        true
    }

    async fn open(&self, setup: Setup) -> anyhow::Result<Box<dyn Stand>> {
        let mut turn = Arc::clone(&self.turn).lock_owned().await;
        let mut ready = match *turn {
            Some(ready) => ready,
            None => self.prepare(&setup).await?,
        };
        let spec = self.spec(&setup, ready.shards)?;
        if let Some(operator) = &self.options.operator {
            let connection = Connection::open(self.options.connecting(operator, "_INBOX")).await?;
            operate::empty(&connection, &self.spec(&Setup { shards: SHARDS, ..setup.clone() }, SHARDS)?).await?;
            if ready.ack_wait != Some(setup.ack_wait) {
                operate::set_ack_wait(&connection, &spec, setup.ack_wait).await?;
                ready.ack_wait = Some(setup.ack_wait);
            }
            connection.close().await;
        }
        *turn = Some(ready);
        let all = self.spec(&Setup { shards: ready.shards, ..setup.clone() }, ready.shards)?;
        let connecting = self.options.connecting(&self.options.user, spec.names().inbox());
        if self.options.operator.is_none() {
            // over all units, of which the case may take fewer
            let stand = Opened::new(connecting.clone(), all.clone(), ()).await?;
            clean::drain(&stand.connection, &all, &stand.broker).await.context("removing what the case before left")?;
            stand.broker.close().await;
            stand.connection.close().await;
        }
        Ok(Box::new(Opened::new(connecting, spec, turn).await?))
    }

    async fn finish(&self) -> anyhow::Result<()> {
        let Some(ready) = self.turn.lock().await.take() else { return Ok(()) };
        let setup = Setup { shards: ready.shards, ..crate::stage::setup() };
        let spec = self.spec(&setup, ready.shards)?;
        let Some(operator) = &self.options.operator else {
            let connecting = self.options.connecting(&self.options.user, spec.names().inbox());
            let stand = Opened::new(connecting, spec.clone(), ()).await?;
            return clean::drain(&stand.connection, &spec, &stand.broker)
                .await
                .context("removing what the last case left");
        };
        let connection = Connection::open(self.options.connecting(operator, "_INBOX")).await?;
        operate::delete(&connection, &spec).await?;
        connection.close().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
