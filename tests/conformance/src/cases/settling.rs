//! mq21–mq23, mq32: ack, nak, in progress, and tokens nobody knows.

use crate::{
    Arm, Ending, Setup, Stage,
    case::cases,
    stage::{PATIENCE, WIDE, failed, ids, next, quiet, settle, setup, take},
};
use anyhow::{Context as _, bail, ensure};
use std::{collections::HashMap, fmt::Write as _, time::Duration};
use tokio::time::Instant;
use wh_mq::{AckToken, Verdict};
use wh_types::{Block, BlockId, Class};

cases! {
    mq21_blocks_are_settled_in_any_order,
    mq21_what_was_settled_stays_settled_over_a_release_and_a_reopen,
    mq21_an_unsettled_block_among_settled_ones_comes_back_alone,
    mq22_a_nak_comes_back_after_its_delay_and_soon_after,
    mq22_a_nak_without_delay_comes_back_at_once,
    mq22_a_nak_does_not_hold_up_the_rest_of_its_table,
    mq23_only_what_was_not_settled_comes_back_after_ack_wait needs AckWait,
    mq23_in_progress_restarts_the_time needs AckWait,
    mq23_what_comes_back_keeps_its_order needs AckWait,
    mq32_unknown_and_settled_tokens_change_nothing,
    mq32_each_token_has_its_own_outcome,
}

#[expect(clippy::disallowed_methods, reason = "a test measures how long it took")]
fn now() -> Instant {
    Instant::now()
}

/// How often it is looked whether something comes in its time: a busy machine may stall, but not always.
const ROUNDS: usize = 5;
const NAK: Verdict = Verdict::Nak { delay: Duration::ZERO };

async fn many(stage: &Stage, count: usize) -> anyhow::Result<Vec<Block>> {
    let blocks: Vec<Block> = (0..count).map(|_| stage.block("t", 1)).collect();
    stage.publish(&blocks).await?;
    Ok(blocks)
}

async fn mq21_blocks_are_settled_in_any_order(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    many(&stage, 12).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 12).await?;
    let by = feed.settle();
    for n in [11, 0, 5, 6, 4, 1, 10, 2, 3, 9, 7, 8] {
        settle(&*by, &taken[n..=n], Verdict::Ack).await?;
    }
    let status = wh_mq::Broker::status(&*stage.broker()).await?;
    ensure!(status.tenants.values().all(|tenant| tenant.unsettled_blocks == 0), "{status:?}");
    feed.release().await?;
    quiet(&mut *stage.feed("t", WIDE).await?).await
}

async fn mq21_what_was_settled_stays_settled_over_a_release_and_a_reopen(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let blocks = many(&stage, 20).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 20).await?;
    let settled = |n: usize| !n.is_multiple_of(3);
    let (ack, rest): (Vec<_>, Vec<_>) = taken.into_iter().enumerate().partition(|(n, _)| settled(*n));
    let ack: Vec<_> = ack.into_iter().map(|(_, delivery)| delivery).collect();
    settle(&*feed.settle(), &ack, Verdict::Ack).await?;
    let left: Vec<BlockId> = rest.iter().map(|(_, delivery)| delivery.block.id).collect();
    feed.release().await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&take(&mut *feed, left.len()).await?) == left);
    quiet(&mut *feed).await?;
    drop(feed);
    for _ in 0..2 {
        stage.reopen(Ending::Clean).await?;
        let mut feed = stage.feed("t", WIDE).await?;
        ensure!(ids(&take(&mut *feed, left.len()).await?) == left, "after a reopen, of {blocks:?}");
        quiet(&mut *feed).await?;
    }
    Ok(())
}

async fn mq21_an_unsettled_block_among_settled_ones_comes_back_alone(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks = many(&stage, 300).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let mut taken = take(&mut *feed, 300).await?;
    let kept = taken.remove(150);
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    feed.release().await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let again = next(&mut *feed).await?;
    ensure!(again.block == blocks[150] && again.cursor == kept.cursor, "{again:?}");
    quiet(&mut *feed).await
}

async fn mq22_a_nak_comes_back_after_its_delay_and_soon_after(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut late = String::new();
    // never too early; within its second where the machine does not stall for that long itself
    for _ in 0..ROUNDS {
        let stage = Stage::open(arm).await?;
        many(&stage, 3).await?;
        let mut feed = stage.feed("t", WIDE).await?;
        let taken = take(&mut *feed, 3).await?;
        let by = feed.settle();
        let delays = [900, 300, 600].map(Duration::from_millis);
        let mut due = HashMap::new();
        for (delivery, delay) in taken.iter().zip(delays) {
            due.insert(delivery.block.id, now() + delay);
            settle(&*by, std::slice::from_ref(delivery), Verdict::Nak { delay }).await?;
        }
        late.clear();
        let mut last = None;
        for _ in delays {
            let (again, came) = (next(&mut *feed).await?, now());
            let due = due.remove(&again.block.id).with_context(|| format!("it came twice: {again:?}"))?;
            ensure!(came >= due, "it came {:?} too early: {again:?}", due - came);
            if came > due + Duration::from_secs(1) || last > Some(due) {
                _ = writeln!(late, "{:?} too late, or after one that was due later: {again:?}", came - due);
            }
            last = Some(due);
        }
        if late.is_empty() {
            return Ok(());
        }
    }
    bail!("{late}")
}

async fn mq22_a_nak_without_delay_comes_back_at_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks = many(&stage, 2).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let mut taken = take(&mut *feed, 2).await?;
    let mut took = Duration::MAX;
    for _ in 0..ROUNDS {
        let started = now();
        settle(&*feed.settle(), &taken[..1], NAK).await?;
        taken[0] = next(&mut *feed).await?;
        took = took.min(started.elapsed());
        ensure!(taken[0].block == blocks[0]);
    }
    ensure!(took < Duration::from_secs(1), "{took:?} at best");
    quiet(&mut *feed).await
}

async fn mq22_a_nak_does_not_hold_up_the_rest_of_its_table(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks = many(&stage, 5).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let first = take(&mut *feed, 1).await?;
    settle(&*feed.settle(), &first, Verdict::Nak { delay: Duration::from_secs(60) }).await?;
    ensure!(ids(&take(&mut *feed, 4).await?).iter().eq(blocks[1..].iter().map(|block| &block.id)));
    quiet(&mut *feed).await
}

/// An `ack_wait` that is waited for; a busy machine settles in time all the same.
const SOON: Duration = Duration::from_secs(5);

fn impatient() -> Setup {
    Setup { ack_wait: SOON, ..setup() }
}

async fn mq23_only_what_was_not_settled_comes_back_after_ack_wait(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::with(arm, impatient()).await?;
    let blocks = many(&stage, 4).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let started = now();
    let taken = take(&mut *feed, 4).await?;
    settle(&*feed.settle(), &[taken[0].clone(), taken[2].clone()], Verdict::Ack).await?;
    let again = take(&mut *feed, 2).await?;
    ensure!(started.elapsed() >= SOON, "too early");
    ensure!(ids(&again) == [blocks[1].id, blocks[3].id], "{again:?}");
    settle(&*feed.settle(), &again, Verdict::Ack).await?;
    quiet(&mut *feed).await
}

async fn mq23_in_progress_restarts_the_time(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::with(arm, impatient()).await?;
    let blocks = many(&stage, 2).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 2).await?;
    let (by, kept) = (feed.settle(), taken[..1].to_vec());
    let started = now();
    let keep = async {
        while started.elapsed() < SOON * 2 {
            settle(&*by, &kept, Verdict::InProgress).await?;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        anyhow::Ok(())
    };
    let watch = async {
        let mut came = Vec::new();
        while let Some(left) = (SOON * 2).checked_sub(started.elapsed()) {
            if let Ok(next) = tokio::time::timeout(left, feed.next()).await {
                came.push(next?.context("ended")?);
            }
        }
        anyhow::Ok(came)
    };
    let (kept_alive, came) = futures::join!(keep, watch);
    kept_alive?;
    let came = came?;
    ensure!(!came.is_empty() && came.iter().all(|d| d.block == blocks[1]), "{came:?} came, kept was {kept:?}");
    // and once nobody keeps it alive it comes back
    let back = async {
        while next(&mut *feed).await?.block != blocks[0] {}
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, back).await?
}

async fn mq23_what_comes_back_keeps_its_order(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::with(arm, impatient()).await?;
    let blocks = many(&stage, 25).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    take(&mut *feed, 25).await?;
    let again = take(&mut *feed, 25).await?;
    ensure!(ids(&again).iter().eq(blocks.iter().map(|block| &block.id)), "{:?}", ids(&again));
    ensure!(again.iter().all(|delivery| delivery.attempt == 2));
    Ok(())
}

async fn mq32_unknown_and_settled_tokens_change_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let blocks = many(&stage, 2).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 2).await?;
    let by = feed.settle();
    settle(&*by, &taken[..1], Verdict::Ack).await?;
    for verdict in [Verdict::Ack, NAK, Verdict::InProgress] {
        settle(&*by, &taken[..1], verdict).await?;
        let unknown = AckToken { delivery: u64::MAX, sequence: u64::MAX };
        for outcome in by.settle(&[unknown], verdict).await {
            ensure!(outcome.is_ok() || outcome.as_ref().is_err_and(|e| e.class() == Class::Fenced), "{outcome:?}");
        }
    }
    quiet(&mut *feed).await?;
    feed.release().await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(ids(&take(&mut *feed, 1).await?) == [blocks[1].id]);
    for verdict in [Verdict::Ack, NAK, Verdict::InProgress] {
        for outcome in by.settle(&[taken[1].token], verdict).await {
            failed(outcome, Class::Fenced)?;
        }
    }
    quiet(&mut *feed).await
}

async fn mq32_each_token_has_its_own_outcome(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    many(&stage, 3).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 3).await?;
    let by = feed.settle();
    ensure!(by.settle(&[], Verdict::Ack).await.is_empty());
    let tokens: Vec<AckToken> = [0, 1, 0, 2].iter().map(|n: &usize| taken[*n].token).collect();
    let outcomes = by.settle(&tokens, Verdict::Ack).await;
    ensure!(outcomes.len() == 4 && outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    feed.release().await?;
    quiet(&mut *stage.feed("t", WIDE).await?).await
}
