//! Unknown outcomes (decision D4): what a caller can find out after an answer was lost, told by the fault wrapper.

use crate::{
    Arm, Ending, Stage,
    case::cases,
    stage::{WIDE, drain, failed, ids, letter, quiet, settle, take, tenant},
};
use anyhow::ensure;
use std::time::Duration;
use wh_mq::{
    Broker, DeadLetterQuery, Kind, Receipt, Verdict,
    faulty::{Fault, Faulty, Op, Script},
};
use wh_types::{Block, Class};

cases! {
    mq01_a_lost_answer_leaves_the_block_stored_and_its_id_says_so,
    mq04_a_publish_that_was_sent_twice_is_stored_once,
    mq04_a_delayed_publish_is_stored_once_beside_its_retry,
    mq05_a_probe_after_a_failed_publish_frees_its_claim_for_good,
    mq05_a_probe_after_a_lost_answer_finds_the_rows,
    mq05_a_repeated_probe_is_told_from_rows,
    mq21_a_lost_settle_answer_is_settled_all_the_same,
    mq28_a_feed_whose_answer_was_lost_is_an_orphan,
    mq51_a_parked_letter_whose_answer_was_lost_is_kept_once,
}

/// A queue that fails after a script, around an arm's own.
fn faulty(stage: &Stage) -> (Faulty<dyn Broker>, Script) {
    let script = Script::new();
    (Faulty::new(stage.broker(), script.clone()), script)
}

async fn one(broker: &dyn Broker, block: &Block) -> anyhow::Result<wh_mq::Result<Receipt>> {
    let mut outcomes = broker.publish(std::slice::from_ref(block)).await;
    ensure!(outcomes.len() == 1, "{} outcomes", outcomes.len());
    Ok(outcomes.remove(0))
}

async fn mq01_a_lost_answer_leaves_the_block_stored_and_its_id_says_so(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let (broker, script) = faulty(&stage);
    let block = stage.block("t", 3);
    script.next(Op::Publish, Fault::LoseAnswer);
    failed(one(&broker, &block).await?, Class::Unknown)?;
    let again = one(&broker, &block).await??;
    ensure!(matches!(again, Receipt::Duplicate(_)), "{again:?}");
    ensure!(script.is_done());
    stage.reopen(Ending::Crash).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&drain(&mut *feed, 1).await?) == [block.id]);
    Ok(())
}

async fn mq04_a_publish_that_was_sent_twice_is_stored_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (broker, script) = faulty(&stage);
    let blocks = [stage.block("t", 3), stage.block("t", 4)];
    script.next(Op::Publish, Fault::Repeat);
    for outcome in broker.publish(&blocks).await {
        ensure!(matches!(outcome?, Receipt::Stored(_)));
    }
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&take(&mut *feed, 2).await?) == [blocks[0].id, blocks[1].id]);
    quiet(&mut *feed).await
}

async fn mq04_a_delayed_publish_is_stored_once_beside_its_retry(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (broker, script) = faulty(&stage);
    let block = stage.block("t", 3);
    script.next(Op::Publish, Fault::Delay(Duration::from_millis(60)));
    let (late, retry) = futures::join!(one(&broker, &block), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        one(&broker, &block).await
    });
    let (late, retry) = (late??, retry??);
    // on a busy machine the delayed one may be first after all
    let once = |first: &Receipt, second: &Receipt| {
        matches!(first, Receipt::Stored(_)) && *second == Receipt::Duplicate(first.cursor())
    };
    ensure!(once(&retry, &late) || once(&late, &retry), "{late:?} {retry:?}");
    let mut feed = stage.feed("t", WIDE).await?;
    take(&mut *feed, 1).await?;
    quiet(&mut *feed).await
}

async fn mq05_a_probe_after_a_failed_publish_frees_its_claim_for_good(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (broker, script) = faulty(&stage);
    let block = stage.block("t", 3);
    // nothing arrived, and the caller does not know
    script.next(Op::Publish, Fault::Fail(Kind::Unknown));
    failed(one(&broker, &block).await?, Class::Unknown)?;
    let probe = one(&broker, &block.probe()).await??;
    ensure!(matches!(probe, Receipt::Stored(_)), "the rows never were stored: {probe:?}");
    // and whatever is still on its way is too late
    ensure!(one(&broker, &block).await?? == Receipt::Duplicate(probe.cursor()));
    let mut feed = stage.feed("t", WIDE).await?;
    quiet(&mut *feed).await
}

async fn mq05_a_probe_after_a_lost_answer_finds_the_rows(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (broker, script) = faulty(&stage);
    let block = stage.block("t", 3);
    script.next(Op::Publish, Fault::LoseAnswer);
    failed(one(&broker, &block).await?, Class::Unknown)?;
    let probe = one(&broker, &block.probe()).await??;
    ensure!(matches!(probe, Receipt::Duplicate(_)), "{probe:?}");
    let rows = broker.stored_rows(&block.tenant, &block.table, block.id, probe.cursor()).await?;
    ensure!(rows == Some(3), "{rows:?}");
    Ok(())
}

async fn mq05_a_repeated_probe_is_told_from_rows(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (broker, script) = faulty(&stage);
    let block = stage.block("t", 3);
    script.next(Op::Publish, Fault::Fail(Kind::Unknown));
    failed(one(&broker, &block).await?, Class::Unknown)?;
    // the probe's own answer is lost: the next one is a duplicate of a probe, not of rows
    script.next(Op::Publish, Fault::LoseAnswer);
    failed(one(&broker, &block.probe()).await?, Class::Unknown)?;
    let again = one(&broker, &block.probe()).await??;
    ensure!(matches!(again, Receipt::Duplicate(_)), "{again:?}");
    let rows = broker.stored_rows(&block.tenant, &block.table, block.id, again.cursor()).await?;
    ensure!(rows == Some(0), "{rows:?}");
    Ok(())
}

async fn mq21_a_lost_settle_answer_is_settled_all_the_same(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (broker, script) = faulty(&stage);
    stage.publish(&[stage.block("t", 1), stage.block("t", 1)]).await?;
    let mut feed = broker.feed(stage.unit("t"), WIDE).await?;
    let taken = take(&mut *feed, 2).await?;
    let by = feed.settle();
    script.next(Op::Settle, Fault::LoseAnswer);
    for outcome in by.settle(&[taken[0].token], Verdict::Ack).await {
        failed(outcome, Class::Unknown)?;
    }
    settle(&*by, &taken[..1], Verdict::Ack).await?;
    script.next(Op::Settle, Fault::Repeat);
    settle(&*by, &taken[1..], Verdict::Ack).await?;
    feed.release().await?;
    let mut feed = stage.feed("t", WIDE).await?;
    quiet(&mut *feed).await
}

async fn mq28_a_feed_whose_answer_was_lost_is_an_orphan(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (broker, script) = faulty(&stage);
    let block = stage.block("t", 1);
    stage.store(&block).await?;
    script.next(Op::Feed, Fault::LoseAnswer);
    failed(broker.feed(stage.unit("t"), WIDE).await.map(drop), Class::Unknown)?;
    broker.release_orphan(stage.unit("t")).await?;
    let mut feed = broker.feed(stage.unit("t"), WIDE).await?;
    ensure!(ids(&take(&mut *feed, 1).await?) == [block.id]);
    Ok(())
}

async fn mq51_a_parked_letter_whose_answer_was_lost_is_kept_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (broker, script) = faulty(&stage);
    let cursor = stage.store(&stage.block("t", 1)).await?;
    let letters = [letter("t", cursor, 0)];
    script.next(Op::Park, Fault::LoseAnswer);
    for outcome in broker.dead_letter(&letters).await {
        failed(outcome, Class::Unknown)?;
    }
    script.next(Op::Park, Fault::Repeat);
    for outcome in broker.dead_letter(&letters).await {
        outcome?;
    }
    let query = DeadLetterQuery { limit: 10, ..Default::default() };
    let page = broker.dead_letters(&tenant("acme"), &query).await?;
    ensure!(page.letters == letters && page.next.is_none(), "{page:?}");
    Ok(())
}
