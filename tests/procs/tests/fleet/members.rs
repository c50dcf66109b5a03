//! Members come, stop, crash and hang under continuous publishing.

use super::{TABLES, UNITS, WAIT, busy, fleet, in_doubt, stop, two_apis};
use procs::{Found, Traffic, even};

#[tokio::test]
async fn members_that_come_and_stop_keep_each_tables_order_and_double_nothing() {
    let fleet = fleet(busy()).await;
    let (apis, urls) = two_apis(&fleet).await;
    let one = fleet.ingest("ingest-1").await.unwrap();
    let mut two = fleet.ingest("ingest-2").await.unwrap();
    even(&[&one, &two], UNITS, WAIT).await.unwrap();
    let traffic = Traffic::start(&urls, TABLES);
    traffic.until_more(2_000, WAIT).await.unwrap();

    let three = fleet.ingest("ingest-3").await.unwrap();
    let loads = even(&[&one, &two, &three], UNITS, WAIT).await.unwrap();
    println!("three members have {loads:?}");
    traffic.until_more(2_000, WAIT).await.unwrap();
    let doubt = in_doubt(&[&one, &two, &three]).await;

    two.stop(WAIT).await.unwrap();
    even(&[&one, &three], UNITS, WAIT).await.unwrap();
    traffic.until_more(2_000, WAIT).await.unwrap();
    two.restart().await.unwrap();
    even(&[&one, &two, &three], UNITS, WAIT).await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();

    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(4, WAIT).await.unwrap();
    let doubt = doubt + in_doubt(&[&one, &two, &three]).await;
    println!("{} rows, {doubt} of them in doubt", accepted.rows());
    assert_eq!((accepted.unanswered, doubt), (0, 0.0));
    assert_eq!(accepted.found(&fleet.engine).await.unwrap(), Found::default());
    stop(apis.into_iter().chain([one, two, three])).await;
}

#[tokio::test]
async fn a_member_that_is_killed_loses_nothing_and_its_units_are_shared_out() {
    let fleet = fleet(busy()).await;
    let (apis, urls) = two_apis(&fleet).await;
    let one = fleet.ingest("ingest-1").await.unwrap();
    let mut two = fleet.ingest("ingest-2").await.unwrap();
    let three = fleet.ingest("ingest-3").await.unwrap();
    even(&[&one, &two, &three], UNITS, WAIT).await.unwrap();
    let traffic = Traffic::start(&urls, TABLES);
    for _ in 0..2 {
        traffic.until_more(2_000, WAIT).await.unwrap();
        two.process.kill().unwrap();
        even(&[&one, &three], UNITS, WAIT).await.unwrap();
        traffic.until_more(1_000, WAIT).await.unwrap();
        two.restart().await.unwrap();
        even(&[&one, &two, &three], UNITS, WAIT).await.unwrap();
    }
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(4, WAIT).await.unwrap();
    let found = accepted.found(&fleet.engine).await.unwrap();
    println!("{} rows, {found:?}", accepted.rows());
    assert_eq!((found.missing, accepted.unanswered), (0, 0));
    stop(apis.into_iter().chain([one, two, three])).await;
}

#[tokio::test]
async fn a_member_that_hangs_past_its_lease_loses_its_units_and_comes_back_as_another() {
    let fleet = fleet(busy()).await;
    let (apis, urls) = two_apis(&fleet).await;
    let one = fleet.ingest("ingest-1").await.unwrap();
    let mut two = fleet.ingest("ingest-2").await.unwrap();
    even(&[&one, &two], UNITS, WAIT).await.unwrap();
    let traffic = Traffic::start(&urls, TABLES);
    traffic.until_more(2_000, WAIT).await.unwrap();
    two.process.pause().unwrap();
    even(&[&one], UNITS, WAIT).await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    two.process.resume().unwrap();
    even(&[&one, &two], UNITS, WAIT).await.unwrap();
    two.ready().await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(4, WAIT).await.unwrap();
    let found = accepted.found(&fleet.engine).await.unwrap();
    println!("{} rows, {found:?}", accepted.rows());
    assert_eq!((found.missing, accepted.unanswered), (0, 0));
    stop(apis.into_iter().chain([one, two])).await;
}
