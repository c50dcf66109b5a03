//! dd20–dd25: rows that are stored.

use super::{
    super::{
        Arm,
        stage::{DAY, LONG, SHORT, Stage, failed, fenced, many, rows, under, unknown, until},
    },
    cases,
    failing::dd40_a_store_in_the_process_is_reached,
};
use crate::dedupe::Failure;
use anyhow::{bail, ensure};
use std::{slice, time::Duration};
use wh_dedupe::{Retention, Verdict};

cases! {
    dd20_what_is_committed_is_seen_by_everybody,
    dd21_a_ticket_that_holds_nothing_commits_nothing,
    dd22_a_commit_of_unknown_outcome_can_be_repeated needs Lost twin dd40_a_store_in_the_process_is_reached,
    dd22_a_commit_that_stopped_half_way_can_be_repeated needs HalfLeft twin dd25_each_ticket_has_its_own_outcome,
    dd23_a_claim_whose_lease_is_over_can_be_committed,
    dd24_a_key_is_known_for_its_retention,
    dd25_each_ticket_has_its_own_outcome,
}

async fn dd20_what_is_committed_is_seen_by_everybody(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let all = many("row", 60)?;
    let tickets = a.take(&all, &under(1, LONG)).await?;
    // in parts and all at one time
    let parts = tickets.chunks(7).map(|part| a.commit(part, DAY));
    futures::future::try_join_all(parts).await?;
    for member in [&a, &b] {
        let verdicts = member.store.reserve(&all, &under(2, LONG)).await?;
        ensure!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Seen { .. })), "{verdicts:?}");
    }
    ensure!(a.store.commit(&[], DAY).await.is_empty());
    Ok(())
}

async fn dd21_a_ticket_that_holds_nothing_commits_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let released = a.win("x", &under(1, LONG)).await?;
    a.release(slice::from_ref(&released)).await?;
    failed(a.store.commit(slice::from_ref(&released), DAY).await.remove(0), &[fenced])?;
    let again = b.win("x", &under(2, LONG)).await?;
    failed(a.store.commit(&[released], DAY).await.remove(0), &[fenced])?;
    ensure!(!a.seen("x").await?);
    b.release(&[again]).await?;

    let stale = a.win("y", &under(1, SHORT)).await?;
    let (_, _, ticket) = b.lapsed("y", &under(2, LONG)).await?;
    failed(a.store.commit(&[stale], DAY).await.remove(0), &[fenced])?;
    ensure!(!a.seen("y").await?);
    b.release(&[ticket]).await?;
    a.win("y", &under(3, LONG)).await?;
    Ok(())
}

async fn dd22_a_commit_of_unknown_outcome_can_be_repeated(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::failing(arm).await?;
    let tickets = a.take(&rows(["x", "y", "z"])?, &under(1, LONG)).await?;
    a.way.fail(Failure::Lost).await;
    for outcome in a.store.commit(&tickets, DAY).await {
        failed(outcome, &[unknown])?;
    }
    a.way.heal().await;
    a.commit(&tickets, DAY).await?;
    ensure!(b.seen("x").await? && b.seen("y").await? && b.seen("z").await?);
    Ok(())
}

async fn dd22_a_commit_that_stopped_half_way_can_be_repeated(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::failing(arm).await?;
    let all = many("row", 40)?;
    let tickets = a.take(&all, &under(1, LONG)).await?;
    a.way.fail(Failure::HalfLeft).await;
    let outcomes = a.store.commit(&tickets, DAY).await;
    ensure!(outcomes.len() == tickets.len() && outcomes.iter().any(Result::is_err), "nothing failed");
    a.way.heal().await;
    // what failed is repeated; what is committed stays so
    let failed = tickets.iter().zip(outcomes).filter(|(_, outcome)| outcome.is_err());
    let failed: Vec<_> = failed.map(|(ticket, _)| ticket.clone()).collect();
    a.commit(&failed, DAY).await?;
    let verdicts = b.store.reserve(&all, &under(2, LONG)).await?;
    ensure!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Seen { .. })), "{verdicts:?}");
    Ok(())
}

async fn dd23_a_claim_whose_lease_is_over_can_be_committed(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let ticket = a.win("x", &under(1, SHORT)).await?;
    tokio::time::sleep(SHORT + Duration::from_millis(50)).await;
    a.commit(&[ticket], DAY).await?;
    ensure!(b.seen("x").await?);
    Ok(())
}

/// A retention that is waited for; a busy machine looks in time all the same.
const BRIEF: Duration = Duration::from_secs(6);

async fn dd24_a_key_is_known_for_its_retention(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let tickets = a.take(&rows(["brief", "long", "ever"])?, &under(1, LONG)).await?;
    a.commit(&tickets[1..2], DAY).await?;
    a.commit(&tickets[2..], Retention::Forever).await?;
    let committed = super::super::stage::now();
    a.commit(&tickets[..1], Retention::For(BRIEF)).await?;
    ensure!(b.seen("brief").await? && b.seen("long").await? && b.seen("ever").await?);
    until("it is forgotten", async || match b.ask("brief", &under(2, LONG)).await? {
        Verdict::Seen { .. } => Ok(false),
        Verdict::New(_) => Ok(true),
        other @ (Verdict::Busy { .. } | Verdict::Lapsed { .. } | Verdict::Same(_)) => bail!("{other:?}"),
    })
    .await?;
    let slack = Duration::from_millis(100);
    ensure!(committed.elapsed() + slack >= BRIEF, "it was forgotten too soon");
    ensure!(a.seen("long").await? && a.seen("ever").await? && !a.seen("brief").await?);
    Ok(())
}

async fn dd25_each_ticket_has_its_own_outcome(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let tickets = a.take(&rows(["x", "y", "z"])?, &under(1, LONG)).await?;
    b.release(&tickets[1..2]).await?;
    let outcomes = a.store.commit(&tickets, DAY).await;
    let ok: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    ensure!(ok == [true, false, true], "{outcomes:?}");
    ensure!(b.seen("x").await? && b.seen("z").await?);
    b.win("y", &under(2, LONG)).await?;
    Ok(())
}
