//! dd01–dd10: what a key is, and whose.

use super::{
    super::{
        Arm,
        stage::{DAY, LONG, SHORT, Stage, failed, invalid, key_of, many, now, row, rows, under, wall},
    },
    cases,
};
use anyhow::{bail, ensure};
use bytes::Bytes;
use std::{slice, time::Duration};
use wh_dedupe::{LEASE_AT_MOST, MAX_PAYLOAD, MAX_ROWS, Row, Scope, Under, Verdict};
use wh_types::{Table, Tenant};

cases! {
    dd01_unclaimed_keys_are_new_in_the_order_of_the_rows,
    dd01_a_whole_block_with_ids_and_records_is_claimed_in_one_call,
    dd02_a_claimed_key_is_busy_for_everybody,
    dd03_a_committed_key_is_seen_and_a_claimed_one_is_not,
    dd04_of_many_who_want_a_key_one_gets_it,
    dd05_keys_of_other_tables_tenants_and_kinds_are_others,
    dd06_a_key_that_stands_twice_is_claimed_once,
    dd07_a_claim_that_lapsed_names_its_block,
    dd07_of_many_who_want_a_lapsed_claim_one_gets_it,
    dd08_a_claim_that_lapses_again_names_the_first_block,
    dd09_what_is_out_of_bounds_is_refused_and_claims_nothing,
    dd10_what_was_claimed_with_a_key_comes_back,
}

async fn dd01_unclaimed_keys_are_new_in_the_order_of_the_rows(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let tickets = a.take(&rows(["one", "two", "three"])?, &under(1, LONG)).await?;
    a.commit(&tickets[..1], DAY).await?;
    let verdicts = b.store.reserve(&rows(["four", "two", "one", "five", "three"])?, &under(2, LONG)).await?;
    let [Verdict::New(four), Verdict::Busy { .. }, Verdict::Seen { .. }, Verdict::New(five), Verdict::Busy { .. }] =
        &verdicts[..]
    else {
        bail!("{verdicts:?}")
    };
    ensure!(four.key().as_str() == "0/clicks/four" && five.key().as_str() == "0/clicks/five");
    ensure!(a.store.reserve(&[], &under(3, LONG)).await?.is_empty());
    Ok(())
}

async fn dd01_a_whole_block_with_ids_and_records_is_claimed_in_one_call(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let most = arm.largest_call();
    let all = many("row", most)?;
    let tickets = a.take(&all, &under(1, LONG)).await?;
    a.commit(&tickets, DAY).await?;
    let verdicts = b.store.reserve(&all, &under(2, LONG)).await?;
    let seen = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Seen { .. })).count();
    ensure!(seen == most, "{seen} of {most} are seen");
    Ok(())
}

async fn dd02_a_claimed_key_is_busy_for_everybody(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    a.win("x", &under(1, LONG)).await?;
    for member in [&a, &b] {
        match member.ask("x", &under(2, SHORT)).await? {
            // it is the claim's lease that counts, not the asker's; a store may round up to whole seconds
            Verdict::Busy { retry_after, .. } => {
                let most = LONG + Duration::from_secs(1);
                ensure!(retry_after > LONG / 2 && retry_after <= most, "{retry_after:?}");
            }
            other @ (Verdict::New(_) | Verdict::Seen { .. } | Verdict::Lapsed { .. } | Verdict::Same(_)) => {
                bail!("{other:?}")
            }
        }
    }
    Ok(())
}

async fn dd03_a_committed_key_is_seen_and_a_claimed_one_is_not(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let ticket = a.win("x", &under(1, LONG)).await?;
    ensure!(!a.seen("x").await? && !b.seen("x").await?);
    a.commit(&[ticket], DAY).await?;
    ensure!(a.seen("x").await? && b.seen("x").await?);
    Ok(())
}

/// Many reserve one key at one time; counts verdicts of a kind, the others must be busy.
async fn race(arm: &Stage, lease: Duration, is: fn(&Verdict) -> bool) -> anyhow::Result<usize> {
    let mut members = Vec::new();
    for _ in 0..4 {
        members.push(arm.0.join().await?);
    }
    let claim = under(9, lease);
    let asks = (0..32).map(|n| members[n % members.len()].ask("x", &claim));
    let verdicts = futures::future::try_join_all(asks).await?;
    if let Some(other) = verdicts.iter().find(|verdict| !is(verdict) && !matches!(verdict, Verdict::Busy { .. })) {
        bail!("{other:?}");
    }
    Ok(verdicts.iter().filter(|verdict| is(verdict)).count())
}

async fn dd04_of_many_who_want_a_key_one_gets_it(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let won = race(&stage, LONG, |verdict| matches!(verdict, Verdict::New(_))).await?;
    ensure!(won == 1, "{won} won");
    Ok(())
}

async fn dd05_keys_of_other_tables_tenants_and_kinds_are_others(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let scope = Scope::new(&Tenant::new("0")?, &Table::new("clicks")?);
    let long = "x".repeat(2_000);
    let keys = vec![
        key_of("0", "clicks", "x")?,
        key_of("0", "views", "x")?,
        key_of("1", "clicks", "x")?,
        key_of("0", "clicks", "X")?,
        key_of("0", "clicks", "x/0")?,
        key_of("0", "clicks", "!x/0")?,
        key_of("0", "a/b", "c")?,
        key_of("0", "a", "b/c")?,
        key_of("0", "clicks", &long)?,
        key_of("0", "clicks", &format!("{long}x"))?,
        scope.idempotency("x", 0)?,
        scope.idempotency("x", 1)?,
    ];
    let all: Vec<Row> = keys.into_iter().map(Row::new).collect();
    let tickets = a.take(&all, &under(1, LONG)).await?;
    a.commit(&tickets[..1], DAY).await?;
    let verdicts = b.store.reserve(&all, &under(2, LONG)).await?;
    ensure!(matches!(verdicts[0], Verdict::Seen { .. }), "{:?}", verdicts[0]);
    ensure!(verdicts[1..].iter().all(|verdict| matches!(verdict, Verdict::Busy { .. })), "{verdicts:?}");
    Ok(())
}

async fn dd06_a_key_that_stands_twice_is_claimed_once(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let verdicts = a.store.reserve(&rows(["x", "y", "x", "y", "x"])?, &under(1, LONG)).await?;
    let [Verdict::New(x), Verdict::New(y), Verdict::Same(0), Verdict::Same(1), Verdict::Same(0)] = &verdicts[..] else {
        bail!("{verdicts:?}")
    };
    a.commit(slice::from_ref(x), DAY).await?;
    a.release(slice::from_ref(y)).await?;
    let verdicts = b.store.reserve(&rows(["x", "x", "y", "y"])?, &under(2, LONG)).await?;
    let [Verdict::Seen { .. }, Verdict::Same(0), Verdict::New(_), Verdict::Same(2)] = &verdicts[..] else {
        bail!("{verdicts:?}")
    };
    Ok(())
}

async fn dd07_a_claim_that_lapsed_names_its_block(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let claim = under(1, SHORT);
    let (before, began) = (wall(), now());
    a.win("x", &claim).await?;
    let after = wall();
    let (origin, payload, ticket) = b.lapsed("x", &under(2, LONG)).await?;
    let slack = Duration::from_millis(50);
    ensure!(now().duration_since(began) + slack >= SHORT, "it lapsed before its time");
    let (stream, epoch, block) = (origin.stream, origin.epoch, origin.block);
    ensure!((stream, epoch, block, origin.lease) == (claim.stream, claim.epoch, claim.block, SHORT), "{origin:?}");
    // to the millisecond
    let between = before.saturating_sub(Duration::from_millis(1))..=after;
    ensure!(between.contains(&origin.at) && payload.is_empty(), "{origin:?} is not within {between:?}");
    ensure!(!a.seen("x").await?);
    b.commit(&[ticket], DAY).await?;
    ensure!(a.seen("x").await?);
    Ok(())
}

async fn dd07_of_many_who_want_a_lapsed_claim_one_gets_it(arm: &dyn Arm) -> anyhow::Result<()> {
    let stage = Stage::open(arm).await?;
    let a = stage.0.join().await?;
    a.win("x", &under(1, SHORT)).await?;
    tokio::time::sleep(SHORT + Duration::from_millis(50)).await;
    let won = race(&stage, LONG, |verdict| matches!(verdict, Verdict::Lapsed { .. })).await?;
    ensure!(won == 1, "{won} took it over");
    Ok(())
}

async fn dd08_a_claim_that_lapses_again_names_the_first_block(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    a.win("x", &under(1, SHORT)).await?;
    let (first, _, stale) = b.lapsed("x", &under(2, SHORT)).await?;
    let (second, _, ticket) = a.lapsed("x", &under(3, LONG)).await?;
    ensure!(first == second && first.block == under(1, SHORT).block, "{first:?}, then {second:?}");
    failed(b.store.release(&[stale]).await.remove(0), &[super::super::stage::fenced])?;
    a.release(&[ticket]).await?;
    b.win("x", &under(4, LONG)).await?;
    Ok(())
}

async fn dd09_what_is_out_of_bounds_is_refused_and_claims_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let good = under(1, LONG);
    let fat = Row { key: row("x")?.key, payload: vec![0; MAX_PAYLOAD + 1].into() };
    let leases = [Duration::ZERO, LEASE_AT_MOST + Duration::from_secs(1)];
    failed(a.store.reserve(&[row("y")?, fat], &good).await, &[invalid])?;
    failed(a.store.reserve(&many("z", MAX_ROWS + 1)?, &good).await, &[invalid])?;
    for lease in leases {
        failed(a.store.reserve(&rows(["x"])?, &Under { lease, ..good }).await, &[invalid])?;
    }
    let tickets = b.take(&rows(["x", "y", "z-0", "z-500"])?, &good).await?;
    let over: Vec<_> = tickets.iter().cycle().take(MAX_ROWS + 1).cloned().collect();
    for outcome in b.store.commit(&over, DAY).await.into_iter().chain(b.store.release(&over).await) {
        failed(outcome, &[invalid])?;
    }
    ensure!(!a.seen("x").await?);
    Ok(())
}

async fn dd10_what_was_claimed_with_a_key_comes_back(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let whole = Bytes::from(vec![7; MAX_PAYLOAD]);
    let with = |id: &str, payload: Bytes| anyhow::Ok(Row { key: row(id)?.key, payload });
    let tickets = a.take(&[with("x", whole.clone())?, with("y", Bytes::new())?], &under(1, LONG)).await?;
    a.take(&[with("z", Bytes::from_static(b"\0z"))?], &under(1, SHORT)).await?;
    let theirs = [with("x", Bytes::from_static(b"other"))?, with("y", Bytes::from_static(b"other"))?];
    let verdicts = b.store.reserve(&theirs, &under(2, LONG)).await?;
    let [Verdict::Busy { payload: x, .. }, Verdict::Busy { payload: y, .. }] = &verdicts[..] else {
        bail!("{verdicts:?}")
    };
    ensure!(*x == whole && y.is_empty(), "{verdicts:?}");
    a.commit(&tickets, DAY).await?;
    let verdicts = b.store.reserve(&theirs, &under(3, LONG)).await?;
    let [Verdict::Seen { payload: x }, Verdict::Seen { payload: y }] = &verdicts[..] else { bail!("{verdicts:?}") };
    ensure!(*x == whole && y.is_empty(), "{verdicts:?}");
    let (_, z, ticket) = b.lapsed("z", &under(4, LONG)).await?;
    ensure!(&z[..] == b"\0z", "{z:?}");
    b.commit(&[ticket], DAY).await?;
    let verdict = a.ask("z", &under(5, LONG)).await?;
    ensure!(verdict == Verdict::Seen { payload: z }, "{verdict:?}");
    Ok(())
}
