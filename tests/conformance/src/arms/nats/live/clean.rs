//! Removing what a case left, as the restricted user: blocks by settling them, dead letters one by one. The history
//! keeps what it has until it is old.

use crate::stage::WIDE;
use anyhow::Context as _;
use std::time::Duration;
use wh_mq::{AckToken, Broker, DeadLetterQuery, Verdict, nats};

/// A pin of a crashed owner lasts this long at most, and a moment.
const WITHIN: Duration = Duration::from_secs(40);

pub(super) async fn drain(broker: &nats::Broker) -> anyhow::Result<()> {
    tokio::time::timeout(WITHIN, blocks(broker)).await.context("blocks are left")??;
    letters(broker).await
}

async fn blocks(broker: &nats::Broker) -> anyhow::Result<()> {
    let left = async || {
        let status = broker.status().await?;
        anyhow::Ok(status.tenants.values().map(|tenant| tenant.unsettled_blocks).sum::<u64>())
    };
    if left().await? == 0 {
        return Ok(());
    }
    for unit in broker.units() {
        // what a crashed owner held comes at once then; where there is none this changes nothing
        while broker.release_orphan(unit).await.is_err_and(|error| error.class() == wh_types::Class::Conflict) {
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
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
            if !page.more {
                break;
            }
        }
    }
    Ok(())
}
