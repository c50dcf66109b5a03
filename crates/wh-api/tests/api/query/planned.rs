//! The same text, asked again: under another schema, in another form, at another time.

use super::{ROWS, TABLE};
use crate::{
    engine::Engine,
    rig::{Setup, post},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use wh_types::{Clock, Mono, SystemClock, Timestamp};

/// A wall clock that is set.
#[derive(Debug)]
struct Set(Mutex<Timestamp>);

impl Clock for Set {
    fn now(&self) -> Mono {
        SystemClock.now()
    }

    fn wall(&self) -> Timestamp {
        *self.0.lock()
    }
}

#[tokio::test]
async fn an_age_counts_from_the_time_of_each_asking() {
    let clock = Arc::new(Set(Mutex::new("2001-01-01T12:00:00Z".parse().unwrap())));
    let engine = Engine::with(&[TABLE, ROWS], Setup { clock: clock.clone(), ..Setup::default() }).await;
    let query = json!({"columns": ["id"], "time_range": {"column": "seen", "since": "24h"},
                       "order_by": [{"column": "id"}], "limit": 2});
    let ids = async || {
        let reply = engine.query(query.clone()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.value()
    };
    for (at, expected) in [
        ("2001-01-01T12:00:00Z", json!([{"id": 1}, {"id": 2}])),
        ("2001-01-02T12:00:00Z", json!([{"id": 2}, {"id": u64::MAX}])),
        ("2001-01-02T12:00:00Z", json!([{"id": 2}, {"id": u64::MAX}])),
        ("2001-01-03T12:00:00Z", json!([{"id": u64::MAX}])),
        ("2002-01-03T12:00:00Z", json!([])),
        ("2001-01-01T12:00:00Z", json!([{"id": 1}, {"id": 2}])),
    ] {
        *clock.0.lock() = at.parse().unwrap();
        assert_eq!(ids().await, expected, "{at}");
    }
    let until = json!({"columns": ["id"], "order_by": [{"column": "id"}],
                       "time_range": {"column": "seen", "since": "2001-01-01T00:00:00Z", "until": "0s"}});
    for (at, rows) in [("2001-01-01T12:00:00Z", 1), ("2001-01-02T12:00:00Z", 2), ("2001-01-03T12:00:00Z", 3)] {
        *clock.0.lock() = at.parse().unwrap();
        assert_eq!(engine.query(until.clone()).await.value().as_array().map(Vec::len), Some(rows), "{at}");
    }
}

#[tokio::test]
async fn a_changed_table_is_asked_as_it_is_now() {
    let tables =
        ["CREATE TABLE t (id UInt64, n Int32) ENGINE = MergeTree ORDER BY id", "INSERT INTO t VALUES (1, -7), (2, 10)"];
    let engine = Engine::new(&tables).await;
    let ask = async |form: &str, query: &Value| {
        let request = post(&format!("/v1/query?table=t&format={form}"), "application/json", query.to_string());
        let reply = engine.rig.send(request).await;
        (reply.status.as_u16(), reply.text().to_owned())
    };
    let query = json!({"columns": ["id", "n"], "filters": [{"column": "n", "op": "lt", "value": 5}],
                       "order_by": [{"column": "id"}]});
    for _ in 0..3 {
        assert_eq!(ask("json", &query).await, (200, r#"[{"id":1,"n":-7}]"#.to_owned()));
        assert_eq!(ask("ndjson", &query).await, (200, "{\"id\":1,\"n\":-7}\n".to_owned()));
        assert_eq!(ask("csv", &query).await, (200, "\"id\",\"n\"\n1,-7\n".to_owned()));
    }
    engine.sql("ALTER TABLE t MODIFY COLUMN n String SETTINGS mutations_sync = 2").await;
    engine.schema().refresh().await.unwrap();
    // as texts both are less than 5
    let texts = r#"[{"id":1,"n":"-7"},{"id":2,"n":"10"}]"#;
    for _ in 0..2 {
        assert_eq!(ask("json", &query).await, (200, texts.to_owned()));
    }
    engine.sql("ALTER TABLE t DROP COLUMN n SETTINGS mutations_sync = 2").await;
    engine.schema().refresh().await.unwrap();
    for _ in 0..2 {
        let (status, text) = ask("json", &query).await;
        assert!(status == 400 && text.contains("column.not_found"), "{status} {text}");
    }
}
