//! co30–co33: what others see.

use super::{
    super::{
        Arm,
        stage::{LONG, PATIENCE, SHORT, Stage, held, key, now, seen, until, win},
    },
    cases,
    claiming::co05_nothing_lapses_in_one_process,
};
use anyhow::ensure;
use std::time::Duration;

cases! {
    co30_a_prefix_is_seen_whole_and_alone,
    co30_sixty_four_members_are_seen_in_one_read,
    co31_a_resigned_lease_is_not_seen,
    co31_a_lapsed_lease_is_seen_as_lapsed twin co05_nothing_lapses_in_one_process,
    co32_observing_takes_nothing,
    co33_changes_move_when_others_claim_note_and_resign,
}

async fn co30_a_prefix_is_seen_whole_and_alone(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b) = (stage.join("a").await?, stage.0.join("b", SHORT).await?);
    let mut leases = vec![win(&a, &key("ingest.m0")?).await?, win(&b, &key("ingest.m10")?).await?];
    for other in ["ingest", "ingestion.m0", "ingest.m0.x", "sweeper"] {
        leases.push(win(&a, &key(other)?).await?);
    }
    for member in [&a, &b] {
        let all = seen(&*member.leases, "ingest").await?;
        let who: Vec<_> = all.iter().map(|(key, seen)| (key.as_str(), seen.holder.as_str(), seen.duration)).collect();
        ensure!(who == [("ingest.m0", "a", LONG), ("ingest.m10", "b", SHORT)], "{who:?}");
        ensure!(all.iter().all(|(_, seen)| seen.is_live(now())));
        ensure!(all[0].1.session == a.leases.session() && all[1].1.session == b.leases.session());
    }
    ensure!(seen(&*a.leases, "nobody").await?.is_empty());
    Ok(())
}

async fn co30_sixty_four_members_are_seen_in_one_read(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b) = (stage.join("a").await?, stage.join("b").await?);
    let mut leases = Vec::new();
    for n in 0..64 {
        let lease = win(&a, &key(&format!("ingest.m{n}"))?).await?;
        a.leases.renew(&lease, &format!("own 0:{n}")).await?;
        leases.push(lease);
    }
    let all = seen(&*b.leases, "ingest").await?;
    ensure!(all.len() == 64, "{} of 64", all.len());
    for (key, seen) in all {
        ensure!(key.strip_prefix("ingest.m") == seen.note.strip_prefix("own 0:"), "{key}: {}", seen.note);
    }
    Ok(())
}

async fn co31_a_resigned_lease_is_not_seen(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.join("a").await?, stage.join("b").await?, key("k.one")?);
    let lease = win(&a, &k).await?;
    ensure!(seen(&*b.leases, "k").await?.len() == 1);
    a.leases.resign(lease).await?;
    ensure!(seen(&*b.leases, "k").await?.is_empty());
    let _again = win(&b, &k).await?;
    ensure!(seen(&*a.leases, "k").await?.len() == 1);
    Ok(())
}

async fn co31_a_lapsed_lease_is_seen_as_lapsed(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.0.join("a", SHORT).await?, stage.join("b").await?, key("k.one")?);
    let lease = win(&a, &k).await?;
    ensure!(seen(&*b.leases, "k").await?[0].1.is_live(now()));
    drop(lease);
    until("it lapses", async || {
        let all = seen(&*b.leases, "k").await?;
        ensure!(all.len() == 1, "a lapsed lease is still there");
        Ok(!all[0].1.is_live(now()))
    })
    .await
}

async fn co32_observing_takes_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.join("a").await?, stage.join("b").await?, key("k.one")?);
    for _ in 0..3 {
        ensure!(seen(&*b.leases, "k").await?.is_empty());
    }
    let lease = win(&a, &k).await?;
    let before = held(&b, &k).await?;
    for _ in 0..3 {
        seen(&*b.leases, "k").await?;
        seen(&*a.leases, "k").await?;
    }
    ensure!(held(&b, &k).await?.session == before.session && lease.term().is_live(now()));
    Ok(())
}

async fn co33_changes_move_when_others_claim_note_and_resign(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let (a, b, k) = (stage.join("a").await?, stage.join("b").await?, key("k.one")?);
    let mut changes = b.leases.changes();
    // a hint may be missed while the store is just being listened to: until one is heard the lease is taken again
    let mut lease = win(&a, &k).await?;
    for _ in 0..20 {
        if tokio::time::timeout(Duration::from_secs(1), changes.changed()).await.is_ok() {
            break;
        }
        a.leases.resign(lease).await?;
        lease = win(&a, &k).await?;
    }
    let moved = async |changes: &mut tokio::sync::watch::Receiver<u64>| {
        let moved = tokio::time::timeout(PATIENCE, changes.changed()).await;
        ensure!(moved.is_ok(), "nothing was heard");
        tokio::time::sleep(Duration::from_millis(100)).await;
        changes.mark_unchanged();
        Ok(())
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    changes.mark_unchanged();
    a.leases.renew(&lease, "a note").await?;
    moved(&mut changes).await?;
    a.leases.resign(lease).await?;
    moved(&mut changes).await?;
    let _lease = win(&a, &k).await?;
    moved(&mut changes).await
}
