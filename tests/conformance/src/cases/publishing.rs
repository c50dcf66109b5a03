//! mq01–mq05, mq09, mq10: what is stored, once, in order, under its own name.

use crate::{
    Arm, Ending, Stage,
    case::cases,
    stage::{WIDE, drain, failed, ids, quiet, settle, shown_block, shown_live, shown_nothing, table, take, tenant},
};
use anyhow::{Context as _, ensure};
use std::collections::BTreeSet;
use wh_mq::{Delivery, From, Receipt, Verdict};
use wh_types::{Block, BlockId, Chain, Class};

cases! {
    mq01_what_was_stored_is_delivered_after_a_crash,
    mq01_every_field_of_a_block_comes_back,
    mq01_what_many_publishers_stored_at_once_is_all_there_after_a_crash,
    mq02_each_block_has_its_own_outcome,
    mq02_an_empty_call_is_fine,
    mq03_blocks_of_a_table_are_stored_in_the_order_given,
    mq03_calls_that_follow_each_other_are_stored_in_that_order,
    mq03_every_tenant_is_in_order_by_itself,
    mq04_a_repeated_id_is_answered_with_the_first_cursor,
    mq04_a_repeated_id_is_known_after_settle_and_reopen,
    mq04_one_id_published_at_the_same_time_is_stored_once,
    mq04_the_same_id_twice_in_one_call_is_stored_once,
    mq05_an_empty_block_keeps_its_id_from_ever_having_rows,
    mq05_an_empty_block_under_a_stored_id_tells_its_rows,
    mq05_both_are_told_apart_after_a_reopen,
    mq09_cursors_of_a_table_grow_and_outlast_a_reopen,
    mq10_names_come_back_as_they_were_given,
}

async fn mq01_what_was_stored_is_delivered_after_a_crash(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let blocks: Vec<Block> = (1..=20).map(|rows| stage.block("t", rows)).collect();
    let cursors = stage.publish(&blocks).await?;
    stage.reopen(Ending::Crash).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 20).await?;
    ensure!(taken.iter().map(|d| &d.block).eq(&blocks), "other blocks came: {taken:?}");
    ensure!(taken.iter().map(|d| d.cursor).eq(cursors), "other cursors came: {taken:?}");
    quiet(&mut *feed).await
}

async fn mq01_every_field_of_a_block_comes_back(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let mut block = stage.block("t", 3);
    block.encoding = wh_types::Encoding::Lz4;
    block.chain = Some(Chain { process: "api-7".into(), n: u64::MAX });
    block.trace = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into());
    let mut other = stage.block("t", 500);
    other.chain = Some(Chain { process: "".into(), n: 0 });
    stage.publish(&[block.clone(), other.clone()]).await?;
    for ending in [None, Some(Ending::Crash)] {
        if let Some(ending) = ending {
            stage.reopen(ending).await?;
        }
        let mut history =
            stage.follow_all("t", From::After(wh_types::Cursor { epoch: epoch(&stage).await?, sequence: 0 })).await?;
        ensure!(shown_block(&mut *history).await?.1 == block);
        ensure!(shown_block(&mut *history).await?.1 == other);
        let mut feed = stage.feed("t", WIDE).await?;
        let taken = take(&mut *feed, 2).await?;
        ensure!(taken[0].block == block && taken[1].block == other, "{taken:?}");
        feed.release().await?;
    }
    Ok(())
}

/// The epoch of the queue's cursors.
pub(super) async fn epoch(stage: &Stage) -> anyhow::Result<wh_types::Epoch> {
    Ok(stage.store(&stage.block("epoch-probe", 0)).await?.epoch)
}

async fn mq01_what_many_publishers_stored_at_once_is_all_there_after_a_crash(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let publisher = async |n: usize| {
        let mut stored = Vec::new();
        for _ in 0..20 {
            let block = stage.block(["a", "b", "c"][n % 3], 2);
            stage.store(&block).await?;
            stored.push(block);
        }
        anyhow::Ok(stored)
    };
    let stored = futures::future::try_join_all((0..16).map(publisher)).await?;
    let stored: Vec<Block> = stored.into_iter().flatten().collect();
    stage.reopen(Ending::Crash).await?;
    let found = ids(&stage.drain_all(&stored).await?);
    let stored: BTreeSet<BlockId> = stored.iter().map(|block| block.id).collect();
    ensure!(found.len() == stored.len(), "{} of {}", found.len(), stored.len());
    ensure!(found.into_iter().collect::<BTreeSet<_>>() == stored);
    Ok(())
}

async fn mq02_each_block_has_its_own_outcome(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (good, mut bad, known) = (stage.block("t", 1), stage.block("t", 1), stage.block("t", 2));
    bad.rows = 501;
    let first = stage.store(&known).await?;
    let last = stage.block("u", 4);
    let all = [good.clone(), bad, known.clone(), last.clone()];
    let mut outcomes = stage.broker().publish(&all).await.into_iter();
    ensure!(outcomes.len() == 4);
    let mut outcome = || outcomes.next().context("an outcome is missing");
    ensure!(matches!(outcome()?, Ok(Receipt::Stored(_))));
    failed(outcome()?, Class::Invalid)?;
    ensure!(matches!(outcome()?, Ok(Receipt::Duplicate(cursor)) if cursor == first));
    ensure!(matches!(outcome()?, Ok(Receipt::Stored(_))));
    let mut feed = stage.feed("t", WIDE).await?;
    let there = stage.in_unit(stage.unit("t"), &[good.clone(), known.clone(), last]);
    let taken = drain(&mut *feed, there).await?;
    let of_t = taken.iter().filter(|d| d.block.table == table("t")).map(|d| d.block.id);
    ensure!(of_t.eq([known.id, good.id]), "{taken:?}");
    Ok(())
}

async fn mq02_an_empty_call_is_fine(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    ensure!(stage.broker().publish(&[]).await.is_empty());
    Ok(())
}

async fn mq03_blocks_of_a_table_are_stored_in_the_order_given(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks: Vec<Block> = (0..60).map(|n| stage.block(if n % 3 == 0 { "u" } else { "t" }, 1)).collect();
    stage.publish(&blocks).await?;
    for name in ["t", "u"] {
        let mut feed = stage.feed(name, WIDE).await?;
        let before = name == "u" && stage.unit("t") == stage.unit("u");
        let there = if before { 0 } else { stage.in_unit(stage.unit(name), &blocks) };
        let taken = drain(&mut *feed, there).await?;
        feed.release().await?;
        if taken.is_empty() {
            continue;
        }
        let came: Vec<BlockId> = taken.iter().filter(|d| d.block.table == table(name)).map(|d| d.block.id).collect();
        let given: Vec<BlockId> = blocks.iter().filter(|b| b.table == table(name)).map(|b| b.id).collect();
        ensure!(came.is_empty() || came == given, "table {name}: {came:?}");
    }
    ensure!(stage.broker().unowned().await?.is_empty(), "everything was delivered");
    Ok(())
}

async fn mq03_calls_that_follow_each_other_are_stored_in_that_order(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let writer = async |name: &'static str| {
        let mut given = Vec::new();
        for n in 0..30 {
            let blocks: Vec<Block> = (0..1 + n % 3).map(|_| stage.block(name, 1)).collect();
            stage.publish(&blocks).await?;
            given.extend(blocks);
        }
        anyhow::Ok(given)
    };
    let all = futures::future::try_join_all(["t", "u", "v"].map(writer)).await?.concat();
    let came = stage.drain_all(&all).await?;
    for name in ["t", "u", "v"] {
        let given = all.iter().filter(|block| block.table == table(name)).map(|block| block.id);
        let came = came.iter().filter(|d| d.block.table == table(name)).map(|d| d.block.id);
        ensure!(came.eq(given), "table {name} is not in order");
    }
    Ok(())
}

async fn mq03_every_tenant_is_in_order_by_itself(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let tenants = ["acme", "globex"];
    let blocks: Vec<Block> = (0..40).map(|n| stage.block_of(tenants[n % 2], "t", 1)).collect();
    stage.publish(&blocks).await?;
    for name in tenants {
        let unit = stage.broker().unit_of(&tenant(name), &table("t"));
        let mut feed = stage.broker().feed(unit, WIDE).await?;
        let taken = take(&mut *feed, if same_unit(&stage) { 40 } else { 20 }).await?;
        feed.release().await?;
        let came = taken.iter().filter(|d| d.block.tenant == tenant(name)).map(|d| d.block.id);
        let given = blocks.iter().filter(|b| b.tenant == tenant(name)).map(|b| b.id);
        ensure!(came.eq(given), "tenant {name} is not in order");
    }
    Ok(())
}

fn same_unit(stage: &Stage) -> bool {
    let unit = |name| stage.broker().unit_of(&tenant(name), &table("t"));
    unit("acme") == unit("globex")
}

async fn mq04_a_repeated_id_is_answered_with_the_first_cursor(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let mut history = stage.follow("t", From::Now).await?;
    let block = stage.block("t", 5);
    let cursor = stage.store(&block).await?;
    stage.store(&stage.block("t", 1)).await?;
    for _ in 0..3 {
        ensure!(stage.offer(&block).await?? == Receipt::Duplicate(cursor));
    }
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(take(&mut *feed, 2).await?[0].cursor == cursor);
    quiet(&mut *feed).await?;
    shown_live(&mut *history).await?;
    ensure!(shown_block(&mut *history).await?.0 == cursor);
    ensure!(shown_block(&mut *history).await?.0 != cursor);
    shown_nothing(&mut *history).await
}

async fn mq04_a_repeated_id_is_known_after_settle_and_reopen(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let block = stage.block("t", 5);
    let cursor = stage.store(&block).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 1).await?;
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    ensure!(stage.offer(&block).await?? == Receipt::Duplicate(cursor));
    feed.release().await?;
    for ending in [Ending::Clean, Ending::Crash] {
        stage.reopen(ending).await?;
        ensure!(stage.offer(&block).await?? == Receipt::Duplicate(cursor), "after {ending:?}");
        let rows = stage.broker().stored_rows(&block.tenant, &block.table, block.id, cursor).await?;
        ensure!(rows == Some(5), "after {ending:?}: {rows:?}");
    }
    Ok(())
}

async fn mq04_one_id_published_at_the_same_time_is_stored_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    for _ in 0..20 {
        let block = stage.block("t", 1);
        let outcomes = futures::future::join_all((0..8).map(|_| stage.offer(&block))).await;
        let mut cursors = BTreeSet::new();
        let mut stored = 0;
        for outcome in outcomes {
            let receipt = outcome??;
            stored += usize::from(matches!(receipt, Receipt::Stored(_)));
            cursors.insert(receipt.cursor());
        }
        ensure!(stored == 1 && cursors.len() == 1, "{stored} stored at {cursors:?}");
    }
    let mut feed = stage.feed("t", WIDE).await?;
    take(&mut *feed, 20).await?;
    quiet(&mut *feed).await
}

async fn mq04_the_same_id_twice_in_one_call_is_stored_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let block = stage.block("t", 1);
    let mut outcomes = stage.broker().publish(&[block.clone(), block.clone()]).await.into_iter();
    let (first, second) = (outcomes.next().context("first")??, outcomes.next().context("second")??);
    ensure!(matches!(first, Receipt::Stored(_)), "{first:?}");
    ensure!(second == Receipt::Duplicate(first.cursor()), "{second:?}");
    let mut feed = stage.feed("t", WIDE).await?;
    take(&mut *feed, 1).await?;
    quiet(&mut *feed).await
}

async fn mq05_an_empty_block_keeps_its_id_from_ever_having_rows(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let mut history = stage.follow("t", From::Now).await?;
    let block = stage.block("t", 5);
    let cursor = stage.store(&block.probe()).await?;
    ensure!(stage.offer(&block).await?? == Receipt::Duplicate(cursor));
    let rows = async |id| stage.broker().stored_rows(&tenant("acme"), &table("t"), id, cursor).await;
    ensure!(rows(block.id).await? == Some(0));
    ensure!(rows(BlockId([9; 16])).await?.is_none(), "an id nobody published is not known");
    let mut feed = stage.feed("t", WIDE).await?;
    quiet(&mut *feed).await?;
    shown_live(&mut *history).await?;
    shown_nothing(&mut *history).await?;
    ensure!(!stage.broker().unowned().await?.contains(&stage.unit("t")));
    Ok(())
}

async fn mq05_an_empty_block_under_a_stored_id_tells_its_rows(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let block = stage.block("t", 7);
    let cursor = stage.store(&block).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    for settled in [false, true] {
        ensure!(stage.offer(&block.probe()).await?? == Receipt::Duplicate(cursor));
        let rows = stage.broker().stored_rows(&block.tenant, &block.table, block.id, cursor).await?;
        ensure!(rows == Some(7), "{rows:?}, settled: {settled}");
        if !settled {
            let taken = take(&mut *feed, 1).await?;
            settle(&*feed.settle(), &taken, Verdict::Ack).await?;
        }
    }
    Ok(())
}

async fn mq05_both_are_told_apart_after_a_reopen(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let (rows, probe) = (stage.block("t", 3), stage.block("t", 3).probe());
    let (at_rows, at_probe) = (stage.store(&rows).await?, stage.store(&probe).await?);
    for ending in [Ending::Crash, Ending::Clean] {
        stage.reopen(ending).await?;
        let broker = stage.broker();
        let of_rows = broker.stored_rows(&rows.tenant, &rows.table, rows.id, at_rows).await?;
        let of_probe = broker.stored_rows(&probe.tenant, &probe.table, probe.id, at_probe).await?;
        ensure!((of_rows, of_probe) == (Some(3), Some(0)), "{of_rows:?} {of_probe:?} after {ending:?}");
        ensure!(stage.offer(&probe).await?? == Receipt::Duplicate(at_probe));
    }
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&take(&mut *feed, 1).await?) == [rows.id]);
    quiet(&mut *feed).await
}

async fn mq09_cursors_of_a_table_grow_and_outlast_a_reopen(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let mut all = Vec::new();
    for ending in [Ending::Clean, Ending::Crash, Ending::Clean] {
        for _ in 0..3 {
            all.push(stage.store(&stage.block("t", 1)).await?);
            stage.store(&stage.block("u", 1)).await?;
        }
        let mut feed = stage.feed("t", WIDE).await?;
        drain(&mut *feed, if stage.unit("t") == stage.unit("u") { 6 } else { 3 }).await?;
        feed.release().await?;
        stage.reopen(ending).await?;
    }
    ensure!(all.iter().all(|cursor| cursor.epoch == all[0].epoch), "one history has one epoch: {all:?}");
    ensure!(all.is_sorted_by(|a, b| a.sequence < b.sequence), "{all:?}");
    let mut history = stage.follow("t", From::After(all[3])).await?;
    for cursor in &all[4..] {
        ensure!(shown_block(&mut *history).await?.0 == *cursor, "a cursor from before the reopen still orders");
    }
    shown_live(&mut *history).await
}

async fn mq10_names_come_back_as_they_were_given(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let long = "x".repeat(200);
    let names = ["clicks", "a.b*c> d%e", "événements", " ", "%2E", "a/b\\c", "…\u{1F980}", "\t", ">", "*", &long];
    let mut blocks = Vec::new();
    for tenant_name in ["acme", "globex", "A-b_9"] {
        blocks.extend(names.map(|name| stage.block_of(tenant_name, name, 1)));
    }
    stage.publish(&blocks).await?;
    for ending in [None, Some(Ending::Crash)] {
        if let Some(ending) = ending {
            stage.reopen(ending).await?;
        }
        let mut came = BTreeSet::new();
        for unit in stage.broker().units() {
            let mut feed = stage.broker().feed(unit, WIDE).await?;
            for Delivery { block, .. } in take(&mut *feed, stage.in_unit(unit, &blocks)).await? {
                ensure!(stage.broker().unit_of(&block.tenant, &block.table) == unit);
                came.insert((block.tenant, block.table, block.id));
            }
            quiet(&mut *feed).await?;
            feed.release().await?;
        }
        let given = blocks.iter().map(|block| (block.tenant.clone(), block.table.clone(), block.id));
        ensure!(came == given.collect(), "{came:?}");
    }
    Ok(())
}
