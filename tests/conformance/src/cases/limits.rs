//! mq06–mq08, mq11: what is refused, and that it harms nobody else.

use crate::{
    Arm, Ending, Stage,
    case::cases,
    stage::{WIDE, drain, failed, settle, setup, table, take, tenant, until},
};
use anyhow::{bail, ensure};
use bytes::Bytes;
use std::time::Duration;
use wh_mq::{Allowance, Receipt, Verdict};
use wh_types::{Block, Class};

cases! {
    mq06_a_tenant_at_its_budget_is_refused_while_others_flow needs Allowances twin mq06_budgets_are_unsupported,
    mq06_space_comes_back_after_settle_and_the_history_window needs Allowances twin mq06_budgets_are_unsupported,
    mq06_a_refused_block_can_be_published_again_under_its_id needs Allowances twin mq06_budgets_are_unsupported,
    mq06_an_allowance_lasts_over_a_reopen needs Allowances twin mq06_budgets_are_unsupported,
    mq07_a_table_at_its_cap_is_refused_while_other_tables_flow needs Allowances twin mq06_budgets_are_unsupported,
    mq08_a_block_beyond_the_bounds_is_invalid,
    mq08_the_largest_block_comes_back_whole,
    mq11_shrinking_a_budget_deletes_nothing needs Allowances twin mq06_budgets_are_unsupported,
    mq11_growing_a_budget_takes_effect_at_once needs Allowances twin mq06_budgets_are_unsupported,
}

/// What a refused publisher is told.
const COME_AGAIN: Class = Class::Exhausted { retry_after: Duration::from_secs(30) };

fn allowance(bytes: u64) -> Allowance {
    Allowance { bytes, table_bytes: u64::MAX / 2, history: Duration::ZERO }
}

/// Publishes until the tenant is refused; gives how many went in.
async fn fill(stage: &Stage, table_name: &str) -> anyhow::Result<usize> {
    for n in 0..10_000 {
        match stage.offer(&stage.block(table_name, 1)).await? {
            Ok(_) => {}
            refused => {
                failed(refused, COME_AGAIN)?;
                return Ok(n);
            }
        }
    }
    bail!("10,000 blocks went into a small budget")
}

async fn mq06_budgets_are_unsupported(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    failed(stage.broker().set_allowance(&tenant("acme"), allowance(1)).await, Class::Unsupported)
}

async fn mq06_a_tenant_at_its_budget_is_refused_while_others_flow(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let block = stage.block("t", 1);
    stage.broker().set_allowance(&tenant("acme"), allowance(50 * block.charge() as u64)).await?;
    let stored = fill(&stage, "t").await?;
    ensure!((45..=55).contains(&stored), "{stored} blocks in a budget for about 50");
    failed(stage.offer(&stage.block("u", 1)).await?, COME_AGAIN)?;
    for _ in 0..200 {
        stage.store(&stage.block_of("globex", "t", 1)).await?;
    }
    let status = stage.broker().status().await?;
    let acme = &status.tenants[&tenant("acme")];
    ensure!(
        acme.unsettled_blocks == stored as u64 && acme.bytes.unwrap_or(0) <= acme.budget_bytes.unwrap_or(0),
        "{acme:?}"
    );
    Ok(())
}

async fn mq06_space_comes_back_after_settle_and_the_history_window(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let history = Duration::from_millis(1_500);
    let bytes = 50 * stage.block("t", 1).charge() as u64;
    stage.broker().set_allowance(&tenant("acme"), Allowance { history, ..allowance(bytes) }).await?;
    let started = tokio_now();
    let stored = fill(&stage, "t").await?;
    let mut feed = stage.feed("t", WIDE).await?;
    drain(&mut *feed, stored).await?;
    let early = stage.offer(&stage.block("t", 1)).await?;
    if started.elapsed() < history {
        failed(early, COME_AGAIN)?;
    }
    until("the history window is over", async || Ok(stage.offer(&stage.block("t", 1)).await?.is_ok())).await?;
    ensure!(started.elapsed() >= history, "it was taken again before the window was over");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a test measures how long it took")]
fn tokio_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

async fn mq06_a_refused_block_can_be_published_again_under_its_id(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let bytes = 10 * stage.block("t", 1).charge() as u64;
    stage.broker().set_allowance(&tenant("acme"), allowance(bytes)).await?;
    let stored = fill(&stage, "t").await?;
    let refused = stage.block("t", 1);
    failed(stage.offer(&refused).await?, COME_AGAIN)?;
    let mut feed = stage.feed("t", WIDE).await?;
    drain(&mut *feed, stored).await?;
    until("there is room", async || Ok(matches!(stage.offer(&refused).await?, Ok(Receipt::Stored(_))))).await?;
    ensure!(take(&mut *feed, 1).await?[0].block == refused);
    ensure!(matches!(stage.offer(&refused).await??, Receipt::Duplicate(_)));
    Ok(())
}

async fn mq06_an_allowance_lasts_over_a_reopen(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let bytes = 10 * stage.block("t", 1).charge() as u64;
    stage.broker().set_allowance(&tenant("acme"), allowance(u64::MAX / 4)).await?;
    stage.broker().set_allowance(&tenant("acme"), allowance(bytes)).await?;
    for ending in [Ending::Crash, Ending::Clean] {
        let stored = fill(&stage, "t").await?;
        stage.reopen(ending).await?;
        let status = stage.broker().status().await?;
        ensure!(status.tenants[&tenant("acme")].budget_bytes == Some(bytes), "after {ending:?}: {status:?}");
        failed(stage.offer(&stage.block("t", 1)).await?, COME_AGAIN)?;
        let mut feed = stage.feed("t", WIDE).await?;
        drain(&mut *feed, stored).await?;
        feed.release().await?;
    }
    Ok(())
}

async fn mq07_a_table_at_its_cap_is_refused_while_other_tables_flow(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let one = stage.block("t", 1).charge() as u64;
    let history = Duration::from_secs(300);
    let allowance = Allowance { bytes: 1_000 * one, table_bytes: 20 * one, history };
    stage.broker().set_allowance(&tenant("acme"), allowance).await?;
    let stored = fill(&stage, "t").await?;
    ensure!((15..=25).contains(&stored), "{stored} blocks under a cap of about 20");
    for _ in 0..10 {
        stage.store(&stage.block("u", 1)).await?;
    }
    let mut feed = stage.feed("t", WIDE).await?;
    let mut taken = take(&mut *feed, stored).await?;
    taken.retain(|delivery| delivery.block.table == table("t"));
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    // the cap counts what is unsettled: a settled block makes room at once, whatever the history keeps
    stage.store(&stage.block("t", 1)).await?;
    Ok(())
}

async fn mq08_a_block_beyond_the_bounds_is_invalid(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    stage.store(&stage.block("t", 500)).await?;
    let rows = Block { rows: 501, ..stage.block("t", 500) };
    let large = Block { body: Bytes::from(vec![0; arm.profile().max_body + 1]), ..stage.block("t", 1) };
    let hidden = Block { rows: 0, ..stage.block("t", 1) };
    for bad in [rows, large, hidden] {
        failed(stage.offer(&bad).await?, Class::Invalid)?;
        // and its id was not used up
        stage.store(&Block { id: bad.id, ..stage.block("t", 1) }).await?;
    }
    Ok(())
}

async fn mq08_the_largest_block_comes_back_whole(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let body: Vec<u8> = (0..arm.profile().max_body).map(|n| u8::try_from(n % 251).unwrap_or(0)).collect();
    let block = Block { body: Bytes::from(body), ..stage.block("t", 1) };
    stage.store(&block).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(take(&mut *feed, 1).await?[0].block == block);
    Ok(())
}

async fn mq11_shrinking_a_budget_deletes_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let one = stage.block("t", 1).charge() as u64;
    let blocks: Vec<Block> = (0..30).map(|_| stage.block("t", 1)).collect();
    let cursors = stage.publish(&blocks).await?;
    let letters = [crate::stage::letter("t", cursors[0], 0), crate::stage::letter("t", cursors[1], 1)];
    for outcome in stage.broker().dead_letter(&letters).await {
        outcome?;
    }
    stage.broker().set_allowance(&tenant("acme"), allowance(one)).await?;
    failed(stage.offer(&stage.block("t", 1)).await?, COME_AGAIN)?;
    let query = wh_mq::DeadLetterQuery { limit: 9, ..Default::default() };
    let page = stage.broker().dead_letters(&tenant("acme"), &query).await?;
    ensure!(page.letters.len() == 2, "dead letters are gone");
    stage.reopen(Ending::Clean).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = drain(&mut *feed, 30).await?;
    ensure!(taken.len() == 30, "{} of 30 are left", taken.len());
    Ok(())
}

async fn mq11_growing_a_budget_takes_effect_at_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::with(arm, setup()).await?;
    let one = stage.block("t", 1).charge() as u64;
    stage.broker().set_allowance(&tenant("acme"), allowance(5 * one)).await?;
    fill(&stage, "t").await?;
    stage.broker().set_allowance(&tenant("acme"), allowance(500 * one)).await?;
    for _ in 0..50 {
        stage.store(&stage.block("t", 1)).await?;
    }
    Ok(())
}
