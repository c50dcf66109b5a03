//! What a process cannot start on, what ends it, and a NATS server that goes away and comes back.

use super::{TABLES, UNITS, WAIT, busy, fleet, stop, two_apis};
use procs::{Fleet, Role, Setup, Traffic, even};
use wh_testkit::{http, until};

#[tokio::test]
async fn a_process_that_may_not_do_its_work_says_everything_at_once_and_ends_with_1() {
    let fleet = Fleet::new(Setup { partitions: 1, shards: 2, wait: "2s", ..Setup::default() }).await.unwrap();
    // the api's user pulls nothing
    let mut wrong = fleet.launch("wrong-user", "wavehouse-ingest", Role::Api).unwrap();
    let status = wrong.process.wait(WAIT).await.unwrap();
    assert_eq!(status.code(), Some(1), "{}", wrong.process.log());
    let log = wrong.process.log();
    assert!(log.contains("cannot start: the topology on the NATS servers"), "{log}");
    assert_eq!(log.matches(" ERROR ").count(), 1, "{log}");

    let durable = fleet.nats.operator().delete_durable("WH_INGEST_0", "wh-ingest-1").await;
    assert!(durable.is_ok(), "{durable:?}");
    let mut ingest = fleet.launch("no-durable", "wavehouse-ingest", Role::Ingest).unwrap();
    assert_eq!(ingest.process.wait(WAIT).await.unwrap().code(), Some(1));
    let log = ingest.process.log();
    assert!(log.contains("WH_INGEST_0") && log.contains("wh-ingest-1") && log.contains("fix:"), "{log}");
    // an api has no durables
    stop([fleet.api("api").await.unwrap()]).await;
}

#[tokio::test]
async fn a_process_whose_delivery_ended_stops_in_order_and_ends_with_1() {
    let fleet = fleet(Setup { partitions: 1, shards: 2, ..busy() }).await;
    let mut ingest = fleet.ingest("ingest").await.unwrap();
    even(&[&ingest], 2, WAIT).await.unwrap();
    fleet.nats.operator().delete_durable("WH_INGEST_0", "wh-ingest-1").await.unwrap();
    let status = ingest.process.wait(WAIT).await.unwrap();
    let log = ingest.process.log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert_eq!(log.matches("ended: the ingest worker ended").count(), 1, "{log}");
}

#[tokio::test]
async fn nothing_is_lost_when_the_nats_server_is_killed_and_comes_back() {
    let mut fleet = fleet(busy()).await;
    let (mut apis, urls) = two_apis(&fleet).await;
    let mut one = fleet.ingest("ingest-1").await.unwrap();
    let mut two = fleet.ingest("ingest-2").await.unwrap();
    even(&[&one, &two], UNITS, WAIT).await.unwrap();
    let traffic = Traffic::start(&urls, TABLES);
    traffic.until_more(2_000, WAIT).await.unwrap();
    fleet.nats.one().unwrap().process().kill().unwrap();
    for member in [&apis[0], &one] {
        until(WAIT, "a process to be unready", || async {
            let reply = http::get(member.url("/readyz")).send().await?;
            anyhow::ensure!(reply.status == 503 && reply.json()?["failed"]["queue"].is_string(), "{}", reply.text());
            Ok::<_, anyhow::Error>(())
        })
        .await
        .unwrap();
        assert_eq!(http::get(member.url("/livez")).send().await.unwrap().status, 200);
    }
    fleet.nats.one().unwrap().restart().await.unwrap();
    for member in apis.iter_mut().chain([&mut one, &mut two]) {
        member.ready().await.unwrap();
    }
    even(&[&one, &two], UNITS, WAIT).await.unwrap();
    traffic.until_more(2_000, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(4, WAIT).await.unwrap();
    println!("{} rows, {:?}", accepted.rows(), accepted.found(&fleet.engine).await.unwrap());
    stop(apis.into_iter().chain([one, two])).await;
}
