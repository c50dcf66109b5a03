//! Each measurement: what is set up, what happens, and from when to when is measured.

use crate::{
    listener,
    load::{Stream, arrived, count, create, publish, slowest, wall},
};
use anyhow::{Result, bail};
use procs::{Fleet, Member, Setup, even};
use std::time::Duration;
use wh_testkit::until;
use wh_types::{Clock, Mono, SystemClock};

const WAIT: Duration = Duration::from_secs(120);
const UNITS: u32 = 32;

fn seconds_since(began: Mono) -> f64 {
    (SystemClock.now() - began).as_secs_f64()
}

async fn stand(setup: Setup) -> Result<Fleet> {
    let fleet = Fleet::new(Setup { log: "warn", ..setup }).await?;
    create(&fleet.engine).await?;
    Ok(fleet)
}

async fn ended(members: impl IntoIterator<Item = Member>) -> Result<()> {
    for mut member in members {
        member.stop(WAIT).await?;
    }
    Ok(())
}

/// Waits until a process holds rows that are not settled: what a crash then loses is in flight.
async fn holds(member: &Member) -> Result<()> {
    until(WAIT, "rows in flight", || async {
        let held = member.metric("wavehouse_ingest_rows_held").await?;
        if held > 0.0 { Ok(()) } else { bail!("{held}") }
    })
    .await?;
    Ok(())
}

/// From the last 200 to the last row in ClickHouse, where two processes share the units.
pub(crate) async fn quiet(runs: usize) -> Result<Vec<f64>> {
    let fleet = stand(Setup::default()).await?;
    let (api, one, two) = (fleet.api("api").await?, fleet.ingest("one").await?, fleet.ingest("two").await?);
    even(&[&one, &two], UNITS, WAIT).await?;
    let mut figures = Vec::new();
    for _ in 0..runs {
        let goal = count(&fleet).await? + publish(&api).await?;
        let began = SystemClock.now();
        arrived(&fleet, goal).await?;
        figures.push(seconds_since(began));
    }
    ended([api, one, two]).await?;
    Ok(figures)
}

/// From kill -9 of one of two owners, which holds rows, to the last row in ClickHouse.
pub(crate) async fn kill(runs: usize, lease: Duration, pinned_ttl: Duration) -> Result<Vec<f64>> {
    let fleet = stand(Setup { lease, pinned_ttl, ..Setup::default() }).await?;
    let (api, one, mut two) = (fleet.api("api").await?, fleet.ingest("one").await?, fleet.ingest("two").await?);
    let mut figures = Vec::new();
    for _ in 0..runs {
        even(&[&one, &two], UNITS, WAIT).await?;
        let goal = count(&fleet).await? + publish(&api).await?;
        holds(&two).await?;
        two.process.kill()?;
        let began = SystemClock.now();
        arrived(&fleet, goal).await?;
        figures.push(seconds_since(began));
        even(&[&one], UNITS, WAIT).await?;
        two.restart().await?;
    }
    ended([api, one, two]).await?;
    Ok(figures)
}

/// From the start of a third process to an even split, in seconds; and the mean time of the handovers, in milliseconds.
pub(crate) async fn join(runs: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let fleet =
        stand(Setup { lease: Duration::from_secs(15), pinned_ttl: Duration::from_secs(10), ..Setup::default() })
            .await?;
    let (one, two) = (fleet.ingest("one").await?, fleet.ingest("two").await?);
    let (mut splits, mut handovers) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        even(&[&one, &two], UNITS, WAIT).await?;
        let before = handed_over(&[&one, &two]).await?;
        let began = SystemClock.now();
        let three = fleet.launch("three", "wavehouse-ingest", procs::Role::Ingest)?;
        even(&[&one, &two, &three], UNITS, WAIT).await?;
        splits.push(seconds_since(began));
        let after = handed_over(&[&one, &two]).await?;
        handovers.push((after.0 - before.0) * 1_000.0 / (after.1 - before.1).max(1.0));
        ended([three]).await?;
    }
    ended([one, two]).await?;
    Ok((splits, handovers))
}

/// Seconds and number of all handovers.
async fn handed_over(members: &[&Member]) -> Result<(f64, f64)> {
    let mut all = (0.0, 0.0);
    for member in members {
        all.0 += member.metric("wavehouse_ingest_shard_handover_seconds_sum").await?;
        all.1 += member.metric("wavehouse_ingest_shard_handover_seconds_count").await?;
    }
    Ok(all)
}

/// How long the slowest of rows that come all the time waits until it is in ClickHouse: around a moment at which nothing
/// happens, and around SIGTERM to one of two owners. Batches wait 10 ms.
pub(crate) async fn stop(runs: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let fleet = stand(Setup { more: "ingest: {batch_wait: 10ms}".to_owned(), ..Setup::default() }).await?;
    let (api, one, mut two) = (fleet.api("api").await?, fleet.ingest("one").await?, fleet.ingest("two").await?);
    let (mut calm, mut stopped) = (Vec::new(), Vec::new());
    // a second and more of rows
    let further = async || arrived(&fleet, count(&fleet).await? + 120).await;
    for _ in 0..runs {
        even(&[&one, &two], UNITS, WAIT).await?;
        let stream = Stream::start(&api);
        further().await?;
        let nothing = wall();
        further().await?;
        further().await?;
        let sigterm = wall();
        two.process.terminate()?;
        two.process.wait(WAIT).await?;
        further().await?;
        further().await?;
        stream.stop().await;
        fleet.drained(4, WAIT).await?;
        calm.push(slowest(&fleet, nothing).await?);
        stopped.push(slowest(&fleet, sigterm).await?);
        two.restart().await?;
    }
    ended([api, one, two]).await?;
    Ok((calm, stopped))
}

/// From kill -9 of the only owner, which holds rows and is started again at once, to the last row in ClickHouse.
pub(crate) async fn restart(runs: usize, lease: Duration, pinned_ttl: Duration) -> Result<Vec<f64>> {
    let fleet = stand(Setup { lease, pinned_ttl, ..Setup::default() }).await?;
    let (api, mut one) = (fleet.api("api").await?, fleet.ingest("one").await?);
    let mut figures = Vec::new();
    for _ in 0..runs {
        even(&[&one], UNITS, WAIT).await?;
        let goal = count(&fleet).await? + publish(&api).await?;
        holds(&one).await?;
        one.process.kill()?;
        let began = SystemClock.now();
        one.restart().await?;
        arrived(&fleet, goal).await?;
        figures.push(seconds_since(began));
    }
    ended([api, one]).await?;
    Ok(figures)
}

/// Writes and reads of leases a second and process, with defaults, while nothing happens.
pub(crate) async fn membership(members: u32) -> Result<[f64; 2]> {
    const SPAN: Duration = Duration::from_secs(20);
    let more = "ingest: {held_rows: 100000000}".to_owned();
    let setup = Setup {
        shards: 16,
        lease: Duration::from_secs(15),
        pinned_ttl: Duration::from_secs(10),
        more,
        ..Setup::default()
    };
    let mut fleet = stand(setup).await?;
    let mut all = Vec::new();
    for n in 0..members {
        all.push(fleet.ingest(&format!("m{n}")).await?);
    }
    even(&all.iter().collect::<Vec<_>>(), 64, WAIT).await?;
    let subjects = ["$KV.wh_coord.>", "$JS.API.DIRECT.GET.>"];
    let counts = listener::count(fleet.nats.one()?, &subjects, SPAN).await?;
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = |n: usize| counts[n] as f64 / SPAN.as_secs_f64() / f64::from(members);
    ended(all).await?;
    Ok([rate(0), rate(1)])
}
