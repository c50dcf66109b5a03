//! Pipes that write: every call, once, and never said to be worth another try.

use super::{engine, pipe, with};
use crate::rig::{Setup, get};
use axum::body::Body;
use futures::future::join_all;
use http::{Method, Request};
use serde_json::json;
use std::time::Duration;
use wh_api::TenantLimits;

const WRITE: &str = "INSERT INTO t (id, origin) SELECT {id:UInt64}, {origin:String}";

#[tokio::test]
async fn a_write_runs_on_every_call() {
    let engine = engine(json!([pipe("add", WRITE)])).await;
    for _ in 0..2 {
        assert_eq!(engine.pipe_with("add", json!({"id": 7, "origin": "a\t'b\\"})).await.text(), "[]");
    }
    let all = join_all((0..10).map(|_| engine.pipe("add?id=7&origin=x"))).await;
    for reply in &all {
        assert_eq!((reply.status.as_u16(), reply.header("x-cache")), (200, Some("BYPASS")), "{}", reply.text());
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    assert_eq!(engine.says("SELECT countIf(id = 7), countIf(origin = 'a\\t''b\\\\') FROM t").await, "12\t2");
    // who asks for a head only, and whose values are not good, changes nothing
    let head = Request::builder().method(Method::HEAD).uri("/v1/pipes/add?id=7&origin=x").body(Body::empty()).unwrap();
    assert_eq!(engine.rig.raw(head).await.status(), 405);
    assert_eq!(engine.pipe("add?id=7").await.status, 400);
    assert_eq!(engine.says("SELECT count() FROM t WHERE id = 7").await, "12");
}

#[tokio::test]
async fn a_failed_write_is_never_worth_another_try() {
    let limits = TenantLimits { query_timeout: Duration::from_secs(1), ..TenantLimits::default() };
    let slow = "INSERT INTO t (id) SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number + {id:UInt64}))";
    let pipes = json!([
        pipe("slow", slow),
        pipe("bad", "INSERT INTO nowhere SELECT {id:UInt64}"),
        pipe("read", "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number + {id:UInt64}))")
    ]);
    let engine = with(pipes, &[super::TABLE], Setup { limits, ..Setup::default() }).await;
    let failed = engine.pipe("slow?id=1").await;
    assert_eq!(failed.outcome(), (503, Some("clickhouse.unavailable".into())), "{}", failed.text());
    assert_eq!((failed.value()["retryable"].as_bool(), failed.header("retry-after")), (Some(false), None));
    let refused = engine.pipe("bad?id=1").await;
    assert_eq!(refused.outcome(), (400, Some("clickhouse.rejected".into())), "{}", refused.text());
    let read = engine.pipe("read?id=1").await;
    assert_eq!(read.outcome(), (503, Some("clickhouse.unavailable".into())), "{}", read.text());
    assert_eq!((read.value()["retryable"].as_bool(), read.header("retry-after")), (Some(true), Some("5")));
}

#[tokio::test]
async fn a_definition_is_known_at_once() {
    let engine = engine(json!([pipe("widen", "ALTER TABLE t ADD COLUMN more UInt8")])).await;
    assert_eq!(engine.pipe_with("widen", json!({})).await.status, 200);
    let query = json!({"columns": ["more"], "limit": 1});
    wh_testkit::until_equal(Duration::from_secs(60), "status", 200, || async {
        engine.query(query.clone()).await.status.as_u16()
    })
    .await
    .unwrap();
    assert_eq!(engine.rig.send(get("/v1/pipes/nothing")).await.status, 404);
}
