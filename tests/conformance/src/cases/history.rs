//! mq40–mq46: what a reader of one table is shown.

use crate::{
    Arm, Ending, Setup, Stage,
    case::cases,
    stage::{PATIENCE, WIDE, drain, setup, shown, shown_block, shown_live, shown_nothing, table, tenant},
};
use anyhow::{Context as _, bail, ensure};
use std::time::Duration;
use wh_mq::{Allowance, From, Gap, Happening, History};
use wh_types::{Block, Cursor, Epoch, Timestamp};

cases! {
    mq40_from_now_shows_exactly_what_is_stored_afterwards,
    mq40_a_waiting_reader_is_shown_a_block_as_it_is_stored,
    mq41_from_a_cursor_shows_what_follows_settled_or_not_then_live,
    mq41_nothing_is_lost_or_doubled_at_the_seam_under_load,
    mq41_live_is_said_once_also_when_nothing_was_replayed,
    mq41_a_cursor_is_good_after_a_reopen,
    mq41_a_dropped_next_loses_nothing,
    mq42_from_a_time_shows_what_was_received_since,
    mq42_a_time_in_the_future_shows_only_what_comes,
    mq43_a_cursor_of_another_epoch_gives_one_gap_then_what_is_kept,
    mq43_a_cursor_older_than_what_is_kept_gives_one_gap needs Allowances twin no_window_of_ours,
    mq43_a_gap_among_what_is_kept_is_told needs Allowances twin no_window_of_ours,
    mq44_a_history_shows_one_table_of_one_tenant,
    mq45_a_slow_reader_catches_up_or_is_told_and_slows_nobody,
    mq46_from_the_seam_a_history_goes_on_as_it_was,
}

async fn no_window_of_ours(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let outcome = stage.broker().set_allowance(&tenant("acme"), setup().allowance).await;
    crate::stage::failed(outcome, wh_types::Class::Unsupported)
}

async fn many(stage: &Stage, count: usize) -> anyhow::Result<(Vec<Block>, Vec<Cursor>)> {
    let blocks: Vec<Block> = (0..count).map(|_| stage.block("t", 1)).collect();
    let cursors = stage.publish(&blocks).await?;
    Ok((blocks, cursors))
}

async fn shows(history: &mut dyn History, blocks: &[Block], cursors: &[Cursor]) -> anyhow::Result<()> {
    for (n, (block, cursor)) in blocks.iter().zip(cursors).enumerate() {
        let (at, came) = shown_block(history).await.with_context(|| format!("block {n} of {}", blocks.len()))?;
        ensure!((at, &came) == (*cursor, block), "{at}: {came:?} where {cursor}: {block:?} must be");
    }
    Ok(())
}

async fn mq40_from_now_shows_exactly_what_is_stored_afterwards(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    many(&stage, 5).await?;
    let mut history = stage.follow("t", From::Now).await?;
    let (blocks, cursors) = many(&stage, 40).await?;
    shown_live(&mut *history).await?;
    shows(&mut *history, &blocks, &cursors).await?;
    shown_nothing(&mut *history).await
}

async fn mq40_a_waiting_reader_is_shown_a_block_as_it_is_stored(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let mut one = stage.follow("t", From::Now).await?;
    let mut two = stage.follow("t", From::Now).await?;
    shown_live(&mut *one).await?;
    shown_live(&mut *two).await?;
    for _ in 0..20 {
        let block = stage.block("t", 2);
        let (a, b, stored) = futures::join!(shown_block(&mut *one), shown_block(&mut *two), stage.store(&block));
        let cursor = stored?;
        ensure!(a? == (cursor, block.clone()) && b? == (cursor, block));
    }
    Ok(())
}

async fn mq41_from_a_cursor_shows_what_follows_settled_or_not_then_live(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (mut blocks, mut cursors) = many(&stage, 10).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(drain(&mut *feed, 10).await?.len() == 10);
    let (more, at) = many(&stage, 10).await?;
    blocks.extend(more);
    cursors.extend(at);
    for from in [0, 5, 14, 19] {
        let mut history = stage.follow("t", From::After(cursors[from])).await?;
        shows(&mut *history, &blocks[from + 1..], &cursors[from + 1..]).await?;
        shown_live(&mut *history).await?;
    }
    let mut history = stage.follow_all("t", From::After(Cursor { sequence: 0, ..cursors[0] })).await?;
    shows(&mut *history, &blocks, &cursors).await?;
    shown_live(&mut *history).await?;
    let (live, at) = many(&stage, 3).await?;
    shows(&mut *history, &live, &at).await?;
    shown_nothing(&mut *history).await
}

async fn mq41_nothing_is_lost_or_doubled_at_the_seam_under_load(arm: &dyn Arm) -> anyhow::Result<()> {
    const BLOCKS: usize = 400;
    let stage = Stage::open(arm).await?;
    let (_, first) = many(&stage, 20).await?;
    let writer = async {
        let mut at = Vec::new();
        while at.len() < BLOCKS {
            at.extend(many(&stage, 1 + at.len() % 7).await?.1);
        }
        anyhow::Ok(at)
    };
    let reader = async |from: From| {
        let mut history = stage.follow_all("t", from).await?;
        let (mut seen, mut live) = (Vec::new(), 0);
        while seen.len() < 20 + BLOCKS {
            match tokio::time::timeout(PATIENCE, history.next()).await.context("nothing came")?? {
                Some(Happening::Block(cursor, _)) => seen.push(cursor),
                Some(Happening::Live) => live += 1,
                other @ (Some(Happening::Gap(_)) | None) => bail!("{other:?}"),
            }
        }
        ensure!(live == 1, "Live was said {live} times");
        Ok(seen)
    };
    let start = From::After(Cursor { sequence: 0, ..first[0] });
    let readers = futures::future::try_join_all((0..4).map(|_| reader(start)));
    let (written, seen) = futures::join!(writer, readers);
    let expected: Vec<Cursor> = first.into_iter().chain(written?).collect();
    for seen in seen? {
        ensure!(seen[..] == expected[..seen.len()], "a reader saw other blocks than were stored");
    }
    Ok(())
}

async fn mq41_live_is_said_once_also_when_nothing_was_replayed(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let mut new_table = stage.follow("never seen", From::Now).await?;
    shown_live(&mut *new_table).await?;
    shown_nothing(&mut *new_table).await?;
    let (_, cursors) = many(&stage, 1).await?;
    let mut at_the_end = stage.follow("t", From::After(cursors[0])).await?;
    shown_live(&mut *at_the_end).await?;
    let (blocks, cursors) = many(&stage, 2).await?;
    shows(&mut *at_the_end, &blocks, &cursors).await?;
    shown_nothing(&mut *at_the_end).await
}

async fn mq41_a_cursor_is_good_after_a_reopen(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::open(arm).await?;
    let (blocks, cursors) = many(&stage, 6).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    drain(&mut *feed, 6).await?;
    feed.release().await?;
    for ending in [Ending::Clean, Ending::Crash] {
        stage.reopen(ending).await?;
        let mut history = stage.follow("t", From::After(cursors[2])).await?;
        shows(&mut *history, &blocks[3..], &cursors[3..]).await?;
        shown_live(&mut *history).await?;
        shown_nothing(&mut *history).await?;
    }
    Ok(())
}

async fn mq41_a_dropped_next_loses_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (blocks, cursors) = many(&stage, 50).await?;
    let mut history = stage.follow_all("t", From::After(Cursor { sequence: 0, ..cursors[0] })).await?;
    let mut seen = Vec::new();
    while seen.len() < 50 {
        let next = match futures::FutureExt::now_or_never(history.next()) {
            Some(next) => next?.context("ended")?,
            None => shown(&mut *history).await?,
        };
        match next {
            Happening::Block(cursor, block) => seen.push((cursor, block)),
            other @ (Happening::Live | Happening::Gap(_)) => bail!("{other:?}"),
        }
    }
    ensure!(seen.into_iter().eq(cursors.into_iter().zip(blocks)));
    shown_live(&mut *history).await
}

async fn mq42_from_a_time_shows_what_was_received_since(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (blocks, cursors) = many(&stage, 10).await?;
    for from in [0, 4, 9] {
        let mut history = stage.follow_all("t", From::Time(blocks[from].received)).await?;
        shows(&mut *history, &blocks[from..], &cursors[from..]).await?;
        shown_live(&mut *history).await?;
        shown_nothing(&mut *history).await?;
    }
    let mut all = stage.follow_all("t", From::Time(Timestamp::default())).await?;
    shows(&mut *all, &blocks, &cursors).await?;
    shown_live(&mut *all).await
}

async fn mq42_a_time_in_the_future_shows_only_what_comes(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    many(&stage, 3).await?;
    let future = Timestamp::from_millis(4_000_000_000_000);
    let mut history = stage.follow("t", From::Time(future)).await?;
    shown_live(&mut *history).await?;
    let (blocks, cursors) = many(&stage, 2).await?;
    shows(&mut *history, &blocks, &cursors).await
}

/// The one gap a history must begin with.
async fn one_gap(history: &mut dyn History) -> anyhow::Result<Gap> {
    match shown(history).await? {
        Happening::Gap(gap) => Ok(gap),
        other @ (Happening::Block(..) | Happening::Live) => bail!("{other:?} where a gap must be"),
    }
}

async fn mq43_a_cursor_of_another_epoch_gives_one_gap_then_what_is_kept(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (blocks, cursors) = many(&stage, 3).await?;
    let other = Cursor { epoch: Epoch(!cursors[0].epoch.0), ..cursors[1] };
    let mut history = stage.follow("t", From::After(other)).await?;
    let gap = one_gap(&mut *history).await?;
    ensure!(gap.before.is_none_or(|before| before == cursors[0]), "{gap:?}");
    shows(&mut *history, &blocks, &cursors).await?;
    shown_live(&mut *history).await?;
    shown_nothing(&mut *history).await
}

fn short() -> Setup {
    let allowance = Allowance { history: Duration::from_millis(400), ..setup().allowance };
    Setup { allowance, ..setup() }
}

/// Waits until the history begins after a cursor.
async fn forgotten(stage: &Stage, cursor: Cursor) -> anyhow::Result<()> {
    crate::stage::until("the history begins later", async || {
        // looking is what keeps a queue without tasks of its own going
        stage.broker().status().await?;
        let mut history = stage.follow("t", From::After(Cursor { sequence: cursor.sequence - 1, ..cursor })).await?;
        Ok(!matches!(shown(&mut *history).await?, Happening::Block(at, _) if at == cursor))
    })
    .await
}

async fn mq43_a_cursor_older_than_what_is_kept_gives_one_gap(arm: &dyn Arm) -> anyhow::Result<()> {
    let mut stage = Stage::with(arm, short()).await?;
    let (_, old) = many(&stage, 6).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    ensure!(drain(&mut *feed, 6).await?.len() == 6);
    forgotten(&stage, old[5]).await?;
    let (blocks, cursors) = many(&stage, 2).await?;
    drop(feed);
    for ending in [None, Some(Ending::Clean)] {
        if let Some(ending) = ending {
            stage.reopen(ending).await?;
        }
        let mut history = stage.follow("t", From::After(old[2])).await?;
        let gap = one_gap(&mut *history).await?;
        ensure!(gap.after.is_none_or(|after| after == old[2]), "{gap:?}");
        shows(&mut *history, &blocks, &cursors).await?;
        shown_live(&mut *history).await?;
        // who saw the last of the forgotten missed nothing
        let mut history = stage.follow("t", From::After(old[5])).await?;
        shows(&mut *history, &blocks, &cursors).await?;
        shown_live(&mut *history).await?;
    }
    Ok(())
}

async fn mq43_a_gap_among_what_is_kept_is_told(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::with(arm, short()).await?;
    let (blocks, cursors) = many(&stage, 5).await?;
    let mut feed = stage.feed("t", WIDE).await?;
    let mut taken = crate::stage::take(&mut *feed, 5).await?;
    // the first stays unsettled, and with it in the history; the rest is settled and grows old
    taken.remove(0);
    crate::stage::settle(&*feed.settle(), &taken, wh_mq::Verdict::Ack).await?;
    forgotten(&stage, cursors[4]).await?;
    let (more, at) = many(&stage, 1).await?;
    let mut history = stage.follow_all("t", From::After(Cursor { sequence: 0, ..cursors[0] })).await?;
    shows(&mut *history, &blocks[..1], &cursors[..1]).await?;
    let gap = one_gap(&mut *history).await?;
    ensure!(gap.after.is_none_or(|after| after == cursors[0]), "{gap:?}");
    shows(&mut *history, &more, &at).await?;
    shown_live(&mut *history).await
}

async fn mq44_a_history_shows_one_table_of_one_tenant(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let wanted = stage.block("t", 1);
    let all = [
        stage.block("u", 1),
        stage.block_of("globex", "t", 1),
        wanted.clone(),
        stage.block("t.u", 1),
        stage.block_of("globex", "u", 1),
        stage.block("T", 1),
    ];
    let mut live = stage.follow("t", From::Now).await?;
    let cursors = stage.publish(&all).await?;
    let mut replay = stage.follow_all("t", From::After(Cursor { sequence: 0, ..cursors[0] })).await?;
    shown_live(&mut *live).await?;
    ensure!(shown_block(&mut *live).await? == (cursors[2], wanted.clone()));
    ensure!(shown_block(&mut *replay).await? == (cursors[2], wanted));
    shown_live(&mut *replay).await?;
    shown_nothing(&mut *replay).await?;
    shown_nothing(&mut *live).await?;
    let other = stage.broker().history(&tenant("globex"), &table("t"), From::Time(Timestamp::default())).await?;
    let mut other = stage.whole(other);
    ensure!(shown_block(&mut *other).await?.0 == cursors[1]);
    shown_live(&mut *other).await
}

async fn mq45_a_slow_reader_catches_up_or_is_told_and_slows_nobody(arm: &dyn Arm) -> anyhow::Result<()> {
    const BLOCKS: usize = 3_000;
    let stage = Stage::open(arm).await?;
    let mut slow = stage.follow("t", From::Now).await?;
    let mut quick = stage.follow("t", From::Now).await?;
    shown_live(&mut *quick).await?;
    let mut cursors = Vec::new();
    while cursors.len() < BLOCKS {
        let (_, at) = many(&stage, 100).await?;
        for cursor in &at {
            ensure!(shown_block(&mut *quick).await?.0 == *cursor, "the quick one is slowed or misses");
        }
        cursors.extend(at);
    }
    // the slow one has not looked at anything so far
    shown_live(&mut *slow).await?;
    let mut expected = cursors.iter().peekable();
    while expected.peek().is_some() {
        match shown(&mut *slow).await? {
            Happening::Block(cursor, _) => {
                ensure!(expected.next() == Some(&cursor), "it misses silently, or sees twice: {cursor}");
            }
            Happening::Gap(gap) => {
                let before = gap.before.context("a gap whose end is not known")?;
                while expected.next_if(|cursor| **cursor < before).is_some() {}
            }
            Happening::Live => bail!("Live was said twice"),
        }
    }
    Ok(())
}

async fn mq46_from_the_seam_a_history_goes_on_as_it_was(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    for before in [0, 3] {
        many(&stage, before).await?;
        let mut live = stage.follow("t", From::Now).await?;
        let seam = live.seam().context("the backend cannot say where it is")?;
        let (blocks, cursors) = many(&stage, 5).await?;
        let mut again = stage.follow("t", From::After(seam)).await?;
        shown_live(&mut *live).await?;
        shows(&mut *live, &blocks, &cursors).await?;
        shows(&mut *again, &blocks, &cursors).await?;
        shown_live(&mut *again).await?;
        shown_nothing(&mut *again).await?;
    }
    Ok(())
}
