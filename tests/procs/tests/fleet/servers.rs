//! The core cases on other servers: the newest release, and three nodes of which one is killed.

use super::{TABLES, WAIT, busy, fleet, in_doubt, stop, two_apis};
use procs::{Found, Setup, Traffic, even};
use wh_testkit::servers::NATS_VERSIONS;

const NEWEST: &str = NATS_VERSIONS[NATS_VERSIONS.len() - 1];

#[tokio::test]
async fn on_the_newest_release_members_come_stop_crash_and_hang_as_on_the_oldest() {
    let fleet = fleet(Setup { version: NEWEST, partitions: 2, shards: 4, ..busy() }).await;
    let (apis, urls) = two_apis(&fleet).await;
    let mut one = fleet.ingest("ingest-1").await.unwrap();
    let traffic = Traffic::start(&urls, TABLES);
    traffic.until_more(1_000, WAIT).await.unwrap();
    let mut two = fleet.ingest("ingest-2").await.unwrap();
    even(&[&one, &two], 8, WAIT).await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    let doubt = in_doubt(&[&one]).await;
    one.stop(WAIT).await.unwrap();
    even(&[&two], 8, WAIT).await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    // until here every row came once and in order
    let before = traffic.stop().await.unwrap();
    before.arrived(&fleet.engine, WAIT).await.unwrap();
    assert_eq!((before.unanswered, doubt + in_doubt(&[&two]).await), (0, 0.0));
    assert_eq!(before.found(&fleet.engine).await.unwrap(), Found::default());

    one.restart().await.unwrap();
    even(&[&one, &two], 8, WAIT).await.unwrap();
    let traffic = Traffic::start_at(1_000_000, &urls, TABLES);
    traffic.until_more(1_000, WAIT).await.unwrap();
    two.process.kill().unwrap();
    even(&[&one], 8, WAIT).await.unwrap();
    two.restart().await.unwrap();
    even(&[&one, &two], 8, WAIT).await.unwrap();
    one.process.pause().unwrap();
    even(&[&two], 8, WAIT).await.unwrap();
    one.process.resume().unwrap();
    even(&[&one, &two], 8, WAIT).await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(2, WAIT).await.unwrap();
    assert_eq!((accepted.found(&fleet.engine).await.unwrap().missing, accepted.unanswered), (0, 0));
    stop(apis.into_iter().chain([one, two])).await;
}

#[tokio::test]
async fn on_three_nodes_the_leader_of_a_durable_is_killed_and_no_row_is_lost() {
    let mut fleet = fleet(Setup { replicas: 3, version: NEWEST, partitions: 1, shards: 4, ..busy() }).await;
    let (apis, urls) = two_apis(&fleet).await;
    let (one, two) = (fleet.ingest("ingest-1").await.unwrap(), fleet.ingest("ingest-2").await.unwrap());
    even(&[&one, &two], 4, WAIT).await.unwrap();
    let traffic = Traffic::start(&urls, TABLES);
    traffic.until_more(1_000, WAIT).await.unwrap();
    let cluster = fleet.nats.three().unwrap();
    let leader = cluster.consumer_leader("WH_INGEST_0", "wh-ingest-0").await.unwrap();
    cluster.node_mut(leader).process().kill().unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    cluster.node_mut(leader).restart().await.unwrap();
    even(&[&one, &two], 4, WAIT).await.unwrap();
    traffic.until_more(1_000, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(1, WAIT).await.unwrap();
    let found = accepted.found(&fleet.engine).await.unwrap();
    println!("{} rows, {} requests unanswered, {found:?}", accepted.rows(), accepted.unanswered);
    assert_eq!(found.missing, 0);
    stop(apis.into_iter().chain([one, two])).await;
}
