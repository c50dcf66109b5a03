//! dd40–dd42: a store that cannot be reached, that is throttled, whose answers are lost.

use super::{
    super::{
        Arm, Failure, Member,
        stage::{DAY, LONG, SHORT, Stage, failed, many, nothing_changed, row, under, unknown, until},
    },
    cases,
};
use anyhow::{bail, ensure};
use std::slice;
use wh_dedupe::{Error, Row, Verdict};

cases! {
    dd40_what_was_refused_changed_nothing needs Refused twin dd40_a_store_in_the_process_is_reached,
    dd40_what_was_throttled_changed_nothing needs Throttled twin dd40_a_store_in_the_process_is_reached,
    dd41_a_reservation_of_unknown_outcome_holds_for_its_lease_or_not_at_all
        needs Lost twin dd40_a_store_in_the_process_is_reached,
    dd41_one_that_stopped_half_way_holds_for_its_lease_or_not_at_all
        needs HalfLeft twin dd42_a_call_is_one_write,
    dd42_one_that_failed_half_way_gives_back_what_it_took needs Half twin dd42_a_call_is_one_write,
}

/// The twin where nothing stands between: many calls at once, and each is answered.
pub(super) async fn dd40_a_store_in_the_process_is_reached(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let calls = (0..20).map(async |n| {
        let member = if n % 2 == 0 { &a } else { &b };
        let tickets = member.take(&many(&format!("row-{n}"), 10)?, &under(n, LONG)).await?;
        member.commit(&tickets[..5], DAY).await?;
        member.release(&tickets[5..]).await?;
        ensure!(member.seen(&format!("row-{n}-4")).await?);
        Ok(())
    });
    futures::future::try_join_all(calls).await?;
    Ok(())
}

async fn refused(arm: &dyn Arm, failure: Failure) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::failing(arm).await?;
    let held = a.win("held", &under(1, LONG)).await?;
    a.way.fail(failure).await;
    // what is sent on a connection that stood idle while the store went may have arrived, for all that a client knows:
    // calls find such connections dead, one after the other
    let all = many("row", 20)?;
    until("reservations are refused", async || definite(a.store.reserve(&all, &under(2, LONG)).await)).await?;
    let held_one = slice::from_ref(&held);
    until("commits are refused", async || definite(a.store.commit(held_one, DAY).await.remove(0))).await?;
    until("releases are refused", async || definite(a.store.release(held_one).await.remove(0))).await?;
    a.way.heal().await;
    ensure!(!b.seen("held").await?);
    b.take(&many("row", 20)?, &under(3, LONG)).await?;
    // a breaker may still keep calls from being made
    until("it works again", async || match a.store.commit(slice::from_ref(&held), DAY).await.remove(0) {
        Ok(()) => Ok(true),
        Err(error) if nothing_changed(error.class()) => Ok(false),
        Err(error) => Err(error.into()),
    })
    .await?;
    ensure!(b.seen("held").await?);
    until("reservations work again", async || match a.store.reserve(&[row("held")?], &under(4, LONG)).await {
        Ok(verdicts) => Ok(matches!(verdicts[..], [Verdict::Seen { .. }])),
        Err(error) if nothing_changed(error.class()) => Ok(false),
        Err(error) => Err(error.into()),
    })
    .await
}

/// Whether it failed and nothing was changed; `false`: it failed, and that is not known.
fn definite<T>(outcome: Result<T, Error>) -> anyhow::Result<bool> {
    match outcome {
        Err(error) if unknown(error.class()) => Ok(false),
        outcome => failed(outcome, &[nothing_changed]).map(|()| true),
    }
}

async fn dd40_what_was_refused_changed_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    refused(arm, Failure::Refused).await
}

async fn dd40_what_was_throttled_changed_nothing(arm: &dyn Arm) -> anyhow::Result<()> {
    refused(arm, Failure::Throttled).await
}

async fn dd41_a_reservation_of_unknown_outcome_holds_for_its_lease_or_not_at_all(arm: &dyn Arm) -> anyhow::Result<()> {
    left(arm, Failure::Lost).await
}

async fn dd41_one_that_stopped_half_way_holds_for_its_lease_or_not_at_all(arm: &dyn Arm) -> anyhow::Result<()> {
    left(arm, Failure::HalfLeft).await
}

async fn left(arm: &dyn Arm, failure: Failure) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::failing(arm).await?;
    let (all, claim) = (many("row", 20)?, under(1, SHORT));
    a.way.fail(failure).await;
    failed(a.store.reserve(&all, &claim).await, &[unknown])?;
    a.way.heal().await;
    for row in all {
        comes_free(&b, row, &claim.block.0).await?;
    }
    Ok(())
}

/// A key is new, or busy and then lapsed under this block, and never seen.
async fn comes_free(member: &Member, row: Row, block: &[u8; 16]) -> anyhow::Result<()> {
    until("the key comes free", async || {
        match member.store.reserve(slice::from_ref(&row), &under(2, LONG)).await?.remove(0) {
            Verdict::Busy { .. } => Ok(false),
            Verdict::New(_) => Ok(true),
            Verdict::Lapsed { origin, .. } if origin.block.0 == *block => Ok(true),
            other @ (Verdict::Seen { .. } | Verdict::Lapsed { .. } | Verdict::Same(_)) => {
                bail!("{} is {other:?}", row.key)
            }
        }
    })
    .await
}

async fn dd42_one_that_failed_half_way_gives_back_what_it_took(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::failing(arm).await?;
    let all = many("row", 40)?;
    a.way.fail(Failure::Half).await;
    failed(a.store.reserve(&all, &under(1, LONG)).await, &[nothing_changed])?;
    a.way.heal().await;
    b.take(&all, &under(2, LONG)).await?;
    Ok(())
}

/// The twin where a call is one write: those at one time do not see half of each other.
async fn dd42_a_call_is_one_write(arm: &dyn Arm) -> anyhow::Result<()> {
    let (_stage, a, b) = Stage::two(arm).await?;
    let all = many("row", 40)?;
    for round in 0..5 {
        let (of_a, of_b) = (under(round, LONG), under(round + 100, LONG));
        let (one, other) = futures::join!(a.store.reserve(&all, &of_a), b.store.reserve(&all, &of_b));
        let mut tickets = Vec::new();
        for verdict in one?.into_iter().chain(other?) {
            match verdict {
                Verdict::New(ticket) => tickets.push(ticket),
                Verdict::Busy { .. } => {}
                other @ (Verdict::Seen { .. } | Verdict::Lapsed { .. } | Verdict::Same(_)) => bail!("{other:?}"),
            }
        }
        ensure!(tickets.len() == all.len(), "{} of {} keys were claimed", tickets.len(), all.len());
        a.release(&tickets).await?;
    }
    Ok(())
}
