//! Kept answers of the real process: over a Redis that is restored, demoted and gone, no query sees less than it was told is
//! there.

mod during;
mod stores;

use procs::{System, TABLE};
use serde_json::{Value, json};
use std::time::Duration;
use wh_testkit::{clickhouse, http, redis::Server, until_equal};

const WAIT: Duration = Duration::from_secs(90);

/// Posts a row and waits until it is committed.
async fn write(system: &System, id: u64) {
    let row = format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"x"}}"#);
    let url = system.url("/v1/ingest?table=events&wait=committed&timeout=30s");
    let request = http::post(url, row).header("content-type", "application/json").timeout(WAIT);
    let answer: Value = request.send().await.unwrap().json().unwrap();
    assert_eq!(answer["committed"], json!(1), "{answer}");
}

/// How many rows a query sees, and how its answer came about.
async fn seen(system: &System) -> (u64, String) {
    seen_in(system, "events").await
}

/// The same of another table.
async fn seen_in(system: &System, table: &str) -> (u64, String) {
    let query = json!({"aggregations": [{"fn": "count", "alias": "n"}]}).to_string();
    let reply = system.post_to(&format!("/v1/query?table={table}"), "application/json", query).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    let how = reply.headers["x-cache"].to_str().unwrap().to_owned();
    (reply.json().unwrap()[0]["n"].as_u64().unwrap(), how)
}

/// Asks until an answer is found kept; each must see so many rows.
async fn kept(system: &System, rows: u64) {
    until_equal(WAIT, "how an answer came about", "HIT".to_owned(), async || {
        let (found, how) = seen(system).await;
        assert_eq!(found, rows, "{how}");
        how
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_store_that_comes_back_older_or_takes_no_writes_serves_nothing_that_was_ended() {
    let mut redis = Server::start().await.unwrap();
    let cache = format!(
        "cache: {{backend: redis, redis: {{addrs: ['127.0.0.1:{}'], timeout: 10s}}}}\ningest: {{batch_wait: 50ms}}",
        redis.port()
    );
    let system = System::with(&cache).await.unwrap();
    write(&system, 1).await;
    kept(&system, 1).await;
    redis.save().await.unwrap();

    write(&system, 2).await;
    assert_eq!(seen(&system).await.0, 2, "what was said to be committed is in the next query");
    redis.crash().await.unwrap();
    // with what it held after the first row
    kept(&system, 2).await;

    redis.demote().await.unwrap();
    write(&system, 3).await;
    assert_eq!(seen(&system).await.0, 3, "a replica still has the old answer");
    redis.promote().await.unwrap();
    kept(&system, 3).await;

    redis.process().kill().unwrap();
    write(&system, 4).await;
    assert_eq!(seen(&system).await.0, 4, "no query fails of it");
    let ready = http::get(system.url("/readyz")).send().await.unwrap();
    assert_eq!(ready.status, 200, "{}", ready.text());
    let metrics = http::get(system.url("/metrics")).send().await.unwrap();
    let metrics = metrics.text();
    for metric in [
        "wavehouse_query_answers_total{cache=\"hit\"}",
        "wavehouse_query_answers_total{cache=\"miss\"}",
        "wavehouse_cache_invalidations_total{backend=\"redis\",result=\"ok\"}",
        "wavehouse_cache_breaker_open{backend=\"redis\"}",
    ] {
        assert!(metrics.contains(metric), "{metric} is not in {metrics}");
    }
}

#[tokio::test]
async fn views_on_a_table_see_its_rows_as_soon_as_they_are_committed() {
    let engine = clickhouse::Server::start().await.unwrap();
    for sql in [
        TABLE,
        "CREATE TABLE sums (note String, n UInt64) ENGINE = SummingMergeTree ORDER BY note",
        "CREATE MATERIALIZED VIEW to_sums TO sums AS SELECT note, count() AS n FROM events GROUP BY note",
        "CREATE VIEW seen AS SELECT id AS n FROM events",
    ] {
        engine.query(sql).await.unwrap();
    }
    let system = System::over(engine, "ingest: {batch_wait: 50ms}").await.unwrap();
    for rows in 1..=5 {
        write(&system, rows).await;
        for (table, function) in [("sums", "sum"), ("to_sums", "sum"), ("seen", "count")] {
            let query = json!({"aggregations": [{"fn": function, "column": "n", "alias": "rows"}]}).to_string();
            let reply = system.post_to(&format!("/v1/query?table={table}"), "application/json", query).await.unwrap();
            assert_eq!(reply.status, 200, "{table}: {}", reply.text());
            assert_eq!(reply.json().unwrap()[0]["rows"], json!(rows), "{table}: {}", reply.text());
        }
    }
}
