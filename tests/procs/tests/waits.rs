//! `?wait=committed` against the real process and the real engine: a client reads its own writes.

use procs::{System, TABLE, Writers};
use serde_json::{Value, json};
use std::time::Duration;
use wh_testkit::{clickhouse, http};

const WAIT: Duration = Duration::from_secs(60);

fn row(id: u64, note: &str) -> String {
    format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"{note}"}}"#)
}

async fn post(url: &str, body: String) -> http::Reply {
    let request = http::post(url.to_owned(), body).header("content-type", "application/x-ndjson").timeout(WAIT);
    request.send().await.unwrap()
}

/// How many rows with this note a query of the API gives.
async fn queried(system: &System, note: &str) -> u64 {
    let query = json!({ "columns": ["note"], "filters": [{ "column": "note", "op": "eq", "value": note }] });
    let reply = system.post_to("/v1/query?table=events", "application/json", query.to_string()).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text().matches(&format!("{note:?}")).count() as u64
}

#[tokio::test]
async fn what_was_said_to_be_committed_is_in_the_next_query_fifty_times_under_load() {
    let system = System::with("ingest: {batch_wait: 50ms}").await.unwrap();
    let writers = Writers::start(&system.url("/v1/ingest"), 4, 20);
    let url = system.url("/v1/ingest?table=events&wait=committed&timeout=30s");
    for n in 0..50 {
        let note = format!("own-{n}");
        let rows: Vec<String> = (0..3).map(|k| row(10_000_000 + n * 10 + k, &note)).collect();
        let reply = post(&url, rows.join("\n")).await;
        let answer: Value = reply.json().unwrap();
        assert_eq!((reply.status.as_u16(), &answer["committed"]), (200, &json!(3)), "{answer}");
        assert_eq!(answer["results"], json!([]), "{answer}");
        assert_eq!(queried(&system, &note).await, 3, "the rows of {note}");
    }
    writers.stop().await.unwrap();
}

#[tokio::test]
async fn a_refused_row_is_told_with_its_code_and_the_others_are_committed() {
    let engine = clickhouse::Server::start().await.unwrap();
    engine.query(TABLE).await.unwrap();
    // the schema does not know of it, so only the insert finds out
    engine.query("ALTER TABLE events ADD CONSTRAINT fine CHECK note != 'bad'").await.unwrap();
    let system = System::over(engine, "ingest: {batch_wait: 50ms}").await.unwrap();
    let rows = [row(1, "good"), row(2, "bad"), row(3, "good")].join("\n");
    let url = system.url("/v1/ingest?table=events&wait=committed&timeout=30s");
    let reply = post(&url, rows).await;
    let answer: Value = reply.json().unwrap();
    assert_eq!(reply.status, 207, "{answer}");
    assert_eq!((&answer["accepted"], &answer["committed"], &answer["parked"]), (&json!(3), &json!(2), &json!(1)));
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{answer}");
    // VIOLATED_CONSTRAINT
    assert_eq!(
        (&results[0]["index"], &results[0]["status"], &results[0]["code"]),
        (&json!(1), &json!("parked"), &json!("469")),
        "{answer}"
    );
    assert_eq!(queried(&system, "good").await, 2);

    // with all results, each has its place
    let reply = post(&format!("{url}&results=all"), row(4, "good")).await;
    let answer: Value = reply.json().unwrap();
    assert_eq!(answer["results"][0]["status"], "committed", "{answer}");
    let cursor = answer["results"][0]["cursor"].as_str().unwrap();
    assert!(cursor.parse::<wh_types::RowCursor>().is_ok(), "{cursor}");
}

#[tokio::test]
async fn while_clickhouse_is_away_rows_are_accepted_with_their_cursor() {
    let mut system = System::with("ingest: {batch_wait: 50ms}").await.unwrap();
    let url = system.url("/v1/ingest?table=events&wait=committed&timeout=500ms");
    system.engine.crash().unwrap();
    let reply = post(&url, [row(1, "later"), row(2, "later")].join("\n")).await;
    let answer: Value = reply.json().unwrap();
    assert_eq!(reply.status, 202, "{answer}");
    assert_eq!((&answer["accepted"], &answer["committed"]), (&json!(2), &json!(0)), "{answer}");
    let last = answer["cursor"].as_str().unwrap().parse::<wh_types::RowCursor>().unwrap();
    for (at, result) in answer["results"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&result["index"], &result["status"]), (&json!(at), &json!("accepted")), "{answer}");
        assert_eq!(result["cursor"].as_str().unwrap().parse::<wh_types::RowCursor>().unwrap().block, last.block);
    }
    system.engine.restart().await.unwrap();
    system.holds_ids(2, WAIT).await.unwrap();
    for bad in ["wait=stored", "wait=committed&timeout=31s", "timeout=5s"] {
        let reply = post(&system.url(&format!("/v1/ingest?table=events&{bad}")), row(3, "no")).await;
        assert_eq!((reply.status.as_u16(), reply.json().unwrap()["code"].clone()), (400, json!("request.invalid")));
    }
}
