//! One process that ingests: it crashes, stops, meets a slow ClickHouse, and is told of other counts.

use super::{TABLES, WAIT, busy, fleet, proxied};
use procs::{Found, Setup, Traffic};
use std::time::Duration;
use wh_testkit::{fault, until};

#[tokio::test]
async fn a_lone_process_that_crashes_and_starts_again_loses_nothing() {
    let fleet = fleet(busy()).await;
    let mut api = fleet.api("api").await.unwrap();
    let mut ingest = fleet.ingest("ingest").await.unwrap();
    let traffic = Traffic::start(&[api.url("")], TABLES);
    for _ in 0..2 {
        traffic.until_more(2_000, WAIT).await.unwrap();
        ingest.process.kill().unwrap();
        traffic.until_more(500, WAIT).await.unwrap();
        ingest.restart().await.unwrap();
    }
    traffic.until_more(1_000, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    let found = accepted.found(&fleet.engine).await.unwrap();
    println!("{} rows, {} unanswered requests, {found:?}", accepted.rows(), accepted.unanswered);
    assert_eq!((found.missing, accepted.unanswered), (0, 0));
    fleet.drained(4, WAIT).await.unwrap();
    ingest.stop(WAIT).await.unwrap();
    api.stop(WAIT).await.unwrap();
}

#[tokio::test]
async fn a_lone_process_that_stops_and_starts_again_keeps_order_and_doubles_nothing() {
    let fleet = fleet(Setup::default()).await;
    let mut api = fleet.api("api").await.unwrap();
    let mut ingest = fleet.ingest("ingest").await.unwrap();
    let traffic = Traffic::start(&[api.url("")], TABLES);
    for _ in 0..2 {
        traffic.until_more(2_000, WAIT).await.unwrap();
        ingest.stop(WAIT).await.unwrap();
        traffic.until_more(500, WAIT).await.unwrap();
        ingest.restart().await.unwrap();
    }
    traffic.until_more(1_000, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    assert_eq!(accepted.found(&fleet.engine).await.unwrap(), Found::default());
    assert_eq!(accepted.unanswered, 0);
    fleet.drained(4, WAIT).await.unwrap();
    ingest.stop(WAIT).await.unwrap();
    api.stop(WAIT).await.unwrap();
}

#[tokio::test]
async fn a_table_whose_inserts_are_slow_or_hang_holds_up_no_other() {
    let more = "ingest: {batch_wait: 200ms, insert_timeout: 10s}";
    let (proxy, fleet) = proxied(Setup { more: more.into(), ..Setup::default() }).await;
    let mut api = fleet.api("api").await.unwrap();
    let mut ingest = fleet.ingest("ingest").await.unwrap();
    let seconds = Duration::from_secs;
    let slow = proxy.add(fault::Rule::insert(fault::Action::Delay(seconds(6))).contains("t03").times(2));
    let hung = proxy.add(fault::Rule::insert(fault::Action::Hang).contains("t07").times(1));
    let traffic = Traffic::start(&[api.url("")], TABLES);
    until(WAIT, "the first inserts into both tables to begin", || async {
        proxy.fired(slow) > 0 && proxy.fired(hung) > 0
    })
    .await
    .unwrap();
    // while both are away, the others go on
    let before = fleet.number("SELECT max(n) FROM t00").await.unwrap();
    until(seconds(4), "another table to go on", || async {
        let now = fleet.number("SELECT max(n) FROM t00").await?;
        if now > before + 20 { Ok(()) } else { anyhow::bail!("{now} after {before}") }
    })
    .await
    .unwrap();
    assert_eq!(fleet.number("SELECT count() FROM t07").await.unwrap(), 0);
    until(WAIT, "the slow table to have been slow twice", || async { proxy.fired(slow) == 2 }).await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    // the insert that hung was never done, so its repeat doubles nothing
    assert_eq!(accepted.found(&fleet.engine).await.unwrap(), Found::default());
    fleet.drained(4, WAIT).await.unwrap();
    ingest.stop(WAIT).await.unwrap();
    api.stop(WAIT).await.unwrap();
}
