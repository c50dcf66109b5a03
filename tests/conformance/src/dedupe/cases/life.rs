//! dd50, dd51: ends and beginnings.

use super::{
    super::{
        Arm,
        stage::{DAY, LONG, SHORT, Stage, failed, many, rows, stopping, under},
    },
    cases,
};
use anyhow::ensure;
use std::slice;
use wh_dedupe::{Retention, Verdict};

cases! {
    dd50_what_was_answered_outlives_the_process,
    dd50_it_outlives_several_processes,
    dd51_a_closed_store_refuses,
}

async fn dd50_what_was_answered_outlives_the_process(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let a = stage.0.join().await?;
    let claim = under(1, SHORT);
    let tickets = a.take(&rows(["stored", "released", "open", "ever"])?, &claim).await?;
    a.commit(&tickets[..1], DAY).await?;
    a.release(&tickets[1..2]).await?;
    a.commit(&tickets[3..], Retention::Forever).await?;
    drop(a);
    stage.0.crash().await?;
    let b = stage.0.join().await?;
    ensure!(b.seen("stored").await? && b.seen("ever").await?);
    b.win("released", &under(2, LONG)).await?;
    let (origin, _, ticket) = b.lapsed("open", &under(2, LONG)).await?;
    ensure!((origin.block, origin.stream, origin.epoch) == (claim.block, claim.stream, claim.epoch), "{origin:?}");
    b.commit(&[ticket], DAY).await?;
    ensure!(b.seen("open").await?);
    Ok(())
}

async fn dd50_it_outlives_several_processes(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    for life in 0..4_u8 {
        let member = stage.0.join().await?;
        for before in 0..life {
            let all = many(&format!("life-{before}"), 50)?;
            let verdicts = member.store.reserve(&all, &under(life, LONG)).await?;
            ensure!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Seen { .. })), "{verdicts:?}");
        }
        let tickets = member.take(&many(&format!("life-{life}"), 50)?, &under(life, LONG)).await?;
        member.commit(&tickets, DAY).await?;
        drop(member);
        stage.0.crash().await?;
    }
    Ok(())
}

async fn dd51_a_closed_store_refuses(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let a = stage.0.join().await?;
    let ticket = a.win("x", &under(1, SHORT)).await?;
    a.store.close().await;
    a.store.close().await;
    failed(a.store.reserve(&rows(["y"])?, &under(2, LONG)).await, &[stopping])?;
    failed(a.store.commit(slice::from_ref(&ticket), DAY).await.remove(0), &[stopping])?;
    failed(a.store.release(&[ticket]).await.remove(0), &[stopping])?;
    stage.0.crash().await?;
    let b = stage.0.join().await?;
    b.lapsed("x", &under(3, LONG)).await?;
    Ok(())
}
