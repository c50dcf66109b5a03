//! How many streams there may be, and what ends one.

use crate::rig::{Rig, Setup, get};
use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use wh_api::{ApiOptions, TenantLimits};

fn of_tenant(path: &str, tenant: &str) -> Request<Body> {
    let mut request = get(path);
    request.headers_mut().insert("x-tenant-id", tenant.parse().unwrap());
    request
}

async fn open(rig: &Rig, tenant: &str) -> Response<Body> {
    let response = rig.raw(of_tenant("/v1/stream?table=t", tenant)).await;
    assert_eq!(response.status(), 200);
    response
}

#[tokio::test]
async fn a_tenant_that_has_its_streams_is_told_so_and_costs_no_other_tenant() {
    let limits = TenantLimits { max_streams: 2, ..TenantLimits::default() };
    let options = ApiOptions { max_streams: 3, ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, limits, ..Setup::default() });
    let mut first = vec![open(&rig, "0").await, open(&rig, "0").await];
    let refused = rig.send(of_tenant("/v1/stream?table=t", "0")).await;
    assert_eq!(refused.outcome(), (429, Some("stream.tenant_too_many".into())));
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(refused.value()["retryable"], true);
    let other = open(&rig, "acme").await;
    let refused = rig.send(of_tenant("/v1/stream?table=t", "acme")).await;
    assert_eq!(refused.outcome(), (503, Some("stream.too_many".into())));
    assert_eq!(refused.header("retry-after"), Some("5"));
    // who was refused by the process keeps no place of the tenant's
    drop((first.pop(), other));
    let again = [open(&rig, "acme").await, open(&rig, "acme").await];
    assert_eq!(rig.send(of_tenant("/v1/stream?table=t", "0")).await.outcome().0, 503);
    drop(again);
    open(&rig, "0").await;
}

#[tokio::test]
async fn a_refused_request_takes_no_place() {
    let limits = TenantLimits { max_streams: 1, ..TenantLimits::default() };
    let rig = Rig::with(Setup { limits, ..Setup::default() });
    for _ in 0..3 {
        assert_eq!(rig.send(get("/v1/stream?table=nothing")).await.outcome().0, 404);
        assert_eq!(rig.send(get("/v1/stream?table=t&since=x")).await.outcome().0, 400);
    }
    open(&rig, "0").await;
}

#[tokio::test]
async fn no_proxy_may_hold_a_stream_back_or_change_it() {
    let rig = Rig::new();
    let response = open(&rig, "0").await;
    let header = |name: &str| response.headers()[name].to_str().unwrap();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("x-accel-buffering"), "no");
    let cache = header("cache-control");
    assert!(["no-cache", "no-transform"].iter().all(|rule| cache.contains(rule)), "{cache}");
}

#[tokio::test]
async fn a_dropped_table_ends_its_streams_with_a_reason_and_a_place_to_go_on() {
    let engine = crate::engine::Engine::new(&[
        "CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id",
        "CREATE TABLE u (id UInt64) ENGINE = MergeTree ORDER BY id",
    ])
    .await;
    let mut body = open(&engine.rig, "0").await.into_body();
    let other = engine.rig.raw(get("/v1/stream?table=u")).await;
    assert_eq!(engine.rig.json(r#"{"id":1}"#).await.status, 200);
    let mut text = String::new();
    while !text.contains("event: row\n") {
        let frame = body.frame().await.expect("the stream ended").unwrap().into_data().unwrap();
        text.push_str(std::str::from_utf8(&frame).unwrap());
    }
    let id = text.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    engine.database.query("DROP TABLE t SYNC").await.unwrap();
    engine.schema().refresh().await.unwrap();
    let rest = body.collect().await.unwrap().to_bytes();
    let rest = std::str::from_utf8(&rest).unwrap();
    let (_, data) = rest.split_once("event: end\ndata: ").expect(rest);
    let end: serde_json::Value = serde_json::from_str(data.trim()).unwrap();
    assert_eq!((&end["reason"], &end["resume"]), (&"table_gone".into(), &id.into()), "{rest}");
    assert_eq!(engine.rig.send(get("/v1/stream?table=t")).await.outcome(), (404, Some("table.not_found".into())));
    // the other table's streams go on
    engine.rig.send(crate::rig::post("/v1/ingest?table=u", "application/json", r#"{"id":2}"#)).await;
    let mut body = other.into_body();
    let mut text = String::new();
    while !text.contains("event: row\n") {
        let frame = body.frame().await.expect("the stream ended").unwrap().into_data().unwrap();
        text.push_str(std::str::from_utf8(&frame).unwrap());
    }
}
