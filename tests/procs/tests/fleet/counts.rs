//! The counts N and V are raised and lowered while nothing runs, with rows queued; and what happens when something runs.

use super::{TABLES, WAIT, fleet, stop, two_apis};
use procs::{Fleet, Found, Member, Role, Setup, Traffic, even};
use wh_testkit::{http, until};

/// Publishes while nobody inserts, so that rows are queued when everything stops.
async fn queue_up(fleet: &Fleet) -> procs::Accepted {
    let (apis, urls) = two_apis(fleet).await;
    let traffic = Traffic::start(&urls, TABLES);
    traffic.until_more(1_000, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    assert_eq!(accepted.unanswered, 0);
    stop(apis).await;
    accepted
}

#[tokio::test]
async fn rows_that_are_queued_when_the_counts_change_are_inserted_once() {
    for (before, after) in [((2, 4), (4, 8)), ((4, 8), (2, 4)), ((4, 4), (2, 8))] {
        let mut fleet = fleet(Setup { partitions: before.0, shards: before.1, ..Setup::default() }).await;
        let accepted = queue_up(&fleet).await;
        assert!(fleet.queued(before.0).await.unwrap() > 0);
        fleet.change_counts(after.0, after.1).await.unwrap();
        let one = fleet.ingest("ingest-1").await.unwrap();
        let two = fleet.ingest("ingest-2").await.unwrap();
        accepted.arrived(&fleet.engine, WAIT).await.unwrap();
        fleet.drained(4, WAIT).await.unwrap();
        // what was left behind is given up once it is empty
        even(&[&one, &two], after.0 * after.1, WAIT).await.unwrap();
        assert_eq!(accepted.found(&fleet.engine).await.unwrap(), Found::default(), "from {before:?} to {after:?}");
        stop([one, two]).await;
    }
}

/// Waits until a process says that another one's counts keep it from being ready.
async fn disagrees(member: &Member, other: &str) {
    until(WAIT, "a process to name the other", || async {
        let reply = http::get(member.url("/readyz")).send().await?;
        let why = reply.json()?["failed"]["topology"].as_str().unwrap_or_default().to_owned();
        anyhow::ensure!(reply.status == 503 && why.contains(&format!("process {other} runs with")), "{}", reply.text());
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_process_with_other_counts_does_not_start_beside_a_living_one_and_does_beside_a_dead_one() {
    let setup = Setup { partitions: 2, shards: 2, wait: "2s", ..Setup::default() };
    let mut fleet = Fleet::new(setup).await.unwrap();
    let mut old = fleet.ingest("old").await.unwrap();
    even(&[&old], 4, WAIT).await.unwrap();
    fleet.change_counts(2, 4).await.unwrap();
    let mut refused = fleet.launch("refused", "wavehouse-ingest", Role::Ingest).unwrap();
    assert_eq!(refused.process.wait(WAIT).await.unwrap().code(), Some(1));
    let log = refused.process.log();
    assert!(log.contains("process old") && log.contains("2 partitions, 2 shards"), "{log}");
    assert!(log.contains("cannot start") && log.contains("stop the processes that run with the other counts"), "{log}");

    // it cannot be told from a dead one any more
    old.process.pause().unwrap();
    let mut new = fleet.ingest("new").await.unwrap();
    even(&[&new], 8, WAIT).await.unwrap();
    old.process.resume().unwrap();
    disagrees(&old, "new").await;
    disagrees(&new, "old").await;
    assert!(new.process.log().contains("one of them must stop"));
    old.stop(WAIT).await.unwrap();
    new.ready().await.unwrap();
    even(&[&new], 8, WAIT).await.unwrap();
    stop([new]).await;
}
