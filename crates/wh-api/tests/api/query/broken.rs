//! Answers that fail half-way: an error that the client sees, never a short 200.

use super::wire;
use crate::{
    engine::Engine,
    rig::{Setup, post},
};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use wh_api::TenantLimits;
use wh_types::Tasks;

/// Fails after some megabytes.
const FAILS_LATE: &str = "CREATE VIEW t AS SELECT number AS id, hex(rand64()) AS pad, throwIf(number = 1500000, 'boom') AS boom \
    FROM numbers(2000000) SETTINGS max_block_size = 10000";
/// Fails before anything is sent.
const FAILS_SOON: &str = "CREATE VIEW t AS SELECT number AS id, throwIf(number = 5, 'boom') AS boom FROM numbers(20000) \
    SETTINGS max_block_size = 1000";

fn many() -> Setup {
    Setup { limits: TenantLimits { max_result_rows: 5_000_000, ..TenantLimits::default() }, ..Setup::default() }
}

#[tokio::test]
async fn a_stream_that_breaks_is_no_end_on_the_wire() {
    let engine = Engine::with(&[FAILS_LATE], many()).await;
    let tasks = Tasks::new();
    let address = wire::serve(&engine.rig, &tasks).await;
    let good = wire::receive(wire::send(address, "&format=ndjson", r#"{"columns":["id"],"limit":5}"#).await).await;
    assert!(good.0.contains("transfer-encoding: chunked") && good.1.ends_with(b"\r\n0\r\n\r\n"), "{good:?}");
    for format in ["ndjson", "csv", "arrow"] {
        let path = format!("&format={format}");
        let stream = wire::send(address, &path, r#"{"columns":["id","pad","boom"]}"#).await;
        let (head, body) = wire::receive(stream).await;
        assert!(head.starts_with("http/1.1 200") && head.contains("transfer-encoding: chunked"), "{head}");
        assert!(body.len() > 1_000_000, "{format}: {}", body.len());
        assert!(!body.ends_with(b"0\r\n\r\n"), "{format}: the body ends well");
        assert!(memchr::memmem::find(&body, b"__exception__").is_none(), "{format}");
        if format == "ndjson" {
            let text = String::from_utf8_lossy(&body);
            let last = text.lines().rev().find(|line| line.starts_with('{')).unwrap();
            let told: Value = serde_json::from_str(last).unwrap();
            assert_eq!((&told["code"], &told["request_id"]), (&json!("clickhouse.rejected"), &json!("id-1")), "{last}");
            assert!(told["error"].as_str().unwrap().starts_with("boom"), "{last}");
        }
    }
}

#[tokio::test]
async fn lines_before_a_break_are_whole() {
    let engine = Engine::with(&[FAILS_LATE], many()).await;
    let query = json!({"columns": ["id", "pad", "boom"]}).to_string();
    let mut body = engine.rig.raw(post("/v1/query?table=t&format=ndjson", "application/json", query)).await.into_body();
    let mut text = Vec::new();
    let broken = loop {
        match body.frame().await {
            Some(Ok(frame)) => text.extend_from_slice(&frame.into_data().unwrap()),
            Some(Err(_)) => break true,
            None => break false,
        }
    };
    assert!(broken && text.ends_with(b"\n"));
    let lines: Vec<Value> = text
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let (last, rows) = lines.split_last().unwrap();
    assert!(rows.len() > 10_000 && rows.iter().enumerate().all(|(at, row)| row["id"] == at));
    assert_eq!(last["code"], "clickhouse.rejected");
}

#[tokio::test]
async fn what_fails_before_its_first_row_has_an_error_for_an_answer() {
    let engine = Engine::with(&[FAILS_SOON], many()).await;
    for path in ["", "&format=ndjson", "&format=csv", "&format=arrow"] {
        let body = json!({"columns": ["id", "boom"]}).to_string();
        let reply = engine.rig.send(post(&format!("/v1/query?table=t{path}"), "application/json", body)).await;
        assert_eq!(reply.outcome(), (400, Some("clickhouse.rejected".into())), "{path}: {}", reply.text());
        assert_eq!(reply.value()["error"].as_str().unwrap().split(':').next(), Some("boom"), "{}", reply.text());
    }
    // one array is held whole before any of it is sent
    let engine = Engine::with(&[FAILS_LATE], many()).await;
    let reply = engine.query(json!({"columns": ["id", "boom"]})).await;
    assert_eq!(reply.outcome(), (400, Some("clickhouse.rejected".into())));
}
