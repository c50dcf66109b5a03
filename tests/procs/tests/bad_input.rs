//! Bad input: each a clear answer, and nothing else lost.

use procs::System;
use std::time::Duration;
use wh_testkit::http::{self, Reply};

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

fn good(id: u64) -> String {
    format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"good"}}"#)
}

/// Status and code, and that the envelope is whole.
fn told(reply: &Reply) -> (u16, String) {
    let body = reply.json().unwrap();
    for key in ["error", "code", "retryable", "request_id"] {
        assert!(!body[key].is_null(), "{key} is missing in {body}");
    }
    (reply.status.as_u16(), body["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn each_fault_has_its_answer_and_good_rows_are_kept() {
    let system = System::start().await.unwrap();

    let reply = system.post(JSON, r#"{"id":1,"note":}"#).await.unwrap();
    assert_eq!(told(&reply), (400, "json.malformed".into()));
    assert!(reply.json().unwrap()["error"].as_str().unwrap().contains("15"), "the byte: {}", reply.text());

    let cut = format!("[{},{}", good(1), good(2));
    let reply = system.post(JSON, cut).await.unwrap();
    assert_eq!(told(&reply).0, 400, "an array cut before its end publishes nothing");

    let reply = system.post(JSON, format!("{}{}", good(1), good(2))).await.unwrap();
    assert_eq!(told(&reply), (400, "json.trailing".into()), "a second object is not dropped silently");

    let reply = system.post(NDJSON, format!("{}\n{}{}\n", good(3), good(4), good(5))).await.unwrap();
    let body = reply.json().unwrap();
    assert_eq!(reply.status, 207, "{body}");
    assert_eq!((body["accepted"].as_u64(), body["rejected"].as_u64()), (Some(1), Some(1)), "{body}");
    assert_eq!(
        (body["results"][0]["index"].as_u64(), body["results"][0]["code"].as_str()),
        (Some(1), Some("json.trailing"))
    );

    for content_type in ["text/plain", "application/xml"] {
        let reply = system.post(content_type, good(1)).await.unwrap();
        assert_eq!(told(&reply).0, 415, "{content_type}");
        assert!(reply.text().contains(NDJSON), "the accepted types are listed: {}", reply.text());
    }
    let reply = http::post(system.url("/v1/ingest?table=events"), good(1)).send().await.unwrap();
    assert_eq!(told(&reply).0, 415, "no Content-Type");

    let reply = system.post(NDJSON, vec![b' '; (16 << 20) + 1]).await.unwrap();
    assert_eq!(told(&reply).0, 413);

    let reply = system.post_to("/v1/ingest?table=nowhere", JSON, good(1)).await.unwrap();
    assert_eq!(told(&reply), (404, "table.not_found".into()));
    let reply = system.post_to("/v1/ingest", JSON, good(1)).await.unwrap();
    assert_eq!(told(&reply).0, 400, "no table");

    let batch = [
        good(6),
        r#"{"id":7,"at":"2026-01-01","note":"x","extra":1}"#.into(),
        r#"{"id":[7],"at":"2026-01-01","note":"x"}"#.into(),
        r#"{"id":7,"id":8,"at":"2026-01-01","note":"x"}"#.into(),
        r#"{"at":"2026-01-01","note":"x"}"#.into(),
        "[]".into(),
        good(9),
    ];
    let reply = system.post(NDJSON, batch.join("\n")).await.unwrap();
    let body = reply.json().unwrap();
    assert_eq!(
        (reply.status.as_u16(), body["accepted"].as_u64(), body["rejected"].as_u64()),
        (207, Some(2), Some(5)),
        "{body}"
    );
    let results = body["results"].as_array().unwrap();
    let codes = results.iter().map(|r| (r["index"].as_u64().unwrap(), r["code"].as_str().unwrap())).collect::<Vec<_>>();
    assert_eq!(
        codes,
        [
            (1, "column.not_found"),
            (2, "column.type"),
            (3, "json.duplicate_key"),
            (4, "column.required"),
            (5, "json.not_object")
        ]
    );
    assert_eq!(results[0]["column"], "extra");

    // 3 from the NDJSON line before, 6 and 9 from this batch, and nothing else
    system.holds_ids(3, Duration::from_secs(90)).await.unwrap();
    let ids = system.engine.query("SELECT groupArray(id) FROM (SELECT id FROM events ORDER BY id)").await.unwrap();
    assert_eq!(ids.trim(), "[3,6,9]");
    assert_eq!(system.sql("SELECT toUInt32(1) AS one").await.unwrap()[0]["one"], 1);
}

#[tokio::test]
async fn a_row_that_only_clickhouse_refuses_is_parked_and_the_rest_arrives() {
    let system = System::with("").await.unwrap();
    // the api's judge cannot tell whether a String is too long for a constraint; ClickHouse can
    system.engine.query("ALTER TABLE events ADD CONSTRAINT short CHECK length(note) < 20").await.unwrap();
    let rows = (1..=100).map(|id| match id {
        50 => format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"{}"}}"#, "x".repeat(30)),
        _ => good(id),
    });
    let reply = system.post(NDJSON, rows.collect::<Vec<_>>().join("\n")).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    system.holds_ids(99, Duration::from_secs(90)).await.unwrap();
    assert_eq!(system.number("SELECT count() FROM events").await.unwrap(), 99);
    let stats = http::get(system.url("/v1/ops/dlq/stats"))
        .header("authorization", "Operator an-operator-key")
        .send()
        .await
        .unwrap();
    assert_eq!(stats.json().unwrap()["total"], 1, "{}", stats.text());
}

#[tokio::test]
async fn ops_are_closed_without_the_key() {
    let system = System::start().await.unwrap();
    let sql = r#"{"sql":"SELECT 1"}"#;
    for key in [None, Some(""), Some("wrong")] {
        let mut request = http::post(system.url("/v1/ops/query"), sql).header("content-type", JSON);
        if let Some(key) = key {
            request = request.header("authorization", format!("Operator {key}"));
        }
        let reply = request.send().await.unwrap();
        assert_eq!(told(&reply).0, 401, "{key:?}");
    }
}
