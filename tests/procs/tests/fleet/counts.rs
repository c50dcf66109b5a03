//! The counts N and V are raised and lowered while nothing runs, with rows queued.

use super::{TABLES, WAIT, fleet, stop, two_apis};
use procs::{Fleet, Found, Setup, Traffic, even};

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
