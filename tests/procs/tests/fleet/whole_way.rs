//! The whole way over NATS once: posted to one api, inserted by an ingest, streamed by both apis.

use super::{TABLES, UNITS, WAIT, busy, fleet, stop};
use procs::{Fleet, Found, Setup, TABLE, Traffic, even};
use wh_testkit::{http, until};

#[tokio::test]
async fn a_row_posted_to_one_api_is_inserted_by_an_ingest_and_streamed_by_both() {
    let fleet = Fleet::new(Setup { partitions: 2, shards: 2, ..Setup::default() }).await.unwrap();
    fleet.engine.query(TABLE).await.unwrap();
    let (mut one, mut two) = (fleet.api("api-1").await.unwrap(), fleet.api("api-2").await.unwrap());
    let mut ingest = fleet.ingest("ingest-1").await.unwrap();
    let mut streams = Vec::new();
    for api in [&one, &two] {
        let mut events = http::get(api.url("/v1/stream?table=events")).events().await.unwrap();
        assert_eq!(events.next(WAIT).await.unwrap().unwrap().kind, "ready");
        streams.push(events);
    }

    let row = r#"{"id":18446744073709551615,"at":"2026-01-02 03:04:05.678","note":"over NATS"}"#;
    let reply = one.post("events", row).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    for events in &mut streams {
        let event = events.next(WAIT).await.unwrap().unwrap();
        assert_eq!((event.kind.as_str(), event.data.as_str()), ("row", row), "a row keeps its own text");
    }
    until(WAIT, "the row in ClickHouse", || async {
        let rows = fleet.number("SELECT count() FROM events WHERE note = 'over NATS'").await?;
        if rows == 1 { Ok(()) } else { anyhow::bail!("{rows} rows") }
    })
    .await
    .unwrap();
    fleet.drained(2, WAIT).await.unwrap();

    // what each process does not do, and what an operator sees of it
    let refused = ingest.post("events", row).await.unwrap();
    assert_eq!(refused.status, 404, "{}", refused.text());
    assert!(ingest.metric("wavehouse_ingest_rows_inserted_total").await.unwrap() > 0.0);
    assert_eq!(one.metric("wavehouse_ingest_rows_inserted_total").await.unwrap(), 0.0);
    for member in [&one, &two, &ingest] {
        let queue = member.ops("/v1/ops/queue").await.unwrap();
        assert_eq!(queue["accepting"], true, "{queue}");
    }
    for member in [&mut one, &mut two, &mut ingest] {
        member.stop(WAIT).await.unwrap();
    }
}

#[tokio::test]
async fn a_process_with_both_roles_takes_events_and_its_share_and_stops_without_a_loss() {
    let fleet = fleet(busy()).await;
    let mut both = fleet.both("both").await.unwrap();
    let ingest = fleet.ingest("ingest").await.unwrap();
    even(&[&both, &ingest], UNITS, WAIT).await.unwrap();
    let traffic = Traffic::start(&[both.url("")], TABLES);
    traffic.until_more(1_000, WAIT).await.unwrap();
    // its clients are told, and what it answered with 200 is inserted by the other
    both.stop(WAIT).await.unwrap();
    even(&[&ingest], UNITS, WAIT).await.unwrap();
    let accepted = traffic.stop().await.unwrap();
    accepted.arrived(&fleet.engine, WAIT).await.unwrap();
    fleet.drained(4, WAIT).await.unwrap();
    assert_eq!(accepted.found(&fleet.engine).await.unwrap(), Found::default());
    stop([ingest]).await;
}
