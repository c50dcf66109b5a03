//! co10–co21: how a term goes on, and how it ends.

use super::{
    super::{
        Arm,
        stage::{LONG, SHORT, Stage, failed, held, key, now, seen, until, win, win_soon},
    },
    cases,
    claiming::co05_nothing_lapses_in_one_process,
};
use anyhow::{bail, ensure};
use std::time::Duration;
use wh_coord::{Claim, End};
use wh_types::Class;

cases! {
    co10_a_lease_is_renewed_by_itself twin co05_nothing_lapses_in_one_process,
    co11_a_term_ends_at_its_deadline_with_a_request_under_way twin co05_nothing_lapses_in_one_process,
    co11_a_term_ends_before_another_begins twin co05_nothing_lapses_in_one_process,
    co12_a_lease_that_was_taken_is_lost twin co05_nothing_lapses_in_one_process,
    co12_a_lease_that_was_removed_is_lost twin co05_nothing_lapses_in_one_process,
    co13_a_note_is_seen_by_others_under_the_same_fence,
    co13_the_latest_of_many_notes_stays,
    co14_a_renewal_whose_answer_was_lost_is_ours twin co05_nothing_lapses_in_one_process,
    co14_a_note_whose_answer_was_lost_is_stored_once_and_returns twin co05_nothing_lapses_in_one_process,
    co15_a_dropped_lease_ends_and_is_renewed_no_more,
    co16_a_lapsed_lease_is_cleared_and_a_live_one_stays twin co05_nothing_lapses_in_one_process,
    co20_a_resigned_key_is_free_at_once,
    co20_a_renewal_under_way_does_not_bring_a_resigned_lease_back,
    co21_resigning_a_lost_term_leaves_its_successor_alone twin co05_nothing_lapses_in_one_process,
    co40_closing_resigns_everything_once_and_for_all,
}

async fn co10_a_lease_is_renewed_by_itself(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", 2 * SHORT).await?, stage.join("b").await?, key("k.one")?);
    let lease = win(&a, &k).await?;
    let first = held(&b, &k).await?.revision;
    until("it is renewed", async || Ok(held(&b, &k).await?.revision > first + 2)).await?;
    ensure!(lease.term().is_live(now()) && lease.fence() <= first);
    Ok(())
}

async fn co11_a_term_ends_at_its_deadline_with_a_request_under_way(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, k) = (stage.0.join("a", SHORT).await?, key("one")?);
    let mut soonest = [Duration::MAX; 2];
    // that it is over is told when the machine gets to it, which is soon unless it stalls
    for round in 0..10 {
        let deaf = round % 2 == 0;
        let lease = win(&a, &k).await?;
        let term = lease.term();
        if deaf {
            a.way.deafen().await
        } else {
            a.way.cut().await
        }
        let lost_from = now();
        ensure!(term.ended().await == End::Lost && term.end() == Some(End::Lost) && !term.is_live(now()));
        let took = now().saturating_duration_since(lost_from);
        soonest[usize::from(deaf)] = soonest[usize::from(deaf)].min(took);
        failed(a.leases.renew(&lease, "too late").await, Class::Fenced)?;
        a.way.heal().await;
        let (again, _) = win_soon(&a, &k).await?;
        ensure!(again.fence() > lease.fence());
        a.leases.resign(again).await?;
        let in_time = |took: &Duration| *took <= SHORT * 2 / 3 + Duration::from_millis(500);
        if soonest.iter().all(in_time) {
            return Ok(());
        }
    }
    bail!("the term ended after {soonest:?} at best")
}

async fn co11_a_term_ends_before_another_begins(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", SHORT).await?, stage.join("b").await?, key("one")?);
    let lease = win(&a, &k).await?;
    held(&b, &k).await?;
    // what a asks arrives all the time, so its lease is renewed in the store and it hears nothing of it
    a.way.deafen().await;
    let (_other, _) = win_soon(&b, &k).await?;
    ensure!(!lease.term().is_live(now()) && lease.term().end() == Some(End::Lost), "two hold it");
    Ok(())
}

async fn co12_a_lease_that_was_taken_is_lost(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, k) = (stage.0.join("a", SHORT).await?, key("one")?);
    let lease = win(&a, &k).await?;
    stage.0.overwrite(&k, r#"{"holder":"z","session":"ff","duration_ms":60000}"#).await?;
    ensure!(lease.term().ended().await == End::Lost);
    ensure!(held(&a, &k).await?.holder == "z", "the value of the other was written over");
    Ok(())
}

async fn co12_a_lease_that_was_removed_is_lost(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", SHORT).await?, stage.join("b").await?, key("one")?);
    let lease = win(&a, &k).await?;
    stage.0.remove(&k).await?;
    let other = win(&b, &k).await?;
    ensure!(lease.term().ended().await == End::Lost && other.term().is_live(now()));
    ensure!(other.fence() > lease.fence());
    Ok(())
}

async fn co13_a_note_is_seen_by_others_under_the_same_fence(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.join("a").await?, stage.join("b").await?, key("k.one")?);
    let Claim::Won { lease, .. } = a.leases.claim(&k, "at first").await? else { anyhow::bail!("it is free") };
    ensure!(seen(&*b.leases, "k").await?[0].1.note == "at first");
    let fence = lease.fence();
    for note in ["ünits \"0:1\"\n", "", "own 0:0-7"] {
        a.leases.renew(&lease, note).await?;
        ensure!(seen(&*b.leases, "k").await?[0].1.note == note, "{note:?} is not seen");
    }
    ensure!(lease.fence() == fence && lease.term().is_live(now()));
    Ok(())
}

async fn co13_the_latest_of_many_notes_stays(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.join("a").await?, stage.join("b").await?, key("k.one")?);
    let lease = win(&a, &k).await?;
    let notes: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    for outcome in futures::future::join_all(notes.iter().map(|note| a.leases.renew(&lease, note))).await {
        outcome?;
    }
    ensure!(seen(&*b.leases, "k").await?[0].1.note == "49");
    Ok(())
}

async fn co14_a_renewal_whose_answer_was_lost_is_ours(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", 4 * SHORT).await?, stage.join("b").await?, key("k.one")?);
    let lease = win(&a, &k).await?;
    for _ in 0..2 {
        let before = held(&b, &k).await?.revision;
        a.way.deafen().await;
        until("a renewal is stored", async || Ok(held(&b, &k).await?.revision > before)).await?;
        a.way.heal().await;
        a.leases.renew(&lease, "still mine").await?;
    }
    ensure!(lease.term().is_live(now()) && seen(&*b.leases, "k").await?[0].1.note == "still mine");
    Ok(())
}

async fn co14_a_note_whose_answer_was_lost_is_stored_once_and_returns(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", 4 * SHORT).await?, stage.join("b").await?, key("k.one")?);
    let lease = win(&a, &k).await?;
    a.way.deafen().await;
    let heal = async {
        until("the note is stored", async || Ok(seen(&*b.leases, "k").await?[0].1.note == "new")).await?;
        a.way.heal().await;
        anyhow::Ok(())
    };
    let (told, healed) = futures::join!(a.leases.renew(&lease, "new"), heal);
    healed?;
    told?;
    ensure!(lease.term().is_live(now()));
    Ok(())
}

async fn co15_a_dropped_lease_ends_and_is_renewed_no_more(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", SHORT).await?, stage.join("b").await?, key("one")?);
    let lease = win(&a, &k).await?;
    let term = lease.term();
    drop(lease);
    ensure!(term.ended().await == End::Lost && !term.is_live(now()));
    win_soon(&b, &k).await?;
    Ok(())
}

async fn co16_a_lapsed_lease_is_cleared_and_a_live_one_stays(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", SHORT).await?, stage.join("b").await?, key("k.one")?);
    let lease = win(&a, &k).await?;
    ensure!(!b.leases.clear(&k).await? && !a.leases.clear(&k).await?, "a live lease was cleared");
    drop(lease);
    until("it lapses and is cleared", async || Ok(b.leases.clear(&k).await?)).await?;
    ensure!(seen(&*b.leases, "k").await?.is_empty() && !b.leases.clear(&k).await?);
    let (_lease, over) = super::super::stage::win_over(&stage.join("c").await?, &k).await?;
    ensure!(over.is_none(), "a cleared lease is followed by nobody");
    Ok(())
}

async fn co20_a_resigned_key_is_free_at_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.join("a").await?, stage.join("b").await?, key("one")?);
    let lease = win(&a, &k).await?;
    let term = lease.term();
    a.leases.resign(lease).await?;
    ensure!(term.end() == Some(End::Resigned) && term.ended().await == End::Resigned && !term.is_live(now()));
    let lease = win(&b, &k).await?;
    b.leases.resign(lease).await?;
    win(&a, &k).await?;
    Ok(())
}

async fn co20_a_renewal_under_way_does_not_bring_a_resigned_lease_back(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", LONG).await?, stage.join("b").await?, key("k.one")?);
    for n in 0..20 {
        let lease = win(&a, &k).await?;
        let renewal = tokio::time::timeout(Duration::from_micros(n * 50), a.leases.renew(&lease, "late"));
        drop(renewal.await);
        a.leases.resign(lease).await?;
        ensure!(seen(&*b.leases, "k").await?.is_empty(), "it came back in round {n}");
    }
    Ok(())
}

async fn co21_resigning_a_lost_term_leaves_its_successor_alone(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", SHORT).await?, stage.join("b").await?, key("one")?);
    let lease = win(&a, &k).await?;
    stage.0.remove(&k).await?;
    let other = win(&b, &k).await?;
    // once while the loss is not noticed yet, or just about to be
    a.leases.resign(lease).await?;
    ensure!(held(&a, &k).await?.session == b.leases.session());
    ensure!(other.term().is_live(now()));
    b.leases.renew(&other, "mine").await?;
    Ok(())
}

async fn co40_closing_resigns_everything_once_and_for_all(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b) = (stage.join("a").await?, stage.join("b").await?);
    let (one, two, three) = (key("k.one")?, key("k.two")?, key("k.three")?);
    let (first, second, other) = (win(&a, &one).await?, win(&a, &two).await?, win(&b, &three).await?);
    a.leases.close().await;
    a.leases.close().await;
    for lease in [&first, &second] {
        ensure!(lease.term().end() == Some(End::Resigned));
    }
    ensure!(other.term().is_live(now()));
    failed(a.leases.claim(&one, "").await, Class::Stopping)?;
    failed(a.leases.renew(&first, "").await, Class::Stopping)?;
    failed(a.leases.observe(&key("k")?).await, Class::Stopping)?;
    failed(a.leases.clear(&one).await, Class::Stopping)?;
    a.leases.resign(first).await?;
    ensure!(seen(&*b.leases, "k").await?.len() == 1);
    win(&b, &one).await?;
    win(&b, &two).await?;
    Ok(())
}
