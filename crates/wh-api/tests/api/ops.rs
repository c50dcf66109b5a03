//! The operator's paths over the real engine.

use crate::{
    engine::Engine,
    rig::{Rig, get, keyed, post},
};
use serde_json::json;
use wh_mq::{DeadLetter, DeadLetterId};
use wh_types::{Cursor, Epoch, RowCursor, Table, Tenant, Timestamp};

const TABLE: &str = "CREATE TABLE t (id UInt64, note Nullable(String) DEFAULT 'x', twice UInt64 MATERIALIZED id * 2) \
                     ENGINE = MergeTree ORDER BY id";

#[tokio::test]
async fn sql_is_run_as_it_is_and_rows_are_an_array() {
    let engine = Engine::new(&[]).await;
    let reply = engine.sql("SELECT * FROM (SELECT 1875924584784080993::UInt64 AS id, nan AS n, '2025-06-21 04:00:00'::DateTime64(3, 'Asia/Tokyo') AS at, 'a\nb' AS s UNION ALL SELECT 2, 1.5, '2025-06-21 04:00:00'::DateTime64(3, 'Asia/Tokyo'), '') ORDER BY id DESC").await;
    assert_eq!(
        reply.text(),
        r#"[{"id":1875924584784080993,"n":null,"at":"2025-06-20T19:00:00.000Z","s":"a\nb"},{"id":2,"n":1.5,"at":"2025-06-20T19:00:00.000Z","s":""}]"#
    );
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(engine.sql("SELECT 1 WHERE 0").await.text(), "[]");

    for (format, text, media) in [
        ("CSV", "1,\"a\"\n", "text/csv"),
        ("JSONEachRow", "{\"a\":1,\"b\":\"a\"}\n", "application/x-ndjson"),
        ("TabSeparated", "1\ta\n", "text/tab-separated-values"),
    ] {
        let reply = engine.sql(&format!("SELECT 1 AS a, 'a' AS b FORMAT {format}")).await;
        assert_eq!(reply.text(), text, "{format}");
        assert!(
            reply.header("content-type").unwrap().starts_with(media),
            "{format}: {:?}",
            reply.header("content-type")
        );
    }
}

#[tokio::test]
async fn after_a_definition_the_table_takes_rows_at_once() {
    let engine = Engine::new(&[]).await;
    assert_eq!(engine.rig.json(r#"{"id":1}"#).await.status, 404);
    let reply = engine.sql(&format!("/* first */ {TABLE}")).await;
    assert_eq!((reply.status.as_u16(), reply.text()), (200, "[]"));
    assert_eq!(engine.rig.json(r#"{"id":1}"#).await.status, 200);
    assert_eq!(engine.rig.json(r#"{"id":1,"more":2}"#).await.outcome(), (400, Some("column.not_found".into())));
    engine.sql("ALTER TABLE t ADD COLUMN more UInt8").await;
    assert_eq!(engine.rig.json(r#"{"id":1,"more":2}"#).await.status, 200);
    engine.sql("INSERT INTO t (id) VALUES (5)").await;
    assert_eq!(engine.sql("SELECT twice FROM t").await.text(), r#"[{"twice":10}]"#);
}

#[tokio::test]
async fn failures_are_told_apart_as_the_contract_says() {
    let engine = Engine::new(&[TABLE]).await;
    for (sql, status, code) in [
        ("SELECT nope FROM t", 400, "clickhouse.rejected"),
        ("SELEC 1", 400, "clickhouse.rejected"),
        ("SELECT * FROM missing", 400, "clickhouse.rejected"),
        ("SELECT sum(number) FROM numbers(1000000) SETTINGS max_rows_to_read = 10", 400, "clickhouse.limit_exceeded"),
        (
            "SELECT sleep(3) SETTINGS max_execution_time = 1, function_sleep_max_microseconds_per_block = 10000000",
            503,
            "clickhouse.unavailable",
        ),
        (
            "SELECT throwIf(number = 90000) FROM numbers(100000) SETTINGS max_block_size = 1000",
            400,
            "clickhouse.rejected",
        ),
    ] {
        let reply = engine.sql(sql).await;
        assert_eq!(reply.outcome(), (status, Some(code.into())), "{sql}: {}", reply.text());
        assert_eq!(reply.value()["retryable"], status == 503, "{sql}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_no_answer() {
    let options = wh_api::ApiOptions { answer_bytes: 100_000, ..wh_api::ApiOptions::default() };
    let engine = Engine::with(&[], crate::rig::Setup { options, ..crate::rig::Setup::default() }).await;
    let reply = engine.sql("SELECT repeat('x', 1000) FROM numbers(1000)").await;
    assert_eq!(reply.outcome(), (502, Some("clickhouse.response_too_large".into())));
    assert_eq!(reply.value()["retryable"], false);
}

#[tokio::test]
async fn the_schema_is_shown_without_its_ddl_and_read_again_on_demand() {
    let engine = Engine::new(&[TABLE]).await;
    let path = |path: &str| keyed(get(path));
    let table = engine.rig.send(path("/v1/ops/schema?table=t")).await.value();
    assert_eq!(
        table,
        json!({"name": "t", "engine": "MergeTree", "mode": "strict", "columns": [
            {"name": "id", "type": "UInt64", "is_nullable": false, "has_default": false, "position": 1},
            {"name": "note", "type": "Nullable(String)", "is_nullable": true, "has_default": true, "position": 2,
             "default_kind": "DEFAULT", "default_expression": "'x'"},
            {"name": "twice", "type": "UInt64", "is_nullable": false, "has_default": true, "position": 3,
             "default_kind": "MATERIALIZED", "default_expression": "id * 2"},
        ]})
    );
    assert_eq!(engine.rig.send(path("/v1/ops/schema")).await.value(), json!([table]));
    engine.database.query("CREATE TABLE u (a UInt8) ENGINE = Memory").await.unwrap();
    assert_eq!(engine.rig.send(path("/v1/ops/schema?table=u")).await.status, 404);
    let refreshed = engine.rig.send(keyed(post("/v1/ops/schema/refresh", "application/json", ""))).await;
    assert_eq!(refreshed.value().as_array().unwrap().len(), 2, "{}", refreshed.text());
    assert_eq!(engine.rig.send(path("/v1/ops/schema?table=u")).await.status, 200);
}

#[tokio::test]
async fn dead_letters_and_the_queue_are_counted() {
    let rig = Rig::new();
    let letter = |sequence, table: &str| DeadLetter {
        id: DeadLetterId(RowCursor { block: Cursor { epoch: Epoch(0xe), sequence }, row: 0 }),
        tenant: Tenant::default(),
        table: Table::new(table).unwrap(),
        body: "{}".into(),
        reason: "x".into(),
        code: "26".into(),
        column: None,
        attempted: Timestamp::default(),
        received: Timestamp::default(),
        retry_until: None,
    };
    let kept = rig.broker.dead_letter(&[letter(1, "t"), letter(2, "t"), letter(3, "u")]).await;
    assert!(kept.iter().all(Result::is_ok));
    let stats = |query: &str| keyed(get(&format!("/v1/ops/dlq/stats{query}")));
    assert_eq!(rig.send(stats("")).await.value(), json!({"tables": {"t": 2, "u": 1}, "total": 3}));
    assert_eq!(rig.send(stats("?table=u")).await.value(), json!({"tables": {"u": 1}, "total": 1}));
    assert_eq!(rig.send(stats("?tenant=acme")).await.value(), json!({"tables": {}, "total": 0}));

    rig.lines("{\"id\":1}\n{\"id\":2}").await;
    let queue = rig.send(keyed(get("/v1/ops/queue"))).await.value();
    assert_eq!(queue["accepting"], true);
    assert_eq!(queue["epoch"], "0000000e");
    assert_eq!(queue["tenants"]["0"]["unsettled_rows"], 2);
    assert_eq!(queue["tenants"]["0"]["dead_letters"], 3);
}
