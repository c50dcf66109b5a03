//! ClickHouse goes away under load: events are taken meanwhile, and all arrive once it is back.

use procs::{System, TABLE, Writers};
use std::time::Duration;
use wh_testkit::{clickhouse, fault};

const WAIT: Duration = Duration::from_secs(180);

#[tokio::test]
async fn rows_arrive_once_a_killed_clickhouse_is_back() {
    let mut system = System::with("ingest:\n  batch_wait: 100ms").await.unwrap();
    let writers = Writers::start(&system.url("/v1/ingest"), 4, 10);
    for _ in 0..2 {
        writers.until_more(500, WAIT).await.unwrap();
        system.engine.crash().unwrap();
        writers.until_more(2_000, WAIT).await.expect("events are taken while ClickHouse is down");
        system.engine.restart().await.unwrap();
    }
    let sent = writers.stop().await.unwrap();
    let accepted = sent.accepted.len() as u64;
    system.holds_ids(accepted, WAIT).await.unwrap();
    let rows = system.number("SELECT count() FROM events").await.unwrap();
    println!("{accepted} accepted, {} doubled where an insert's answer was lost", rows.saturating_sub(accepted));
    assert_eq!(dead_letters(&system).await, 0, "an outage parks nothing");
}

#[tokio::test]
async fn a_lost_answer_is_repeated_under_the_same_token_and_stores_once() {
    let engine = clickhouse::Server::start().await.unwrap();
    engine.query(TABLE).await.unwrap();
    engine.query("ALTER TABLE events MODIFY SETTING non_replicated_deduplication_window = 100").await.unwrap();
    let proxy = fault::Proxy::start(engine.url()).await.unwrap();
    let url = proxy.url();
    let system = System::behind(engine, &url, "ingest:\n  batch_wait: 50ms").await.unwrap();
    let lost = proxy.add(fault::Rule::insert(fault::Action::DropReply).times(2));
    let rows = (1..=200).map(|id| format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"n"}}"#));
    let reply = system.post("application/x-ndjson", rows.collect::<Vec<_>>().join("\n")).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    system.holds_ids(200, WAIT).await.unwrap();
    // the repeats are over once the queue holds nothing
    wh_testkit::until(WAIT, "the queue to be empty", || async {
        let status = ops(&system, "/v1/ops/queue").await?;
        let rows = status["tenants"]["0"]["unsettled_rows"].as_u64();
        if rows.unwrap_or(0) == 0 { Ok(()) } else { anyhow::bail!("{status}") }
    })
    .await
    .unwrap();
    assert_eq!(system.number("SELECT count() FROM events").await.unwrap(), 200, "stored once");
    assert_eq!(proxy.fired(lost), 2, "two answers were lost");
    assert_eq!(dead_letters(&system).await, 0);
}

async fn ops(system: &System, path: &str) -> anyhow::Result<serde_json::Value> {
    let request = wh_testkit::http::get(system.url(path)).header("authorization", "Operator an-operator-key");
    request.send().await?.json()
}

async fn dead_letters(system: &System) -> u64 {
    ops(system, "/v1/ops/dlq/stats").await.unwrap()["total"].as_u64().unwrap()
}
