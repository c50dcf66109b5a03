//! co01–co08: who gets a key.

use super::{
    super::{
        Arm, Member,
        stage::{LONG, SHORT, Stage, failed, held, key, now, until, win, win_over, win_soon},
    },
    cases,
};
use anyhow::{bail, ensure};
use std::time::Duration;
use wh_coord::{Claim, Error, Key, MAX_NOTE};
use wh_types::Class;

cases! {
    co01_a_key_has_one_holder,
    co02_fences_grow_from_holder_to_holder_and_back,
    co02_fences_grow_over_a_lapse twin co05_nothing_lapses_in_one_process,
    co03_keys_are_independent,
    co04_of_many_claimants_one_wins,
    co05_a_gone_holders_lease_is_held_until_it_lapses twin co05_nothing_lapses_in_one_process,
    co05_a_claim_after_a_lapse_is_told_whom_it_followed twin co05_nothing_lapses_in_one_process,
    co05_a_holder_that_renews_never_lapses,
    co05_a_foreign_value_is_held_for_a_lease twin co05_nothing_lapses_in_one_process,
    co06_a_claim_whose_answer_was_lost_is_won_by_the_next twin co05_nothing_lapses_in_one_process,
    co06_a_claim_whose_answer_was_lost_is_adopted twin co05_nothing_lapses_in_one_process,
    co07_a_dropped_claim_keeps_nobody_out,
    co08_a_note_beyond_the_bound_is_invalid,
}

async fn co01_a_key_has_one_holder(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.join("a").await?, stage.join("b").await?, key("one")?);
    let lease = win(&a, &k).await?;
    ensure!(*lease.key() == k && lease.term().is_live(now()));
    for member in [&b, &a, &b] {
        let seen = held(member, &k).await?;
        ensure!(seen.holder == "a" && seen.session == a.leases.session(), "{seen:?}");
    }
    ensure!(a.leases.session() != b.leases.session());
    Ok(())
}

async fn co02_fences_grow_from_holder_to_holder_and_back(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.join("a").await?, stage.join("b").await?, key("one")?);
    let mut last = 0;
    for round in 0..4 {
        for member in [&a, &b, &stage.join(&format!("c{round}")).await?] {
            let lease = win(member, &k).await?;
            ensure!(lease.fence() > last, "{} after {last}", lease.fence());
            last = lease.fence();
            member.leases.renew(&lease, &format!("round {round}")).await?;
            ensure!(lease.fence() == last, "a renewal moved the fence");
            member.leases.resign(lease).await?;
        }
    }
    Ok(())
}

async fn co02_fences_grow_over_a_lapse(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", SHORT).await?, stage.join("b").await?, key("one")?);
    let first = win(&a, &k).await?;
    a.leases.renew(&first, "note").await?;
    let fence = first.fence();
    drop(first);
    let (second, _) = win_soon(&b, &k).await?;
    ensure!(second.fence() > fence, "{} after {fence}", second.fence());
    Ok(())
}

async fn co03_keys_are_independent(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b) = (stage.join("a").await?, stage.join("b").await?);
    let _one = win(&a, &key("k.one")?).await?;
    let _two = win(&b, &key("k.two")?).await?;
    let _three = win(&a, &key("k.one.x")?).await?;
    held(&b, &key("k.one")?).await?;
    held(&a, &key("k.two")?).await?;
    Ok(())
}

async fn co04_of_many_claimants_one_wins(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let k = key("one")?;
    let mut members = Vec::new();
    for n in 0..6 {
        members.push(stage.join(&format!("m{n}")).await?);
    }
    for _ in 0..5 {
        let claims = members.iter().map(|member| member.leases.claim(&k, ""));
        let mut winners = Vec::new();
        for (member, claim) in members.iter().zip(futures::future::join_all(claims).await) {
            if let Claim::Won { lease, .. } = claim? {
                winners.push((member, lease));
            }
        }
        ensure!(winners.len() == 1, "{} winners", winners.len());
        for (member, lease) in winners {
            member.leases.resign(lease).await?;
        }
    }
    Ok(())
}

async fn co05_a_gone_holders_lease_is_held_until_it_lapses(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", SHORT).await?, stage.join("b").await?, key("one")?);
    let lease = win(&a, &k).await?;
    a.way.cut().await;
    // what was under way when it was cut has arrived by the time b looks twice
    let mut last = held(&b, &k).await?;
    loop {
        let began = now();
        match b.leases.claim(&k, "").await? {
            Claim::Held(seen) => {
                ensure!(seen.lapses.is_some_and(|lapses| lapses > began), "it lapsed and is held: {seen:?}");
                last = seen;
            }
            Claim::Won { .. } => break,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(last.lapses.is_some_and(|lapses| now() >= lapses), "it was won before it lapsed: {last:?}");
    ensure!(!lease.term().is_live(now()), "two hold it");
    Ok(())
}

async fn co05_a_claim_after_a_lapse_is_told_whom_it_followed(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", SHORT).await?, stage.join("b").await?, key("k.one")?);
    let Claim::Won { lease, over: None } = a.leases.claim(&k, "what a did").await? else { bail!("it is free") };
    drop(lease);
    let (lease, over) = win_soon(&b, &k).await?;
    let over = over.map(|seen| (seen.holder, seen.note, seen.session));
    ensure!(over == Some(("a".to_owned(), "what a did".to_owned(), a.leases.session())), "{over:?}");
    let seen = b.leases.observe(&key("k")?).await?;
    ensure!(seen[&k].over == Some(a.leases.session()), "others are told, too");
    b.leases.resign(lease).await?;
    let (_lease, over) = win_over(&a, &k).await?;
    ensure!(over.is_none(), "a resigned lease is followed by nobody: {over:?}");
    Ok(())
}

async fn co05_a_holder_that_renews_never_lapses(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", 2 * SHORT).await?, stage.join("b").await?, key("one")?);
    let lease = win(&a, &k).await?;
    let end = now() + SHORT * 4;
    while now() < end {
        held(&b, &k).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ensure!(lease.term().is_live(now()));
    Ok(())
}

async fn co05_a_foreign_value_is_held_for_a_lease(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, k) = (stage.0.join("a", SHORT).await?, key("one")?);
    stage.0.overwrite(&k, "not ours").await?;
    let began = now();
    held(&a, &k).await?;
    let _lease = win_soon(&a, &k).await?;
    ensure!(now() >= began + SHORT, "it was taken at once");
    Ok(())
}

/// The twin of what needs a store that can be lost.
pub(super) async fn co05_nothing_lapses_in_one_process(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let short = Duration::from_millis(300);
    let (a, b, k) = (stage.0.join("a", short).await?, stage.0.join("b", short).await?, key("k.one")?);
    let lease = win(&a, &k).await?;
    ensure!(lease.term().until().is_none(), "a local term has no end by time");
    tokio::time::sleep(3 * short).await;
    ensure!(lease.term().is_live(now()));
    let seen = held(&b, &k).await?;
    ensure!(seen.lapses.is_none() && !b.leases.clear(&k).await?);
    held(&b, &k).await?;
    Ok(())
}

/// Claims a key so that the write is stored and its answer is lost, and heals the way after so long.
async fn claim_deaf(stage: &Stage, n: u32, heal: Duration) -> anyhow::Result<(Member, Key, Result<Claim, Error>)> {
    let (a, b) = (stage.0.join("a", SHORT).await?, stage.join("b").await?);
    let k = key(&format!("k.deaf{n}"))?;
    a.way.slow().await;
    let faults = async {
        until("the claim is stored", async || Ok(!b.leases.observe(&key("k")?).await?.is_empty())).await?;
        // its answer is on its way
        a.way.deafen().await;
        tokio::time::sleep(heal).await;
        a.way.heal().await;
        anyhow::Ok(())
    };
    let (claim, faults) = futures::join!(a.leases.claim(&k, ""), faults);
    faults?;
    let seen = held(&b, &k).await?;
    ensure!(seen.session == a.leases.session(), "{seen:?}");
    Ok((a, k, claim))
}

async fn co06_a_claim_whose_answer_was_lost_is_won_by_the_next(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, k, claim) = claim_deaf(&stage, 0, SHORT / 2).await?;
    failed(claim, Class::Unknown)?;
    let (lease, over) = win_over(&a, &k).await?;
    ensure!(over.is_none() && lease.term().is_live(now()), "our own claim was in our way");
    Ok(())
}

async fn co06_a_claim_whose_answer_was_lost_is_adopted(arm: &dyn Arm) -> anyhow::Result<()> {
    // it asks once more within its own call; a machine that stalls may keep that from being answered in time
    for n in 0..8 {
        let stage = Stage::open(arm).await?;
        let (a, k, claim) = claim_deaf(&stage, n, Duration::from_millis(550)).await?;
        match claim {
            Ok(Claim::Won { lease, over: None }) => {
                ensure!(lease.term().is_live(now()) && held(&a, &k).await?.session == a.leases.session());
                return Ok(());
            }
            Ok(other) => bail!("{other:?}"),
            Err(error) => ensure!(error.class() == Class::Unknown, "{error}"),
        }
    }
    bail!("a lost answer was never adopted")
}

async fn co07_a_dropped_claim_keeps_nobody_out(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b) = (stage.0.join("a", SHORT).await?, stage.join("b").await?);
    for micros in [0, 50, 200, 500, 1_000, 5_000] {
        let k = key(&format!("k{micros}"))?;
        let dropped = tokio::time::timeout(Duration::from_micros(micros), a.leases.claim(&k, "")).await;
        drop(dropped);
        let (lease, _) = win_soon(&a, &k).await?;
        a.leases.resign(lease).await?;
        let dropped = tokio::time::timeout(Duration::from_micros(micros), a.leases.claim(&k, "")).await;
        drop(dropped);
        win_soon(&b, &k).await?;
    }
    Ok(())
}

async fn co08_a_note_beyond_the_bound_is_invalid(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", LONG).await?, stage.join("b").await?, key("k.one")?);
    let (long, longest) = ("n".repeat(MAX_NOTE + 1), "n".repeat(MAX_NOTE));
    failed(a.leases.claim(&k, &long).await, Class::Invalid)?;
    ensure!(b.leases.observe(&key("k")?).await?.is_empty(), "something was written");
    let Claim::Won { lease, .. } = a.leases.claim(&k, &longest).await? else { bail!("it is free") };
    ensure!(b.leases.observe(&key("k")?).await?[&k].note == longest);
    failed(a.leases.renew(&lease, &long).await, Class::Invalid)?;
    ensure!(lease.term().is_live(now()));
    Ok(())
}
