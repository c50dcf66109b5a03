//! Removing what a case left, as the restricted user: blocks by settling them, dead letters one by one. The history
//! keeps what it has until it is old.

use crate::stage::{WIDE, until};
use anyhow::Context as _;
use std::time::Duration;
use wh_mq::{AckToken, Broker, DeadLetterQuery, Verdict, nats};
use wh_nats::Connection;
use wh_topology::{Spec, defaults};

/// How long the rest may take to come.
const WITHIN: Duration = Duration::from_secs(40);

/// Frees every unit: no other process works here, so what looks like an owner is a crashed one of a case before.
pub(super) async fn free(connection: &Connection, spec: &Spec, stream: &str) -> anyhow::Result<()> {
    for shard in 0..spec.choices().shards {
        let (api, durable) = (connection.api(), spec.names().durable(shard));
        // a pull of a connection that is gone waits until it expires, and could still take a block and the pin
        until("pulls of a case before wait", async || Ok(api.consumer_info(stream, &durable).await?.num_waiting == 0))
            .await?;
        api.unpin(stream, &durable, defaults::PRIORITY_GROUP).await?;
        api.reset(stream, &durable).await?;
    }
    Ok(())
}

pub(super) async fn drain(connection: &Connection, spec: &Spec, broker: &nats::Broker) -> anyhow::Result<()> {
    for stream in broker.streams() {
        free(connection, spec, stream).await?;
    }
    tokio::time::timeout(WITHIN, blocks(broker)).await.context("blocks are left")??;
    letters(broker).await
}

async fn blocks(broker: &nats::Broker) -> anyhow::Result<()> {
    let left = async || {
        let status = broker.status().await?;
        anyhow::Ok(status.tenants.values().map(|tenant| tenant.unsettled_blocks).sum::<u64>())
    };
    while left().await? > 0 {
        for unit in broker.units() {
            let mut feed = broker.feed(unit, WIDE).await?;
            let by = feed.settle();
            while let Ok(next) = tokio::time::timeout(Duration::from_millis(300), feed.next()).await {
                let token: AckToken = next?.context("the feed ended")?.token;
                for outcome in by.settle(&[token], Verdict::Ack).await {
                    outcome?;
                }
            }
            feed.release().await?;
        }
    }
    Ok(())
}

async fn letters(broker: &nats::Broker) -> anyhow::Result<()> {
    let tenants = broker.status().await?.tenants;
    for tenant in tenants.into_iter().filter(|(_, held)| !held.dead_letters.is_empty()).map(|(tenant, _)| tenant) {
        loop {
            let query = DeadLetterQuery { limit: 1_000, ..DeadLetterQuery::default() };
            let page = broker.dead_letters(&tenant, &query).await?;
            let ids: Vec<_> = page.letters.iter().map(|letter| letter.id).collect();
            broker.purge_dead_letters(&tenant, &ids).await?;
            if page.next.is_none() {
                break;
            }
        }
    }
    Ok(())
}
