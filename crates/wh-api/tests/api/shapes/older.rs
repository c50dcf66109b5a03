//! Cases that need more than an insert: queries, counters of the server, profiles.

use super::{Case, codes};
use crate::{
    differential::engine::{Bench, Served},
    engine::Engine,
};
use wh_api::Mode::{Lenient, Strict};

#[tokio::test]
async fn case_08_64_bit_numbers_keep_their_digits_in_answers() {
    let engine = Engine::new(&["CREATE TABLE t (id UInt64, big Int256) ENGINE = MergeTree ORDER BY id"]).await;
    engine.database.query("INSERT INTO t VALUES (1875924584784080993, -57896044618658097711785492504343953926634992332820282019728792003956564819968)").await.unwrap();
    let reply = engine.query(serde_json::json!({ "select_all": true })).await;
    assert!(reply.text().contains("1875924584784080993"), "{}", reply.text());
    assert!(reply.text().contains("-57896044618658097711785492504343953926634992332820282019728792003956564819968"));
    let reply = engine.sql("SELECT 1875924584784080993::UInt64 AS id").await;
    assert!(reply.text().contains("1875924584784080993"), "{}", reply.text());
}

#[tokio::test]
async fn case_17_bytes_that_are_no_utf8_are_replaced_in_json_and_never_an_error() {
    let engine = Engine::new(&["CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s"]).await;
    engine.database.query("INSERT INTO t SELECT unhex('FFFE41')").await.unwrap();
    let reply = engine.query(serde_json::json!({ "select_all": true })).await;
    let text = reply.value()[0]["s"].as_str().unwrap().to_owned();
    assert_eq!((reply.status.as_u16(), text.trim_start_matches('\u{fffd}')), (200, "A"));
    assert!(text.starts_with('\u{fffd}'), "{text}");
    let raw = engine.sql("SELECT s FROM t FORMAT RowBinary").await;
    assert!(raw.status.as_u16() == 200 && raw.body.ends_with(b"\xff\xfeA"), "{:?}", raw.body);
}

#[tokio::test]
async fn case_22_nulls_for_columns_without_null_raise_no_error_inside_of_clickhouse() {
    let bench = Served::new().await;
    let case = Case::new(&bench, "c22", Lenient, "id UInt32, n Int32, d Date, s String").await;
    let errors =
        || bench.run("SELECT name, value FROM system.errors WHERE code IN (53, 70, 349) ORDER BY name FORMAT TSV");
    let before = errors().await.unwrap();
    let records: Vec<String> = (0..1_000).map(|id| format!(r#"{{"id":{id},"n":null,"d":null,"s":null}}"#)).collect();
    assert_eq!(case.ingest(&records.iter().map(String::as_str).collect::<Vec<_>>()).await, []);
    assert_eq!(case.read("count(), sum(n), max(d)").await, "1000\t0\t1970-01-01");
    assert_eq!(errors().await.unwrap(), before);
}

#[tokio::test]
async fn case_35_a_profile_with_async_inserts_is_overridden_and_one_bad_row_stands_alone() {
    let bench = Served::new().await;
    assert_eq!(bench.run("SELECT getSetting('async_insert')").await.unwrap().trim(), "true", "the profile of our user");
    let case = Case::new(&bench, "c35", Strict, "v String").await;
    assert_eq!(case.post(&[r#"{"v":"100"}"#, r#"{"v":"hello"}"#]).await.counts(), [2, 2, 0]);
    bench.run("ALTER TABLE c35 MODIFY COLUMN v Int64").await.unwrap();
    assert_eq!(case.flush_apart().await, [r#"{"v":"hello"}"#]);
    assert_eq!(case.read("*").await, "100");
    let again = Case::over(&bench, "c35", Strict).await;
    assert_eq!(
        again.ingest(&[r#"{"v":"7"}"#, r#"{"v":"hello"}"#]).await,
        codes(&[(1, "column.value")]),
        "seen before it is queued"
    );
    let sql = "SELECT DISTINCT Settings['async_insert'] FROM system.query_log WHERE query LIKE 'INSERT INTO `c35`%' AND type = \
               'QueryFinish' AND has(databases, currentDatabase())";
    wh_testkit::until_equal(
        std::time::Duration::from_secs(20),
        "async_insert of our inserts",
        "0".to_owned(),
        || async { bench.run(sql).await.unwrap_or_default().trim().to_owned() },
    )
    .await
    .unwrap();
}
