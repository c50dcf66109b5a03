//! mq60, and what the status says.

use crate::{
    Arm, Ending, Stage,
    case::cases,
    stage::{PATIENCE, WIDE, drain, failed, ids, letter, settle, setup, table, take, tenant},
};
use anyhow::{Context as _, ensure};
use std::time::Duration;
use wh_mq::{DeadLetterQuery, From, Happening, Verdict};
use wh_types::{Block, BlockId, Class, Epoch};

cases! {
    mq60_after_close_every_method_answers_stopping,
    mq60_waiting_calls_end_with_close,
    mq60_what_was_stored_is_there_on_reopen,
    mq60_close_again_is_fine_and_ends_what_runs,
    mq60_the_status_says_what_is_held,
}

async fn mq60_after_close_every_method_answers_stopping(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let broker = stage.broker();
    let block = stage.block("t", 1);
    let cursor = stage.store(&block).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 1).await?;
    let (acme, t, unit) = (tenant("acme"), table("t"), stage.unit("t"));
    broker.close().await;
    failed(stage.offer(&stage.block("t", 1)).await?, Class::Stopping)?;
    failed(broker.stored_rows(&acme, &t, block.id, cursor).await, Class::Stopping)?;
    failed(broker.feed(unit, WIDE).await.map(drop), Class::Stopping)?;
    failed(broker.release_orphan(unit).await, Class::Stopping)?;
    failed(broker.unowned().await, Class::Stopping)?;
    failed(broker.history(&acme, &t, From::Now).await.map(drop), Class::Stopping)?;
    for outcome in broker.dead_letter(&[letter("t", cursor, 0)]).await {
        failed(outcome, Class::Stopping)?;
    }
    failed(broker.dead_letters(&acme, &DeadLetterQuery::default()).await, Class::Stopping)?;
    failed(broker.purge_dead_letters(&acme, &[]).await, Class::Stopping)?;
    failed(broker.set_allowance(&acme, setup().allowance).await, Class::Stopping)?;
    for outcome in feed.settle().settle(&[taken[0].token], Verdict::Ack).await {
        failed(outcome, Class::Stopping)?;
    }
    ensure!(feed.next().await?.is_none());
    failed(feed.halt().await, Class::Stopping)?;
    let status = broker.status().await?;
    ensure!(!status.accepting && status.reason.is_some(), "{status:?}");
    Ok(())
}

async fn mq60_waiting_calls_end_with_close(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let broker = stage.broker();
    let mut feed = stage.feed("t", WIDE).await?;
    let mut history = stage.follow("t", From::Now).await?;
    ensure!(history.next().await? == Some(Happening::Live));
    let all = async {
        let (fed, seen, ()) = futures::join!(feed.next(), history.next(), async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            broker.close().await;
        });
        anyhow::Ok((fed?, seen?))
    };
    let (fed, seen) = tokio::time::timeout(PATIENCE, all).await.context("a waiting call outlives close")??;
    ensure!(fed.is_none() && seen.is_none(), "{fed:?} {seen:?}");
    ensure!(feed.next().await?.is_none() && history.next().await?.is_none(), "and it stays so");
    Ok(())
}

async fn mq60_what_was_stored_is_there_on_reopen(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let mut stored: Vec<BlockId> = Vec::new();
    for round in 0..4 {
        let blocks = [stage.block("t", 1), stage.block("t", 500), stage.block("t", 20)];
        stage.publish(&blocks).await?;
        stored.extend(blocks.iter().map(|block| block.id));
        stage.reopen(if round % 2 == 0 { Ending::Clean } else { Ending::Crash }).await?;
        let mut feed = stage.feed("t", WIDE).await?;
        let taken = take(&mut *feed, stored.len()).await?;
        ensure!(ids(&taken) == stored, "round {round}");
        settle(&*feed.settle(), &taken[..1], Verdict::Ack).await?;
        stored.remove(0);
        feed.release().await?;
    }
    stage.reopen(Ending::Clean).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&drain(&mut *feed, stored.len()).await?) == stored);
    Ok(())
}

async fn mq60_close_again_is_fine_and_ends_what_runs(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let broker = stage.broker();
    let publishers = async |n: usize| {
        let mut stored = Vec::new();
        for _ in 0..200 {
            let block = stage.block(["a", "b"][n % 2], 1);
            match stage.offer(&block).await? {
                Ok(_) => stored.push(block),
                stopped => {
                    failed(stopped, Class::Stopping)?;
                    break;
                }
            }
        }
        anyhow::Ok(stored)
    };
    let close = async {
        tokio::time::sleep(Duration::from_millis(15)).await;
        futures::join!(broker.close(), broker.close());
        broker.close().await;
    };
    let (stored, ()) = futures::join!(futures::future::try_join_all((0..8).map(publishers)), close);
    let stored: Vec<Block> = stored?.into_iter().flatten().collect();
    drop(broker);
    stage.reopen(Ending::Clean).await?;
    let mut found = ids(&stage.drain_all(&stored).await?);
    let mut stored: Vec<BlockId> = stored.iter().map(|block| block.id).collect();
    stored.sort_unstable();
    found.sort_unstable();
    ensure!(stored == found, "{} answered Stored, {} are there", stored.len(), found.len());
    Ok(())
}

async fn mq60_the_status_says_what_is_held(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    ensure!(stage.broker().status().await?.accepting);
    let blocks = [stage.block("t", 3), stage.block("t", 4), stage.block_of("globex", "t", 5)];
    let cursors = stage.publish(&blocks).await?;
    let status = stage.broker().status().await?;
    let epoch: Option<Epoch> = status.epoch;
    ensure!(epoch.is_none_or(|epoch| epoch == cursors[0].epoch), "{epoch:?}");
    let rows = |name| status.tenants.get(&tenant(name)).map(|t| (t.unsettled_rows, t.unsettled_blocks));
    // rows and bytes only where the backend counts them by tenant
    let is = |name, rows_there: u64, blocks| {
        rows(name).is_some_and(|(r, b)| r.is_none_or(|r| r == rows_there) && b == blocks)
    };
    ensure!(is("acme", 7, 2) && is("globex", 5, 1), "{status:?}");
    let mut feed = stage.feed("t", WIDE).await?;
    drain(&mut *feed, stage.in_unit(stage.unit("t"), &blocks)).await?;
    let status = stage.broker().status().await?;
    let acme = status.tenants.get(&tenant("acme")).cloned().unwrap_or_default();
    ensure!(acme.unsettled_rows.unwrap_or(0) == 0 && acme.unsettled_blocks == 0, "{acme:?}");
    ensure!(acme.bytes.is_none_or(|bytes| bytes > 0), "the history still has them: {acme:?}");
    Ok(())
}
