//! The example as its reader would run it: over a real engine, stopped and started again.

use embed_ingest::Service;
use std::time::Duration;
use wh_testkit::{clickhouse, until};

#[tokio::test]
async fn measurements_arrive_also_those_taken_while_clickhouse_was_away() {
    let mut engine = clickhouse::Server::start().await.unwrap();
    engine.query("CREATE TABLE measurements (n UInt32, value Float64) ENGINE = MergeTree ORDER BY n").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let rows = |from: u32| (from..from + 10).map(|n| format!("{{\"n\":{n},\"value\":{n}.5}}")).collect::<Vec<_>>();

    let service = Service::start(folder.path(), &engine.url(), "default").await.unwrap();
    service.take("measurements", &rows(0)).await.unwrap();
    service.stop().await;
    assert_eq!(engine.query("SELECT count() FROM measurements").await.unwrap().trim(), "10", "a stop inserts");

    engine.crash().unwrap();
    let service = Service::start(folder.path(), &engine.url(), "default").await.unwrap();
    service.take("measurements", &rows(10)).await.unwrap();
    service.stop().await;

    engine.restart().await.unwrap();
    let service = Service::start(folder.path(), &engine.url(), "default").await.unwrap();
    until(Duration::from_secs(30), "all values to be in ClickHouse", || async {
        let sum = engine.query("SELECT toUInt32(sum(value)) FROM measurements").await?;
        if sum.trim() == "200" { Ok(()) } else { anyhow::bail!("their sum is {}", sum.trim()) }
    })
    .await
    .unwrap();
    service.stop().await;
}
