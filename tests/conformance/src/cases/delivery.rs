//! mq20, mq24, mq30, mq31: what comes, in which order, and how much at once.

use crate::{
    Arm, Ending, Stage,
    case::cases,
    stage::{WIDE, drain, ids, next, quiet, settle, setup, table, take},
};
use anyhow::ensure;
use std::{collections::BTreeMap, time::Duration};
use wh_mq::{Budget, Verdict};
use wh_types::{Block, BlockId};

cases! {
    mq20_each_table_of_a_unit_is_in_order_and_nothing_comes_twice,
    mq20_a_flood_in_one_table_does_not_starve_the_others needs Turns twin mq20_a_block_waits_only_for_older_ones,
    mq20_a_waiting_feed_gets_what_is_stored,
    mq20_a_dropped_next_loses_nothing,
    mq24_what_is_held_stays_within_the_budget_of_rows,
    mq24_what_is_held_stays_within_the_budget_of_bytes,
    mq24_a_feed_that_holds_nothing_gets_one_block_whatever_its_size,
    mq24_settling_makes_room_and_a_changed_budget_counts,
    mq24_a_block_nakd_or_due_again_is_not_held,
    mq30_attempts_count_from_one_and_grow,
    mq31_a_feed_that_settles_nothing_holds_up_nobody_else,
}

async fn mq20_each_table_of_a_unit_is_in_order_and_nothing_comes_twice(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::with(arm, crate::Setup { shards: 1, ..setup() }).await?;
    let names = ["a", "b", "c", "d", "e"];
    let mut given: BTreeMap<&str, Vec<BlockId>> = BTreeMap::new();
    let mut blocks = Vec::new();
    for n in 0..200 {
        let name = names[n * n % 5];
        let block = stage.block(name, 1);
        given.entry(name).or_default().push(block.id);
        blocks.push(block);
    }
    for piece in blocks.chunks(17) {
        stage.publish(piece).await?;
    }
    let mut feed = stage.feed("a", WIDE).await?;
    let taken = take(&mut *feed, 200).await?;
    for (name, given) in given {
        let came = taken.iter().filter(|d| d.block.table == table(name)).map(|d| d.block.id);
        ensure!(came.eq(given), "table {name} is not in order");
    }
    quiet(&mut *feed).await
}

async fn mq20_a_flood_in_one_table_does_not_starve_the_others(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::with(arm, crate::Setup { shards: 1, ..setup() }).await?;
    let flood: Vec<Block> = (0..2_000).map(|_| stage.block("flood", 1)).collect();
    stage.publish(&flood).await?;
    let mut feed = stage.feed("flood", Budget { rows: 50, bytes: 1 << 30 }).await?;
    let by = feed.settle();
    for n in 0..5 {
        let quiet_one = stage.block("quiet", 1);
        stage.store(&quiet_one).await?;
        let mut waited = 0;
        loop {
            let delivery = next(&mut *feed).await?;
            settle(&*by, std::slice::from_ref(&delivery), Verdict::Ack).await?;
            if delivery.block.id == quiet_one.id {
                break;
            }
            waited += 1;
            ensure!(waited < 300, "quiet block {n} waits behind {waited} blocks of the flood");
        }
    }
    Ok(())
}

/// Where a unit is one line: a flood holds up what was stored after it, and nothing else does.
async fn mq20_a_block_waits_only_for_older_ones(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::with(arm, crate::Setup { shards: 1, ..setup() }).await?;
    let flood = |count: usize| -> Vec<Block> { (0..count).map(|_| stage.block("flood", 1)).collect() };
    stage.publish(&flood(300)).await?;
    let quiet_one = stage.block("quiet", 1);
    stage.store(&quiet_one).await?;
    stage.publish(&flood(300)).await?;
    let mut feed = stage.feed("flood", Budget { rows: 50, bytes: 1 << 30 }).await?;
    let by = feed.settle();
    for n in 0..601 {
        let delivery = next(&mut *feed).await?;
        settle(&*by, std::slice::from_ref(&delivery), Verdict::Ack).await?;
        ensure!((delivery.block.id == quiet_one.id) == (n == 300), "{n}: {delivery:?}");
    }
    Ok(())
}

async fn mq20_a_waiting_feed_gets_what_is_stored(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    for _ in 0..20 {
        let block = stage.block("t", 1);
        let (delivery, stored) = futures::join!(next(&mut *feed), stage.store(&block));
        ensure!(delivery?.block == block);
        stored?;
    }
    Ok(())
}

async fn mq20_a_dropped_next_loses_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks: Vec<Block> = (0..50).map(|_| stage.block("t", 1)).collect();
    let mut feed = stage.feed("t", WIDE).await?;
    let mut came = Vec::new();
    for piece in blocks.chunks(10) {
        stage.publish(piece).await?;
        while came.len() < blocks.len() {
            // polled once and dropped, as a select would
            match futures::FutureExt::now_or_never(feed.next()) {
                Some(next) => came.extend(next?.map(|delivery| delivery.block.id)),
                None => break,
            }
        }
    }
    while came.len() < 50 {
        came.push(next(&mut *feed).await?.block.id);
    }
    ensure!(came.iter().eq(blocks.iter().map(|block| &block.id)), "{came:?}");
    quiet(&mut *feed).await
}

async fn mq24_what_is_held_stays_within_the_budget_of_rows(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks: Vec<Block> = (0..30).map(|_| stage.block("t", 10)).collect();
    stage.publish(&blocks).await?;
    let mut feed = stage.feed("t", Budget { rows: 75, bytes: 1 << 30 }).await?;
    let taken = take(&mut *feed, 7).await?;
    quiet(&mut *feed).await?;
    settle(&*feed.settle(), &taken[2..5], Verdict::Ack).await?;
    take(&mut *feed, 3).await?;
    quiet(&mut *feed).await
}

async fn mq24_what_is_held_stays_within_the_budget_of_bytes(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks: Vec<Block> = (0..20).map(|_| stage.block("t", 1)).collect();
    let one = blocks[0].body.len();
    ensure!(blocks.iter().all(|block| block.body.len().abs_diff(one) <= 2), "the case wants blocks of one size");
    stage.publish(&blocks).await?;
    let mut feed = stage.feed("t", Budget { rows: 1_000, bytes: 5 * one + one / 2 }).await?;
    take(&mut *feed, 5).await?;
    quiet(&mut *feed).await
}

async fn mq24_a_feed_that_holds_nothing_gets_one_block_whatever_its_size(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    stage.publish(&[stage.block("t", 400), stage.block("t", 400), stage.block("t", 1)]).await?;
    let mut feed = stage.feed("t", Budget { rows: 10, bytes: 1 }).await?;
    for _ in 0..3 {
        let taken = take(&mut *feed, 1).await?;
        quiet(&mut *feed).await?;
        settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    }
    quiet(&mut *feed).await
}

async fn mq24_settling_makes_room_and_a_changed_budget_counts(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks: Vec<Block> = (0..40).map(|_| stage.block("t", 1)).collect();
    stage.publish(&blocks).await?;
    let mut feed = stage.feed("t", Budget { rows: 4, bytes: 1 << 30 }).await?;
    let by = feed.settle();
    let mut taken = take(&mut *feed, 4).await?;
    // a settle on its way wakes a feed that waits for room
    let (more, settled) = futures::join!(take(&mut *feed, 4), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        settle(&*by, &taken, Verdict::Ack).await
    });
    settled?;
    taken.extend(more?);
    feed.set_budget(Budget { rows: 10, bytes: 1 << 30 });
    taken.extend(take(&mut *feed, 6).await?);
    quiet(&mut *feed).await?;
    feed.set_budget(Budget { rows: 1, bytes: 1 << 30 });
    settle(&*by, &taken[4..13], Verdict::Ack).await?;
    quiet(&mut *feed).await?;
    settle(&*by, &taken[13..], Verdict::Ack).await?;
    taken.extend(take(&mut *feed, 1).await?);
    ensure!(ids(&taken).iter().eq(blocks[..15].iter().map(|block| &block.id)), "out of order");
    Ok(())
}

async fn mq24_a_block_nakd_or_due_again_is_not_held(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks: Vec<Block> = (0..10).map(|_| stage.block("t", 1)).collect();
    stage.publish(&blocks).await?;
    let mut feed = stage.feed("t", Budget { rows: 5, bytes: 1 << 30 }).await?;
    let taken = take(&mut *feed, 5).await?;
    settle(&*feed.settle(), &taken, Verdict::Nak { delay: Duration::from_secs(60) }).await?;
    let more = take(&mut *feed, 5).await?;
    ensure!(ids(&more).iter().eq(blocks[5..].iter().map(|block| &block.id)));
    quiet(&mut *feed).await
}

async fn mq30_attempts_count_from_one_and_grow(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    stage.store(&stage.block("t", 1)).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    for attempt in 1..=4 {
        let taken = take(&mut *feed, 1).await?;
        ensure!(taken[0].attempt == attempt, "attempt {attempt}: {taken:?}");
        settle(&*feed.settle(), &taken, Verdict::Nak { delay: Duration::ZERO }).await?;
    }
    feed.release().await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(take(&mut *feed, 1).await?[0].attempt == 5, "a new owner goes on counting");
    drop(feed);
    stage.reopen(Ending::Clean).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(take(&mut *feed, 1).await?[0].attempt >= 1);
    Ok(())
}

async fn mq31_a_feed_that_settles_nothing_holds_up_nobody_else(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (stuck, other) = stage.apart()?;
    let narrow = Budget { rows: 3, bytes: 1 << 20 };
    let mut held = stage.feed(stuck, narrow).await?;
    let mut flows = stage.feed(other, narrow).await?;
    for _ in 0..20 {
        stage.publish(&[stage.block(stuck, 1), stage.block(other, 1)]).await?;
    }
    take(&mut *held, 3).await?;
    quiet(&mut *held).await?;
    ensure!(drain(&mut *flows, 20).await?.len() == 20);
    quiet(&mut *held).await
}
