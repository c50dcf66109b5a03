//! Stores that are lost, slow, refuse, come back; and the end of a member.

use super::{
    super::{
        Arm, Member, Way,
        stage::{LONG, Stage, changed, failed, key, now, table, tenant, until, view},
    },
    cases,
};
use anyhow::ensure;
use std::time::Duration;
use wh_cache::{Change, Filled, Landing, Outcome, Skipped, View};
use wh_types::Class;

cases![
    ca30_a_store_that_cannot_be_reached_costs_little_and_fails_nothing twin ca30_a_store_in_the_process_is_never_away,
    ca30_a_store_that_answers_too_late_is_as_good_as_none twin ca30_a_store_in_the_process_is_never_away,
    ca31_what_is_owed_lands_once_the_store_is_back twin ca31_nothing_is_owed_in_one_process,
    ca31_what_was_sent_and_not_answered_is_owed twin ca31_nothing_is_owed_in_one_process,
    ca32_who_owes_is_not_served_what_it_would_end twin ca31_nothing_is_owed_in_one_process,
    ca33_a_store_that_failed_is_left_alone_for_a_while twin ca30_a_store_in_the_process_is_never_away,
    ca34_a_store_that_lost_everything_costs_misses_only,
    ca35_a_member_that_starts_without_the_store_uses_it_later twin ca30_a_store_in_the_process_is_never_away,
    ca36_a_store_that_comes_back_as_it_was_serves_nothing_that_was_ended_since twin ca31_nothing_is_owed_in_one_process,
    ca40_after_close_nothing_is_found_and_nothing_taken,
    ca40_what_is_owed_is_delivered_at_the_end twin ca31_nothing_is_owed_in_one_process,
];

/// What a lookup may take that is not answered: far more than its bound, far less than a hang.
const SOON: Duration = Duration::from_secs(20);

async fn ca30_a_store_that_cannot_be_reached_costs_little_and_fails_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    lost(&a, &b, true).await?;
    lost(&a, &b, false).await
}

async fn lost(a: &Member, b: &Member, down: bool) -> anyhow::Result<()> {
    let view = view(&["clicks"])?;
    a.keep(&view, "q", "answer").await?;
    let before = a.cache.snapshot(&view).await;
    if down {
        a.way.down().await?
    } else {
        a.way.black_hole().await?
    }
    for _ in 0..12 {
        let began = now();
        let found = a.cache.lookup(&view, &key("q")).await;
        ensure!(matches!(found.outcome, Outcome::Bypass | Outcome::Fault(_)), "{:?}", found.outcome);
        ensure!(found.at.is_blind() && a.cache.snapshot(&view).await.is_blind());
        let kept = a.cache.put(&found.at, &key("q"), "unseen".into(), LONG).await?;
        ensure!(kept == Filled::Skipped(Skipped::Blind));
        // one that is not answered may arrive later
        let kept = a.cache.put(&before, &key("q"), "answer".into(), LONG).await;
        ensure!(!matches!(kept, Ok(Filled::Kept)), "{kept:?}");
        ensure!(now().saturating_duration_since(began) < SOON);
    }
    a.way.heal().await?;
    a.served(&view, "q", "answer").await?;
    a.keep(&view, "q", "again").await?;
    b.served(&view, "q", "again").await
}

async fn ca30_a_store_that_answers_too_late_is_as_good_as_none(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    a.keep(&view, "q", "answer").await?;
    a.way.slow().await?;
    for _ in 0..10 {
        let began = now();
        ensure!(a.find(&view, "q").await.is_none(), "it came too late");
        ensure!(now().saturating_duration_since(began) < SOON);
    }
    a.way.heal().await?;
    a.served(&view, "q", "answer").await?;
    b.served(&view, "q", "answer").await
}

async fn ca30_a_store_in_the_process_is_never_away(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, _) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    for fault in 0..4 {
        break_it(&*a.way, fault).await?;
        ensure!(a.cache.status() == wh_cache::Status::default());
        a.keep(&view, "q", "answer").await?;
        a.served(&view, "q", "answer").await?;
    }
    Ok(())
}

async fn break_it(way: &dyn Way, fault: usize) -> anyhow::Result<()> {
    match fault {
        0 => way.down().await,
        1 => way.black_hole().await,
        2 => way.slow().await,
        _ => way.read_only().await,
    }
}

async fn ca31_what_is_owed_lands_once_the_store_is_back(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    for fault in [0, 1, 3] {
        let at = b.keep(&view, "q", "answer").await?;
        a.served(&view, "q", "answer").await?;
        break_it(&*a.way, fault).await?;
        for _ in 0..3 {
            ensure!(a.change(changed("clicks")?).await? == Landing::Owed);
        }
        ensure!(a.cache.status().owed == 1, "{:?}", a.cache.status());
        a.not_served(&view, "q").await?;
        a.way.heal().await?;
        a.well().await?;
        a.not_served(&view, "q").await?;
        b.not_served(&view, "q").await?;
        drop(b.cache.put(&at, &key("q"), "late".into(), LONG).await);
        a.not_served(&view, "q").await?;
    }
    Ok(())
}

async fn ca31_what_was_sent_and_not_answered_is_owed(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    b.keep(&view, "q", "answer").await?;
    a.way.slow().await?;
    ensure!(a.change(changed("clicks")?).await? == Landing::Owed, "nobody said that it landed");
    a.not_served(&view, "q").await?;
    a.way.heal().await?;
    a.well().await?;
    b.not_served(&view, "q").await?;
    b.keep(&view, "q", "new").await?;
    a.served(&view, "q", "new").await
}

async fn ca31_nothing_is_owed_in_one_process(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, _) = Stage::two(arm).await?;
    for fault in 0..4 {
        break_it(&*a.way, fault).await?;
        ensure!(a.change(changed("clicks")?).await? == Landing::Landed && a.cache.status().owed == 0);
    }
    Ok(())
}

async fn ca32_who_owes_is_not_served_what_it_would_end(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let (ended, other) = (view(&["clicks"])?, view(&["views"])?);
    for view in [&ended, &other] {
        b.keep(view, "q", "answer").await?;
        a.served(view, "q", "answer").await?;
    }
    a.way.read_only().await?;
    ensure!(a.change(changed("clicks")?).await? == Landing::Owed);
    // longer than the breaker's pause and any probe: reads would work all the while
    let over = now() + Duration::from_millis(1_500);
    until("some time passed", async || {
        ensure!(a.find(&ended, "q").await.is_none(), "it was served while its end was owed");
        Ok(now() > over)
    })
    .await?;
    a.way.heal().await?;
    a.well().await?;
    a.not_served(&ended, "q").await?;
    b.not_served(&ended, "q").await?;
    a.served(&other, "q", "answer").await
}

async fn ca33_a_store_that_failed_is_left_alone_for_a_while(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, _b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    a.keep(&view, "q", "answer").await?;
    ensure!(a.cache.status().away.is_none());
    a.way.black_hole().await?;
    let mut asked = 0;
    until("it is left alone", async || {
        asked += u32::from(matches!(a.cache.lookup(&view, &key("q")).await.outcome, Outcome::Fault(_)));
        Ok(a.cache.status().away.is_some())
    })
    .await?;
    ensure!((1..=5).contains(&asked), "it was asked {asked} times");
    let began = now();
    for _ in 0..1_000 {
        ensure!(matches!(a.cache.lookup(&view, &key("q")).await.outcome, Outcome::Bypass));
    }
    ensure!(now().saturating_duration_since(began) < SOON, "a thousand lookups waited");
    a.way.heal().await?;
    a.well().await?;
    a.served(&view, "q", "answer").await
}

async fn ca34_a_store_that_lost_everything_costs_misses_only(arm: &dyn Arm) -> anyhow::Result<()> {
    let (stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    let at = a.keep(&view, "q", "answer").await?;
    let late = b.cache.snapshot(&view).await;
    stage.0.wipe().await?;
    a.not_served(&view, "q").await?;
    // under versions that are gone
    for at in [&at, &late] {
        drop(b.cache.put(at, &key("q"), "old".into(), LONG).await);
        a.not_served(&view, "q").await?;
    }
    a.keep(&view, "q", "new").await?;
    b.served(&view, "q", "new").await
}

async fn ca35_a_member_that_starts_without_the_store_uses_it_later(arm: &dyn Arm) -> anyhow::Result<()> {
    let (stage, a, _) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    a.keep(&view, "q", "answer").await?;
    let late = stage.0.join_cut_off().await?;
    for _ in 0..10 {
        let found = late.cache.lookup(&view, &key("q")).await;
        ensure!(found.at.is_blind() && found.outcome.hit().is_none());
    }
    ensure!(late.cache.status().away.is_some());
    ensure!(late.change(changed("clicks")?).await? == Landing::Owed);
    late.way.heal().await?;
    late.well().await?;
    a.not_served(&view, "q").await?;
    a.keep(&view, "q", "new").await?;
    late.served(&view, "q", "new").await
}

/// What reads only `u`, and so is never ended.
fn unrelated() -> anyhow::Result<View> {
    view(&["u"])
}

async fn ca36_a_store_that_comes_back_as_it_was_serves_nothing_that_was_ended_since(
    arm: &dyn Arm,
) -> anyhow::Result<()> {
    let (stage, a, b) = Stage::two(arm).await?;
    let ended = [view(&["clicks"])?, view(&["views"])?];
    let kept = unrelated()?;
    for view in ended.iter().chain([&kept]) {
        b.keep(view, "q", "answer").await?;
    }
    stage.0.remember().await?;
    a.end(changed("clicks")?).await?;
    a.end(Change::table(tenant("t")?, table("views")?)).await?;
    stage.0.restore().await?;
    // it went through the loss: whatever it does from here on, it is not served what it had ended
    for view in &ended {
        ensure!(a.find(view, "q").await.is_none(), "it was served right after the store came back");
    }
    a.well().await?;
    for view in &ended {
        a.not_served(view, "q").await?;
    }
    until("the other member is not served it either", async || {
        let mut none = b.cache.status().away.is_none();
        for view in &ended {
            none &= b.find(view, "q").await.is_none();
        }
        Ok(none)
    })
    .await?;
    a.served(&kept, "q", "answer").await
}

async fn ca40_after_close_nothing_is_found_and_nothing_taken(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let member = stage.0.join().await?;
    let view = view(&["clicks"])?;
    let at = member.keep(&view, "q", "answer").await?;
    member.cache.close().await;
    member.cache.close().await;
    let found = member.cache.lookup(&view, &key("q")).await;
    ensure!(found.at.is_blind() && found.outcome.hit().is_none());
    failed(member.cache.put(&at, &key("q"), "x".into(), LONG).await, Class::Stopping)?;
    let landings = member.cache.invalidate(&[changed("clicks")?, changed("views")?]).await;
    ensure!(landings.len() == 2);
    for landing in landings {
        failed(landing, Class::Stopping)?;
    }
    ensure!(member.cache.status().away.is_some());
    Ok(())
}

async fn ca40_what_is_owed_is_delivered_at_the_end(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    b.keep(&view, "q", "answer").await?;
    a.way.slow().await?;
    ensure!(a.change(changed("clicks")?).await? == Landing::Owed);
    a.way.heal().await?;
    a.cache.close().await;
    ensure!(a.cache.status().owed == 0, "{:?}", a.cache.status());
    b.not_served(&view, "q").await
}
