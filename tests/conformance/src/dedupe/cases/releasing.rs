//! dd30, dd31: rows that are not stored and never will be.

use super::{
    super::{
        Arm,
        stage::{DAY, LONG, SHORT, Stage, failed, fenced, many, under},
    },
    cases,
};
use anyhow::ensure;
use std::slice;

cases! {
    dd30_a_released_key_is_new_at_once,
    dd31_a_ticket_that_holds_nothing_releases_nothing,
}

async fn dd30_a_released_key_is_new_at_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let all = many("row", 30)?;
    for round in 0..3 {
        let tickets = a.take(&all, &under(round, LONG)).await?;
        a.release(&tickets).await?;
        let tickets = b.take(&all, &under(round + 10, LONG)).await?;
        b.release(&tickets).await?;
    }
    ensure!(a.store.release(&[]).await.is_empty());
    Ok(())
}

async fn dd31_a_ticket_that_holds_nothing_releases_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let stale = a.win("x", &under(1, SHORT)).await?;
    let (_, _, ticket) = b.lapsed("x", &under(2, LONG)).await?;
    failed(a.store.release(slice::from_ref(&stale)).await.remove(0), &[fenced])?;
    ensure!(!a.seen("x").await?);
    b.commit(slice::from_ref(&ticket), DAY).await?;
    for ticket in [stale, ticket] {
        failed(a.store.release(&[ticket]).await.remove(0), &[fenced])?;
        ensure!(a.seen("x").await? && b.seen("x").await?);
    }
    let once = a.win("y", &under(3, LONG)).await?;
    a.release(slice::from_ref(&once)).await?;
    failed(a.store.release(&[once]).await.remove(0), &[fenced])?;
    Ok(())
}
