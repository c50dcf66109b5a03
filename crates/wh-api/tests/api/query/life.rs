//! How long a query lives: bounds of time and whose they are, and clients that leave.

use super::wire;
use crate::{engine::Engine, rig::Setup};
use serde_json::json;
use std::time::Duration;
use wh_api::TenantLimits;
use wh_testkit::until_equal;
use wh_types::Tasks;

const SOON: Duration = Duration::from_secs(30);
/// Never ends by itself, and gives nothing.
const ENDLESS: &str =
    "CREATE VIEW t AS SELECT count() AS id FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))";
/// Never ends by itself, and gives rows all the time.
const ROWS: &str = "CREATE VIEW t AS SELECT number AS id, hex(rand64()) AS pad FROM numbers(1000000000000)";

async fn running(engine: &Engine) -> String {
    let name = engine.database.name();
    let sql =
        format!("SELECT count() FROM system.processes WHERE current_database = '{name}' AND query LIKE 'SELECT `id`%'");
    engine.database.query(&sql).await.unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_bound_on_time_is_the_askers_fault_where_it_is_the_askers_own() {
    let limits = TenantLimits { query_timeout: Duration::from_secs(1), ..TenantLimits::default() };
    let engine = Engine::with(&[ENDLESS], Setup { limits, ..Setup::default() }).await;
    let reply = engine.query(json!({"columns": "id", "timeout": "200ms"})).await;
    assert_eq!(reply.outcome(), (400, Some("clickhouse.limit_exceeded".into())), "{}", reply.text());
    assert!(reply.text().contains("its own timeout of 200ms"), "{}", reply.text());
    for query in [json!({"columns": "id"}), json!({"columns": "id", "timeout": "1h"})] {
        let reply = engine.query(query).await;
        assert_eq!(reply.outcome(), (503, Some("clickhouse.unavailable".into())), "{}", reply.text());
        assert_eq!(reply.header("retry-after"), Some("5"));
        assert_eq!(reply.value()["error"], "the query took longer than 1s");
    }
    for timeout in ["0s", "1us", "soon", "-1s", ""] {
        let reply = engine.query(json!({"columns": "id", "timeout": timeout})).await;
        assert_eq!(reply.outcome(), (400, Some("query.invalid".into())), "{timeout}");
        assert!(reply.text().contains("\\\"timeout\\\" is a time"), "{}", reply.text());
    }
    until_equal(SOON, "running queries", "0".to_owned(), || running(&engine)).await.unwrap();
}

#[tokio::test]
async fn a_query_whose_client_left_stops_in_clickhouse() {
    for (view, path, query) in [
        (ENDLESS, "", r#"{"columns":["id"]}"#),
        (ENDLESS, "&format=ndjson", r#"{"columns":["id"]}"#),
        (ROWS, "&format=ndjson", r#"{"columns":["id","pad"]}"#),
        (ROWS, "&format=csv", r#"{"columns":["id","pad"]}"#),
    ] {
        let limits = TenantLimits {
            max_result_rows: 1 << 40,
            query_timeout: Duration::from_secs(600),
            ..TenantLimits::default()
        };
        let engine = Engine::with(&[view], Setup { limits, ..Setup::default() }).await;
        let tasks = Tasks::new();
        let address = wire::serve(&engine.rig, &tasks).await;
        let client = wire::send(address, path, query).await;
        until_equal(SOON, "running queries", "1".to_owned(), || running(&engine)).await.unwrap();
        drop(client);
        until_equal(SOON, "running queries", "0".to_owned(), || running(&engine)).await.unwrap();
    }
}

#[tokio::test]
async fn a_missing_grant_is_the_operators_to_give() {
    let engine = Engine::new(&["CREATE TABLE t (id UInt64) ENGINE = Memory"]).await;
    engine.database.query("DROP TABLE t").await.unwrap();
    let reply = engine.query(json!({"columns": "id"})).await;
    assert_eq!(reply.outcome(), (400, Some("clickhouse.rejected".into())), "the table went away: {}", reply.text());
    assert!(!reply.text().contains(engine.database.name()), "{}", reply.text());
}
