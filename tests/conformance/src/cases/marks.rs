//! mq70–mq76: how far tables are, said by whoever inserts and heard by whoever serves.

use crate::{
    Arm, Ending, Stage,
    case::cases,
    stage::{PATIENCE, QUIET, WIDE, failed, settle, table, take, tenant, until},
};
use anyhow::{Context as _, ensure};
use std::sync::Arc;
use wh_mq::{MOST_PARKED, Marks, ParkedRow, Progress, Reader, Verdict};
use wh_types::{Block, Class, Cursor};

cases! {
    mq70_a_reader_gets_what_is_known_and_then_what_is_new,
    mq70_committed_never_falls_whoever_says_so,
    mq71_a_mark_is_known_to_readers_of_its_table_alone,
    mq72_an_older_mark_of_an_owner_changes_nothing,
    mq73_parked_rows_of_marks_that_were_missed_are_seen,
    mq74_the_floor_is_what_is_settled,
    mq74_readers_of_a_table_without_a_mark_get_the_floor,
    mq75_a_feed_tells_how_far_its_unit_was,
    mq75_what_was_delivered_is_known_after_it_was_made_due,
    mq76_a_reader_that_is_not_asked_holds_nobody_up,
    mq76_readers_end_with_the_queue,
}

fn mark(stage: &Stage, name: &str, number: u64, committed: u64) -> Progress {
    let (tenant, table) = (tenant("acme"), table(name));
    let epoch = stage.broker().epoch_of(&tenant, &table).unwrap_or(wh_types::Epoch(7));
    let parked = Vec::new();
    Progress { tenant, table, epoch, committed, inserting: committed, parked, named_after: 0, owner: 1, number }
}

/// Announces, and waits until it is known here.
async fn say(marks: &Arc<dyn Marks>, mark: &Progress) -> anyhow::Result<()> {
    marks.announce(std::slice::from_ref(mark)).await?;
    Ok(marks.hear().await?)
}

async fn next(reader: &mut Reader) -> anyhow::Result<Arc<Progress>> {
    let next = tokio::time::timeout(PATIENCE, reader.next()).await.context("no mark came")?;
    next.context("the reader ended")
}

async fn nothing(reader: &mut Reader) -> anyhow::Result<()> {
    ensure!(tokio::time::timeout(QUIET, reader.next()).await.is_err(), "a mark came, and none may come");
    Ok(())
}

fn watch(stage: &Stage, name: &str) -> anyhow::Result<Reader> {
    Ok(stage.broker().marks().watch(&tenant("acme"), &table(name))?)
}

async fn mq70_a_reader_gets_what_is_known_and_then_what_is_new(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let marks = stage.broker().marks();
    let mut early = watch(&stage, "t")?;
    ensure!(early.latest().is_none());
    say(&marks, &mark(&stage, "t", 1, 4)).await?;
    ensure!(next(&mut early).await?.committed == 4);
    let mut late = watch(&stage, "t")?;
    ensure!(late.latest().is_some_and(|mark| mark.committed == 4));
    ensure!(next(&mut late).await?.committed == 4);
    let second = Progress { inserting: 9, ..mark(&stage, "t", 2, 7) };
    say(&marks, &second).await?;
    for reader in [&mut early, &mut late] {
        ensure!(*next(reader).await? == second);
        nothing(reader).await?;
    }
    Ok(())
}

async fn mq70_committed_never_falls_whoever_says_so(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (marks, mut reader) = (stage.broker().marks(), watch(&stage, "t")?);
    say(&marks, &Progress { inserting: 9, ..mark(&stage, "t", 1, 6) }).await?;
    // another owner, which knows less yet
    say(&marks, &Progress { owner: 2, ..mark(&stage, "t", 1, 3) }).await?;
    let known = next(&mut reader).await?;
    ensure!((known.committed, known.inserting) == (6, 9), "{known:?}: an insert of the owner before may be under way");
    say(&marks, &Progress { owner: 2, ..mark(&stage, "t", 2, 9) }).await?;
    let known = next(&mut reader).await?;
    ensure!((known.committed, known.inserting) == (9, 9), "{known:?}");
    Ok(())
}

async fn mq71_a_mark_is_known_to_readers_of_its_table_alone(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let marks = stage.broker().marks();
    let mut own = watch(&stage, "a.b c")?;
    let mut others = [watch(&stage, "a")?, stage.broker().marks().watch(&tenant("globex"), &table("a.b c"))?];
    let told = mark(&stage, "a.b c", 1, 4);
    say(&marks, &told).await?;
    ensure!(own.latest().as_deref() == Some(&told));
    ensure!(*next(&mut own).await? == told);
    for other in &mut others {
        nothing(other).await?;
    }
    Ok(())
}

async fn mq72_an_older_mark_of_an_owner_changes_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (marks, mut reader) = (stage.broker().marks(), watch(&stage, "t")?);
    let newest = Progress { inserting: 8, ..mark(&stage, "t", 5, 8) };
    say(&marks, &newest).await?;
    ensure!(*next(&mut reader).await? == newest);
    for number in [4, 5] {
        say(&marks, &Progress { inserting: 20, ..mark(&stage, "t", number, 6) }).await?;
    }
    ensure!(reader.latest().as_deref() == Some(&newest));
    nothing(&mut reader).await
}

async fn mq73_parked_rows_of_marks_that_were_missed_are_seen(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (marks, mut reader) = (stage.broker().marks(), watch(&stage, "t")?);
    let row = |sequence| ParkedRow { sequence, row: 2, code: "27".into() };
    say(&marks, &Progress { parked: vec![row(3)], named_after: 2, ..mark(&stage, "t", 1, 4) }).await?;
    say(&marks, &Progress { parked: vec![row(7)], named_after: 4, ..mark(&stage, "t", 2, 8) }).await?;
    let known = next(&mut reader).await?;
    ensure!(known.parked == [row(3), row(7)] && known.named_after == 2, "{known:?}");
    // so many that nobody remembers them all
    let last = 8 + 8 * MOST_PARKED as u64;
    for (number, from) in (3..).zip((8..last).step_by(MOST_PARKED)) {
        let to = from + MOST_PARKED as u64;
        let parked = (from + 1..=to).map(row).collect();
        say(&marks, &Progress { parked, named_after: from, ..mark(&stage, "t", number, to) }).await?;
    }
    let known = next(&mut reader).await?;
    ensure!(known.committed == last && known.named_after > 8, "{} {}", known.committed, known.named_after);
    let all = (known.named_after + 1..=last).all(|at| known.parked.binary_search(&row(at)).is_ok());
    ensure!(all && known.parked.len() < 8 * MOST_PARKED, "{} rows", known.parked.len());
    Ok(())
}

async fn some(stage: &Stage, count: usize) -> anyhow::Result<Vec<Cursor>> {
    let blocks: Vec<Block> = (0..count).map(|_| stage.block("t", 1)).collect();
    stage.publish(&blocks).await
}

async fn mq74_the_floor_is_what_is_settled(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let cursors = some(&stage, 4).await?;
    let marks = stage.broker().marks();
    let floor = async || marks.floor(&tenant("acme"), &table("t")).await;
    ensure!(floor().await?.settled < cursors[0].sequence);
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 4).await?;
    settle(&*feed.settle(), &taken[..1], Verdict::Ack).await?;
    settle(&*feed.settle(), &taken[2..], Verdict::Ack).await?;
    until("the first is known to be settled", async || {
        let floor = floor().await?;
        ensure!(floor.epoch == cursors[0].epoch && floor.settled < cursors[1].sequence, "{floor:?}");
        ensure!(floor.delivered >= cursors[1].sequence || floor.settled < cursors[0].sequence, "{floor:?}");
        Ok(floor.settled >= cursors[0].sequence)
    })
    .await?;
    settle(&*feed.settle(), &taken[1..2], Verdict::Ack).await?;
    until("all is known to be settled", async || {
        let floor = floor().await?;
        Ok(floor.settled >= cursors[3].sequence && floor.delivered == floor.settled)
    })
    .await
}

async fn mq74_readers_of_a_table_without_a_mark_get_the_floor(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let cursors = some(&stage, 2).await?;
    let mut reader = watch(&stage, "t")?;
    let marks = stage.broker().marks();
    let mut feed = stage.feed("t", WIDE).await?;
    let taken = take(&mut *feed, 2).await?;
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    until("all is known to be settled", async || {
        Ok(marks.floor(&tenant("acme"), &table("t")).await?.settled >= cursors[1].sequence)
    })
    .await?;
    let known = next(&mut reader).await?;
    ensure!(known.epoch == cursors[1].epoch && known.committed >= cursors[1].sequence, "{known:?}");
    ensure!(known.named_after == known.committed, "{known:?}: what was parked is not known");
    Ok(())
}

async fn mq75_a_feed_tells_how_far_its_unit_was(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let cursors = some(&stage, 3).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(feed.began().floor.settled < cursors[0].sequence, "{:?}", feed.began());
    let taken = take(&mut *feed, 3).await?;
    settle(&*feed.settle(), &taken[..1], Verdict::Ack).await?;
    feed.release().await?;
    let feed = stage.feed("t", WIDE).await?;
    let began = feed.began();
    ensure!(began.floor.epoch == cursors[0].epoch && began.in_order, "{began:?}");
    ensure!((cursors[0].sequence..cursors[1].sequence).contains(&began.floor.settled), "{began:?}");
    Ok(())
}

async fn mq75_what_was_delivered_is_known_after_it_was_made_due(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let cursors = some(&stage, 3).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    take(&mut *feed, 3).await?;
    drop(feed);
    let unit = stage.unit("t");
    until("the unit is free", async || Ok(stage.broker().release_orphan(unit).await.is_ok())).await?;
    let began = stage.feed("t", WIDE).await?.began();
    ensure!(began.floor.settled < cursors[0].sequence && began.in_order, "{began:?}");
    ensure!(began.floor.delivered >= cursors[2].sequence, "{began:?}: an insert of it may be under way");
    Ok(())
}

async fn mq76_a_reader_that_is_not_asked_holds_nobody_up(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (marks, mut idle) = (stage.broker().marks(), watch(&stage, "t")?);
    let all: Vec<Progress> = (1..=2_000).map(|n| mark(&stage, "t", n, n)).collect();
    for part in all.chunks(500) {
        marks.announce(part).await?;
    }
    marks.hear().await?;
    ensure!(next(&mut idle).await?.committed == 2_000);
    nothing(&mut idle).await
}

async fn mq76_readers_end_with_the_queue(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let (marks, mut reader) = (stage.broker().marks(), watch(&stage, "t")?);
    let told = mark(&stage, "t", 1, 1);
    stage.reopen(Ending::Clean).await?;
    let ended = tokio::time::timeout(PATIENCE, reader.next()).await.context("the reader waits")?;
    ensure!(ended.is_none());
    failed(marks.announce(std::slice::from_ref(&told)).await, Class::Stopping)?;
    failed(marks.hear().await, Class::Stopping)?;
    failed(marks.floor(&told.tenant, &told.table).await, Class::Stopping)?;
    failed(marks.watch(&told.tenant, &told.table).map(drop), Class::Stopping)
}
