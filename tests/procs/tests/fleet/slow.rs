//! ClickHouse is slow or hangs for one table while units change hands.

use super::{TABLES, UNITS, WAIT, busy, in_doubt, proxied, stop, two_apis};
use procs::{Found, Setup, Traffic, even};
use std::time::Duration;
use wh_testkit::{
    fault::{Action, Rule},
    until,
};

#[tokio::test]
async fn inserts_of_6_s_keep_their_order_through_a_handover_and_a_stop() {
    let (proxy, fleet) = proxied(busy()).await;
    let (apis, urls) = two_apis(&fleet).await;
    let mut one = fleet.ingest("ingest-1").await.unwrap();
    even(&[&one], UNITS, WAIT).await.unwrap();
    let tables = [3, 7, 11].map(procs::table);
    let slow = tables.map(|table| proxy.add(Rule::insert(Action::Delay(Duration::from_secs(6))).contains(table)));
    let traffic = Traffic::start(&urls, TABLES);
    until(WAIT, "a slow insert of each to have begun", || async { slow.iter().all(|rule| proxy.fired(*rule) > 0) })
        .await
        .unwrap();
    // units with a slow insert in flight are handed over too, once it has ended
    let two = fleet.ingest("ingest-2").await.unwrap();
    let three = fleet.ingest("ingest-3").await.unwrap();
    even(&[&one, &two, &three], UNITS, WAIT).await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    let doubt = in_doubt(&[&one]).await;
    one.stop(WAIT).await.unwrap();
    even(&[&two, &three], UNITS, WAIT).await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    proxy.clear();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(4, WAIT).await.unwrap();
    assert_eq!((accepted.unanswered, doubt + in_doubt(&[&two, &three]).await), (0, 0.0));
    assert_eq!(accepted.found(&fleet.engine).await.unwrap(), Found::default());
    stop(apis.into_iter().chain([two, three])).await;
}

#[tokio::test]
async fn an_insert_that_hangs_for_13_s_costs_its_owner_no_unit_and_is_not_repeated() {
    // longer than a lease and a pin
    let (proxy, fleet) = proxied(busy()).await;
    let (apis, urls) = two_apis(&fleet).await;
    let one = fleet.ingest("ingest-1").await.unwrap();
    let two = fleet.ingest("ingest-2").await.unwrap();
    even(&[&one, &two], UNITS, WAIT).await.unwrap();
    let hung = proxy.add(Rule::insert(Action::Delay(Duration::from_secs(13))).contains(procs::table(5)).times(1));
    let traffic = Traffic::start(&urls, TABLES);
    until(WAIT, "the insert to hang", || async { proxy.fired(hung) == 1 }).await.unwrap();
    let before = [one.owned().await.unwrap(), two.owned().await.unwrap()];
    until(WAIT, "the insert to be done", || async {
        let rows = fleet.number(&format!("SELECT count() FROM {}", procs::table(5))).await?;
        if rows > 0 { Ok(()) } else { anyhow::bail!("no row") }
    })
    .await
    .unwrap();
    traffic.until_more(500, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(4, WAIT).await.unwrap();
    assert_eq!([one.owned().await.unwrap(), two.owned().await.unwrap()], before);
    for member in [&one, &two] {
        for lost in ["wavehouse_queue_pins_lost_total", "wavehouse_queue_resets_total"] {
            assert_eq!(member.metric(lost).await.unwrap(), 0.0, "{} of {}", lost, member.name());
        }
    }
    assert_eq!(accepted.found(&fleet.engine).await.unwrap(), Found::default());
    stop(apis.into_iter().chain([one, two])).await;
}

#[tokio::test]
async fn a_stop_while_clickhouse_hangs_ends_in_time_and_loses_nothing() {
    let more = "ingest: {batch_wait: 200ms, insert_timeout: 5s}".to_owned();
    let (proxy, fleet) = proxied(Setup { more, ..Setup::default() }).await;
    let (apis, urls) = two_apis(&fleet).await;
    let mut one = fleet.ingest("ingest-1").await.unwrap();
    let two = fleet.ingest("ingest-2").await.unwrap();
    even(&[&one, &two], UNITS, WAIT).await.unwrap();
    let traffic = Traffic::start(&urls, TABLES);
    traffic.until_more(500, WAIT).await.unwrap();
    let hang = proxy.add(Rule::insert(Action::Hang));
    until(WAIT, "every table to hang", || async { proxy.fired(hang) >= TABLES as u64 }).await.unwrap();
    one.stop(Duration::from_secs(60)).await.unwrap();
    proxy.clear();
    even(&[&two], UNITS, WAIT).await.unwrap();
    traffic.until_more(500, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(4, WAIT).await.unwrap();
    // what hung was never inserted, so nothing doubled
    let found = accepted.found(&fleet.engine).await.unwrap();
    assert_eq!((found.missing, found.doubled, accepted.unanswered), (0, 0, 0));
    stop(apis.into_iter().chain([two])).await;
}
