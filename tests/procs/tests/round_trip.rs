//! The whole way once: posted, durable, inserted, queried, streamed.

use procs::System;
use serde_json::json;
use std::time::Duration;
use wh_testkit::http;

const WAIT: Duration = Duration::from_secs(90);

#[tokio::test]
async fn an_event_is_accepted_streamed_inserted_and_queried() {
    let system = System::start().await.unwrap();
    let mut stream = http::get(system.url("/v1/stream?table=events")).events().await.unwrap();
    assert_eq!(stream.next(WAIT).await.unwrap().unwrap().kind, "ready");

    let row = r#"{"id":18446744073709551615,"at":"2026-01-02 03:04:05.678","note":"größer > 2^63"}"#;
    let reply = system.post("application/json", row).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json().unwrap()["accepted"], 1);

    let event = stream.next(WAIT).await.unwrap().unwrap();
    assert_eq!((event.kind.as_str(), event.data.as_str()), ("row", row), "a row keeps its own text");
    assert!(event.id.unwrap().ends_with(".0"));

    system.holds_ids(1, WAIT).await.unwrap();
    let query = json!({"columns": ["id", "note"], "filters": [{"column": "id", "op": "gt", "value": 5}]});
    let reply = system.post_to("/v1/query?table=events", "application/json", query.to_string()).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(reply.text().contains("18446744073709551615"), "digits are exact: {}", reply.text());
    assert!(reply.text().contains("größer > 2^63"), "{}", reply.text());
}

#[tokio::test]
async fn the_stored_value_is_what_the_engine_stores_for_the_same_text() {
    let engine = wh_testkit::clickhouse::Server::start().await.unwrap();
    for table in ["ours", "theirs"] {
        let sql = format!(
            "CREATE TABLE {table} (id UInt64, a Nullable(Int32) DEFAULT 7, b Int32 DEFAULT 9, f Float64, d Decimal64(2), \
             t DateTime, s String, raw String EPHEMERAL, n UInt64 DEFAULT length(raw), m UInt64 MATERIALIZED id * 2) \
             ENGINE = MergeTree ORDER BY id"
        );
        engine.query(&sql).await.unwrap();
    }
    let rows = [
        r#"{"id":1,"f":5.54874E+7,"d":3.14,"t":"2001/01/01 00:47","s":"x"}"#,
        r#"{"id":2,"a":null,"b":null,"f":1e22,"d":"3","t":"2026-11-01T01:30:00Z","s":"y"}"#,
        r#"{"id":3,"f":5e-324,"d":1e2,"t":1750478400,"s":"é\u00e9\\","raw":"abc"}"#,
        r#"{"id":4,"f":1.7976931348623157e308,"d":-0.00,"t":"2026-01-01 00:00:00","s":""}"#,
    ];
    let columns = "id, a, b, f, d, t, s, raw, n";
    for row in rows {
        let sql = format!(
            "INSERT INTO theirs ({columns}) SETTINGS date_time_input_format='best_effort', \
             input_format_null_as_default=1, async_insert=0 FORMAT JSONEachRow {row}"
        );
        engine.query(&sql).await.unwrap();
    }
    let system = System::over(engine, "").await.unwrap();
    let reply = system.post_to("/v1/ingest?table=ours", "application/x-ndjson", rows.join("\n")).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    wh_testkit::until(WAIT, "all rows in the table", || async {
        let rows = system.number("SELECT count() FROM ours").await?;
        if rows == 4 { Ok(()) } else { anyhow::bail!("{rows} rows") }
    })
    .await
    .unwrap();
    let dump = |table: &str| {
        format!(
            "SELECT id, a, b, reinterpretAsUInt64(f), d, toUnixTimestamp(t), s, n, m FROM {table} ORDER BY id FORMAT TSV"
        )
    };
    let (ours, theirs) =
        (system.engine.query(&dump("ours")).await.unwrap(), system.engine.query(&dump("theirs")).await.unwrap());
    assert_eq!(ours, theirs);
    assert!(ours.contains("\t7\t9\t"), "an absent column takes its default: {ours}");
}
