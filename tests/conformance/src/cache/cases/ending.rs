//! What ends an answer.

use super::{
    super::{
        Arm,
        stage::{LONG, Stage, changed, key, table, tenant, until, view, view_of},
    },
    cases,
};
use anyhow::{Context as _, ensure};
use std::{future::Future as _, pin::pin, task};
use wh_cache::{Change, Filled, Landing, Scope};

cases![
    ca10_after_an_invalidation_no_member_is_served_what_was_kept_before,
    ca11_what_is_put_under_a_snapshot_from_before_is_never_served,
    ca12_a_tenants_end_ends_also_what_reads_no_table,
    ca13_a_scope_ends_itself_and_the_whole_table_and_no_other_scope,
    ca14_what_is_not_named_stays,
    ca15_what_reads_several_tables_ends_with_each,
    ca16_every_change_has_its_outcome,
    ca17_an_invalidation_that_was_dropped_half_way_lands,
];

async fn ca10_after_an_invalidation_no_member_is_served_what_was_kept_before(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let views = [view(&["clicks"])?, view(&["clicks/x"])?];
    for round in 0..20 {
        let (writes, reads) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        for view in &views {
            reads.keep(view, "q", &format!("round {round}")).await?;
            writes.served(view, "q", &format!("round {round}")).await?;
        }
        writes.end(changed("clicks")?).await?;
        for view in &views {
            for member in [reads, writes] {
                ensure!(member.find(view, "q").await.is_none(), "round {round}: it was served after its end");
            }
        }
    }
    Ok(())
}

async fn ca11_what_is_put_under_a_snapshot_from_before_is_never_served(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    for (reads, writes) in [(&a, &b), (&b, &a), (&a, &a)] {
        // the versions are there before, and after a first use
        for _ in 0..2 {
            let at = reads.cache.lookup(&view, &key("q")).await.at;
            writes.end(changed("clicks")?).await?;
            // the put may be refused or kept: it is not served
            drop(reads.cache.put(&at, &key("q"), "old".into(), LONG).await);
            a.not_served(&view, "q").await?;
            b.not_served(&view, "q").await?;
            reads.keep(&view, "q", "new").await?;
            // late, and over a newer one
            drop(reads.cache.put(&at, &key("q"), "old".into(), LONG).await);
            for member in [&a, &b] {
                let hit = member.find(&view, "q").await;
                ensure!(hit.as_ref().is_none_or(|hit| hit.value == "new"), "{hit:?}");
            }
        }
    }
    Ok(())
}

async fn ca12_a_tenants_end_ends_also_what_reads_no_table(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let own = [view(&[])?, view(&["clicks"])?, view(&["clicks/x", "views"])?];
    let other = view_of("u", &["clicks"])?;
    for view in own.iter().chain([&other]) {
        a.keep(view, "q", "answer").await?;
    }
    b.end(changed("clicks")?).await?;
    a.served(&own[0], "q", "answer").await?;
    b.end(Change::tenant(tenant("t")?)).await?;
    for view in &own {
        a.not_served(view, "q").await?;
        b.not_served(view, "q").await?;
    }
    a.served(&other, "q", "answer").await
}

async fn ca13_a_scope_ends_itself_and_the_whole_table_and_no_other_scope(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let (x, y, whole) = (view(&["clicks/x"])?, view(&["clicks/y"])?, view(&["clicks"])?);
    for view in [&x, &y, &whole] {
        a.keep(view, "q", "answer").await?;
    }
    b.end(Change::scope(tenant("t")?, table("clicks")?, Scope::new("x")?)).await?;
    for member in [&a, &b] {
        member.not_served(&x, "q").await?;
        member.not_served(&whole, "q").await?;
        member.served(&y, "q", "answer").await?;
    }
    Ok(())
}

async fn ca14_what_is_not_named_stays(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let others = [view(&["views"])?, view(&["click"])?, view(&["clicks2", "a"])?, view_of("u", &["clicks"])?];
    for other in &others {
        a.keep(other, "q", "answer").await?;
    }
    a.end(changed("clicks")?).await?;
    b.end(Change::tenant(tenant("v")?)).await?;
    for other in &others {
        a.served(other, "q", "answer").await?;
        b.served(other, "q", "answer").await?;
    }
    Ok(())
}

async fn ca15_what_reads_several_tables_ends_with_each(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let names: Vec<_> = (0..64).map(|n| format!("t{n:02}")).collect();
    let view = view(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    for n in [0, 1, 31, 63] {
        a.keep(&view, "q", &names[n]).await?;
        b.served(&view, "q", &names[n]).await?;
        b.end(changed(&names[n])?).await?;
        a.not_served(&view, "q").await?;
        b.not_served(&view, "q").await?;
    }
    Ok(())
}

async fn ca16_every_change_has_its_outcome(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    ensure!(a.cache.invalidate(&[]).await.is_empty());
    let views = [view(&["c0"])?, view(&["c777"])?, view(&["c2999"])?];
    let other = view(&["other"])?;
    for view in views.iter().chain([&other]) {
        a.keep(view, "q", "answer").await?;
    }
    let changes = (0..3_000).map(|n| changed(&format!("c{n}"))).collect::<anyhow::Result<Vec<_>>>()?;
    let landings = b.cache.invalidate(&changes).await;
    ensure!(landings.len() == changes.len(), "{} outcomes for {} changes", landings.len(), changes.len());
    let landed = landings.into_iter().collect::<Result<Vec<_>, _>>()?;
    // some hundred milliseconds may be too short for so many on a busy machine
    until("what is owed lands", async || Ok(b.cache.status().owed == 0)).await?;
    ensure!(landed.contains(&Landing::Landed) || landed.contains(&Landing::Owed));
    for view in &views {
        a.not_served(view, "q").await?;
    }
    a.served(&other, "q", "answer").await
}

async fn ca17_an_invalidation_that_was_dropped_half_way_lands(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let view = view(&["clicks"])?;
    for polls in 1..6 {
        let at = a.keep(&view, "q", "answer").await?;
        {
            let changes = [changed("clicks")?];
            let mut invalidating = pin!(b.cache.invalidate(&changes));
            let mut context = task::Context::from_waker(task::Waker::noop());
            for _ in 0..polls {
                if invalidating.as_mut().poll(&mut context).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        until("it lands", async || Ok(b.cache.status().owed == 0)).await?;
        a.not_served(&view, "q").await.with_context(|| format!("dropped after {polls} polls"))?;
        let late = a.cache.put(&at, &key("q"), "answer".into(), LONG).await;
        ensure!(late.is_err() || a.find(&view, "q").await.is_none(), "{late:?} was served");
        ensure!(!matches!(late, Ok(Filled::Kept)) || b.find(&view, "q").await.is_none());
    }
    Ok(())
}
