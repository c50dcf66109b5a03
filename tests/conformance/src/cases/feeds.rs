//! mq25–mq29: taking a unit, halting, giving it up, losing it.

use crate::{
    Arm, Stage,
    case::cases,
    stage::{PATIENCE, WIDE, failed, ids, quiet, settle, take},
};
use anyhow::{Context as _, ensure};
use std::{collections::BTreeSet, time::Duration};
use wh_mq::{Budget, Unit, Verdict};
use wh_testkit::until;
use wh_types::{Block, Class};

cases! {
    mq25_after_halt_nothing_more_comes_and_the_unit_stays_owned,
    mq25_what_is_held_can_be_settled_after_halt,
    mq26_the_next_owner_gets_every_unsettled_block_in_order,
    mq26_tokens_of_a_released_feed_are_fenced,
    mq26_delayed_and_due_blocks_come_to_the_next_owner_at_once,
    mq27_a_second_feed_is_a_conflict,
    mq27_a_unit_that_does_not_exist_is_not_found,
    mq28_an_orphans_blocks_are_due_at_once,
    mq28_the_unit_of_a_living_feed_is_a_conflict,
    mq28_a_halted_feed_that_was_dropped_is_an_orphan_too,
    mq29_unowned_names_exactly_the_units_with_work_and_no_feed,
    mq29_every_table_belongs_to_one_of_the_units,
}

async fn many(stage: &Stage, count: usize) -> anyhow::Result<Vec<Block>> {
    let blocks: Vec<Block> = (0..count).map(|_| stage.block("t", 1)).collect();
    stage.publish(&blocks).await?;
    Ok(blocks)
}

async fn mq25_after_halt_nothing_more_comes_and_the_unit_stays_owned(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    many(&stage, 5).await?;
    let mut feed = stage.feed("t", Budget { rows: 2, bytes: 1 << 20 }).await?;
    let taken = take(&mut *feed, 2).await?;
    feed.halt().await?;
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    // what was taken already may still come, then nothing
    let mut more = 0;
    while tokio::time::timeout(PATIENCE, feed.next()).await.context("a halted feed waits")??.is_some() {
        more += 1;
    }
    ensure!(more <= 3);
    many(&stage, 1).await?;
    ensure!(tokio::time::timeout(PATIENCE, feed.next()).await.context("a halted feed waits")??.is_none());
    failed(stage.broker().feed(stage.unit("t"), WIDE).await.map(drop), Class::Conflict)?;
    ensure!(!stage.broker().unowned().await?.contains(&stage.unit("t")));
    feed.halt().await?;
    Ok(())
}

async fn mq25_what_is_held_can_be_settled_after_halt(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks = many(&stage, 4).await?;
    let mut feed = stage.feed("t", Budget { rows: 3, bytes: 1 << 20 }).await?;
    let taken = take(&mut *feed, 3).await?;
    feed.halt().await?;
    let by = feed.settle();
    settle(&*by, &taken[..2], Verdict::Ack).await?;
    settle(&*by, &taken[2..], Verdict::Nak { delay: Duration::ZERO }).await?;
    feed.release().await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&take(&mut *feed, 2).await?) == [blocks[2].id, blocks[3].id]);
    quiet(&mut *feed).await
}

async fn mq26_the_next_owner_gets_every_unsettled_block_in_order(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks = many(&stage, 30).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 20).await?;
    let (ack, left): (Vec<_>, Vec<_>) = taken.into_iter().partition(|d| d.cursor.sequence % 2 == 0);
    settle(&*feed.settle(), &ack, Verdict::Ack).await?;
    feed.release().await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let again = take(&mut *feed, left.len() + 10).await?;
    let expected = ids(&left).into_iter().chain(blocks[20..].iter().map(|block| block.id));
    ensure!(ids(&again).into_iter().eq(expected), "{:?}", ids(&again));
    quiet(&mut *feed).await
}

async fn mq26_tokens_of_a_released_feed_are_fenced(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    many(&stage, 2).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 2).await?;
    let by = feed.settle();
    feed.release().await?;
    for verdict in [Verdict::Ack, Verdict::Nak { delay: Duration::ZERO }, Verdict::InProgress] {
        for outcome in by.settle(&[taken[0].token, taken[1].token], verdict).await {
            failed(outcome, Class::Fenced)?;
        }
    }
    let mut feed = stage.feed("t", WIDE).await?;
    let again = take(&mut *feed, 2).await?;
    for outcome in by.settle(&[taken[0].token, again[1].token], Verdict::Ack).await {
        failed(outcome, Class::Fenced)?;
    }
    settle(&*feed.settle(), &again, Verdict::Ack).await
}

async fn mq26_delayed_and_due_blocks_come_to_the_next_owner_at_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks = many(&stage, 4).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 4).await?;
    let by = feed.settle();
    settle(&*by, &taken[1..3], Verdict::Nak { delay: Duration::from_secs(600) }).await?;
    settle(&*by, &taken[..1], Verdict::Nak { delay: Duration::ZERO }).await?;
    feed.release().await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&take(&mut *feed, 4).await?).iter().eq(blocks.iter().map(|block| &block.id)));
    quiet(&mut *feed).await
}

async fn mq27_a_second_feed_is_a_conflict(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let feed = stage.feed("t", WIDE).await?;
    ensure!(feed.unit() == stage.unit("t"));
    for _ in 0..2 {
        failed(stage.broker().feed(stage.unit("t"), WIDE).await.map(drop), Class::Conflict)?;
    }
    feed.release().await?;
    stage.feed("t", WIDE).await?.release().await?;
    Ok(())
}

async fn mq27_a_unit_that_does_not_exist_is_not_found(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    for unit in [Unit { partition: 0, shard: 4 }, Unit { partition: 900, shard: 0 }] {
        failed(stage.broker().feed(unit, WIDE).await.map(drop), Class::NotFound)?;
        failed(stage.broker().release_orphan(unit).await, Class::NotFound)?;
    }
    Ok(())
}

async fn mq28_an_orphans_blocks_are_due_at_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks = many(&stage, 3).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 3).await?;
    settle(&*feed.settle(), &taken[1..2], Verdict::Ack).await?;
    drop(feed);
    stage.broker().release_orphan(stage.unit("t")).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&take(&mut *feed, 2).await?) == [blocks[0].id, blocks[2].id]);
    quiet(&mut *feed).await
}

async fn mq28_the_unit_of_a_living_feed_is_a_conflict(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    many(&stage, 2).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 2).await?;
    failed(stage.broker().release_orphan(stage.unit("t")).await, Class::Conflict)?;
    // and it changed nothing
    quiet(&mut *feed).await?;
    settle(&*feed.settle(), &taken, Verdict::Ack).await
}

async fn mq28_a_halted_feed_that_was_dropped_is_an_orphan_too(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks = many(&stage, 1).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    take(&mut *feed, 1).await?;
    feed.halt().await?;
    failed(stage.broker().release_orphan(stage.unit("t")).await, Class::Conflict)?;
    drop(feed);
    stage.broker().release_orphan(stage.unit("t")).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&take(&mut *feed, 1).await?) == [blocks[0].id]);
    Ok(())
}

async fn mq29_unowned_names_exactly_the_units_with_work_and_no_feed(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (one, two) = stage.apart()?;
    let unowned = async || anyhow::Ok(stage.broker().unowned().await?);
    ensure!(unowned().await?.is_empty());
    stage.publish(&[stage.block(one, 1), stage.block(two, 1)]).await?;
    // on a queue that cases share, a unit that an earlier one was at is believed to be somebody's until its pin could lapse
    let both = BTreeSet::from([stage.unit(one), stage.unit(two)]);
    let found = || async { stage.broker().unowned().await.is_ok_and(|found| found == both) };
    until(Duration::from_secs(90), "both units are unowned", found).await?;
    let mut feed = stage.feed(one, WIDE).await?;
    ensure!(unowned().await? == BTreeSet::from([stage.unit(two)]));
    let taken = take(&mut *feed, 1).await?;
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    feed.release().await?;
    ensure!(unowned().await? == BTreeSet::from([stage.unit(two)]), "all of its blocks are settled");
    let mut feed = stage.feed(two, WIDE).await?;
    take(&mut *feed, 1).await?;
    ensure!(unowned().await?.is_empty());
    drop(feed);
    stage.broker().release_orphan(stage.unit(two)).await?;
    ensure!(unowned().await? == BTreeSet::from([stage.unit(two)]));
    Ok(())
}

async fn mq29_every_table_belongs_to_one_of_the_units(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let units = stage.broker().units();
    ensure!(units == stage.broker().units(), "the order is fixed");
    ensure!(units.iter().collect::<BTreeSet<_>>().len() == units.len());
    let used: BTreeSet<Unit> = (0..200).map(|n| stage.unit(&format!("table {n}"))).collect();
    ensure!(used == units.into_iter().collect(), "200 tables reach {used:?}");
    Ok(())
}
