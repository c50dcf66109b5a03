//! Kept and shared answers over the real engine.

use super::{ROWS, TABLE, wire};
use crate::{
    engine::Engine,
    rig::{Reply, Setup, post},
};
use futures::future::join_all;
use http::Request;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use wh_api::{AnswerCache, Invalidation, TenantLimits};
use wh_cache::{Cache, memory};
use wh_clickhouse::{Client, Options, Relations};
use wh_testkit::until_equal;
use wh_types::{Clock, Mono, SystemClock, Tasks, Tenant, Timestamp};

const SOON: Duration = Duration::from_secs(60);

/// No time passes: what is kept stays until it is ended, however slow the machine is.
#[derive(Debug)]
struct Still(Mono);

impl Clock for Still {
    fn now(&self) -> Mono {
        self.0
    }

    fn wall(&self) -> Timestamp {
        SystemClock.wall()
    }
}

fn cache() -> AnswerCache {
    let store = memory::Cache::new(memory::Options::new(Arc::new(Still(SystemClock.now())))).unwrap();
    let store: Arc<dyn Cache> = Arc::new(store);
    AnswerCache { store, max_value_bytes: 1 << 20, longest: Duration::from_secs(3_600), by_marks: false }
}

pub(crate) fn keeping() -> Setup {
    Setup { cache: Some(cache()), ..Setup::default() }
}

async fn ask(engine: &Engine, path: &str, query: &Value, control: Option<&str>) -> Reply {
    let (mut head, body) = post(&format!("/v1/query?{path}"), "application/json", query.to_string()).into_parts();
    if let Some(control) = control {
        head.headers.insert("cache-control", control.parse().unwrap());
    }
    let reply = engine.rig.send(Request::from_parts(head, body)).await;
    assert_eq!(reply.status, 200, "{path} {query}: {}", reply.text());
    reply
}

/// How an answer came about, and what it says.
fn seen(reply: &Reply) -> (&str, &[u8]) {
    let how = reply.header("x-cache").unwrap();
    assert_eq!(reply.header("age").is_some(), how == "HIT", "{:?}", reply.headers);
    (how, &reply.body)
}

#[tokio::test]
async fn every_form_is_kept_and_given_again_byte_for_byte() {
    let engine = Engine::with(&[TABLE, ROWS], keeping()).await;
    let query = json!({"columns": ["id", "origin", "big"], "order_by": [{"column": "id"}]});
    let mut bodies = Vec::new();
    for form in ["format=json", "format=ndjson", "format=csv", "format=arrow", "format=json&numbers=string"] {
        let path = format!("table=t&{form}");
        let first = ask(&engine, &path, &query, None).await;
        assert_eq!(seen(&first).0, "MISS", "{form}: it is another form's");
        let again = ask(&engine, &path, &query, None).await;
        assert_eq!(seen(&again), ("HIT", &*first.body), "{form}");
        assert_eq!(again.header("content-type"), first.header("content-type"));
        bodies.push(first.body);
    }
    let other = json!({"columns": ["id", "origin", "big"], "order_by": [{"column": "id"}], "timeout": "5s"});
    assert_eq!(seen(&ask(&engine, "table=t", &other, None).await), ("HIT", &*bodies[0]), "its time is no part of it");
}

#[tokio::test]
async fn a_client_chooses_and_cut_answers_are_not_kept() {
    let limits = TenantLimits { max_result_rows: 2, ..TenantLimits::default() };
    let engine = Engine::with(&[TABLE, ROWS], Setup { limits, ..keeping() }).await;
    let cut = json!({"columns": "id"});
    for _ in 0..2 {
        let reply = ask(&engine, "table=t", &cut, None).await;
        assert_eq!((seen(&reply).0, reply.header("x-truncated")), ("MISS", Some("rows=2")));
    }
    let page = json!({"columns": "id", "order_by": [{"column": "id"}], "limit": 1, "cursor": ""});
    let first = ask(&engine, "table=t", &page, None).await;
    let again = ask(&engine, "table=t", &page, None).await;
    assert_eq!((seen(&first).0, seen(&again).0), ("MISS", "HIT"));
    assert!(first.header("x-next-cursor").is_some());
    assert_eq!(first.header("x-next-cursor"), again.header("x-next-cursor"));
    for (control, how) in [("no-store", "BYPASS"), ("no-cache", "MISS"), ("max-age=60", "HIT"), ("max-age=0", "MISS")] {
        assert_eq!(seen(&ask(&engine, "table=t", &page, Some(control)).await).0, how, "{control}");
    }
}

#[tokio::test]
async fn an_operators_sql_ends_answers_and_its_reads_do_not() {
    let engine = Engine::with(&["CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id"], keeping()).await;
    let count = json!({"aggregations": [{"fn": "count", "alias": "n"}]});
    let n = async || {
        let reply = ask(&engine, "table=t", &count, None).await;
        (seen(&reply).0.to_owned(), reply.text().to_owned())
    };
    let was = |how: &str, n: u32| (how.to_owned(), format!("[{{\"n\":{n}}}]"));
    assert_eq!(n().await, was("MISS", 0));
    assert!(engine.sql("SELECT count() FROM t").await.status.is_success());
    assert_eq!(n().await, was("HIT", 0));
    assert!(engine.sql("INSERT INTO t VALUES (1), (2)").await.status.is_success());
    assert_eq!(n().await, was("MISS", 2));
    assert!(engine.sql("ALTER TABLE t DELETE WHERE id = 1 SETTINGS mutations_sync = 2").await.status.is_success());
    assert_eq!(n().await, was("MISS", 1));
    assert_eq!(n().await, was("HIT", 1));
    assert_eq!(engine.sql("INSERT INTO t SELECT throwIf(1)").await.status, 400);
    assert_eq!(n().await.0, "MISS", "one that failed may have stored some");
}

#[tokio::test]
async fn an_insert_ends_answers_of_everything_that_stands_on_its_table() {
    let engine = Engine::with(
        &[
            "CREATE TABLE s (id UInt64) ENGINE = MergeTree ORDER BY id",
            "CREATE TABLE target (id UInt64) ENGINE = MergeTree ORDER BY id",
            "CREATE MATERIALIZED VIEW pushed TO target AS SELECT id FROM s",
            "CREATE VIEW seen AS SELECT id FROM s WHERE id IN (SELECT id FROM target)",
            "CREATE VIEW twice AS SELECT id FROM seen",
            "CREATE TABLE merged AS s ENGINE = Merge(currentDatabase(), '^s$')",
            "CREATE TABLE u (id UInt64) ENGINE = MergeTree ORDER BY id",
            "CREATE TABLE held AS u ENGINE = Buffer(currentDatabase(), u, 1, 10, 100, 10, 100, 1000, 10000)",
            "CREATE TABLE spread AS s ENGINE = Distributed('here', currentDatabase(), s)",
            "CREATE TABLE alone (id UInt64) ENGINE = MergeTree ORDER BY id",
        ],
        keeping(),
    )
    .await;
    let store = Arc::clone(&engine.cache().store);
    let client = engine.client();
    let relations = Relations::new(client.clone(), engine.schema().clone());
    let invalidation = Invalidation::new(store, [(Tenant::default(), &client)]);
    let count = json!({"aggregations": [{"fn": "count", "alias": "n"}]});
    for rows in 0..3 {
        for table in ["s", "target", "pushed", "seen", "twice", "merged", "held", "spread"] {
            let expected = format!("[{{\"n\":{rows}}}]");
            let first = ask(&engine, &format!("table={table}"), &count, None).await;
            assert_eq!((seen(&first).0, first.text()), ("MISS", &*expected), "{table} after {rows} inserts");
            let again = ask(&engine, &format!("table={table}"), &count, None).await;
            assert_eq!((seen(&again).0, again.text()), ("HIT", &*expected), "{table} after {rows} inserts");
        }
        let alone = ask(&engine, "table=alone", &count, None).await;
        assert_eq!(seen(&alone).0, if rows == 0 { "MISS" } else { "HIT" }, "nothing stands on it");
        for table in ["s", "held"] {
            engine.database.query(&format!("INSERT INTO {table} VALUES ({rows})")).await.unwrap();
            invalidation.wrote(&client, &relations, table).await;
        }
    }
}

#[tokio::test]
async fn a_thousand_identical_queries_reach_clickhouse_once() {
    let view = "CREATE VIEW t AS SELECT max(sipHash64(number)) AS id FROM numbers(50000000)";
    let engine = Engine::with(&[view], keeping()).await;
    let query = json!({"columns": "id"});
    let replies = join_all((0..1_000).map(|_| ask(&engine, "table=t", &query, None))).await;
    let first = &replies[0].body;
    assert!(replies.iter().all(|reply| reply.body == first), "all have the same answer");
    let name = engine.database.name();
    let sql = format!(
        "SELECT count() FROM system.query_log WHERE type = 'QueryFinish' AND current_database = '{name}' AND query LIKE \
         'SELECT `id` FROM `t`%'"
    );
    let reached = async || {
        engine.database.query("SYSTEM FLUSH LOGS").await.unwrap();
        engine.database.query(&sql).await.unwrap().trim().to_owned()
    };
    until_equal(SOON, "queries in the log", "1".to_owned(), reached).await.unwrap();
}

#[tokio::test]
async fn a_shared_query_ends_when_the_last_of_its_clients_has_left() {
    let endless =
        "CREATE VIEW t AS SELECT count() AS id FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))";
    let limits = TenantLimits { query_timeout: Duration::from_secs(600), ..TenantLimits::default() };
    let engine = Engine::with(&[endless], Setup { limits, ..keeping() }).await;
    let tasks = Tasks::new();
    let address = wire::serve(&engine.rig, &tasks).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(wire::send(address, "", r#"{"columns":["id"]}"#).await);
    }
    let name = engine.database.name();
    let sql = format!(
        "SELECT count() FROM system.processes WHERE current_database = '{name}' AND query LIKE 'SELECT `id` FROM%'"
    );
    let running = async || engine.database.query(&sql).await.unwrap().trim().to_owned();
    until_equal(SOON, "running queries", "1".to_owned(), running).await.unwrap();
    drop(clients);
    until_equal(SOON, "running queries", "0".to_owned(), running).await.unwrap();
}

#[tokio::test]
async fn a_broken_stream_is_not_kept_and_no_answer_is_the_other_tenants() {
    let broken = "CREATE VIEW t AS SELECT number AS id, throwIf(number = 3000000) AS x FROM numbers(4000000)";
    let limits = TenantLimits { max_result_rows: 1 << 40, ..TenantLimits::default() };
    let engine =
        Engine::with(&[broken, "CREATE TABLE u (id UInt64) ENGINE = Memory"], Setup { limits, ..keeping() }).await;
    let query = json!({"columns": ["id", "x"], "filters": [{"column": "id", "op": "gte", "value": 2999990}]});
    for _ in 0..2 {
        let request = post("/v1/query?table=t&format=ndjson", "application/json", query.to_string());
        let response = engine.rig.raw(request).await;
        let how = response.headers().get("x-cache").cloned();
        assert!(how.is_none_or(|how| how == "MISS"), "it was kept");
        // to its end, whatever that is
        http_body_util::BodyExt::collect(response.into_body()).await.ok();
    }
    let count = json!({"aggregations": [{"fn": "count"}]});
    assert_eq!(seen(&ask(&engine, "table=u", &count, None).await).0, "MISS");
    let (mut head, body) = post("/v1/query?table=u", "application/json", count.to_string()).into_parts();
    head.headers.insert("x-tenant-id", "acme".parse().unwrap());
    let other = engine.rig.send(Request::from_parts(head, body)).await;
    assert_eq!(seen(&other).0, "MISS", "an answer is its tenant's");
}

#[tokio::test]
async fn how_far_a_table_was_is_told_and_kept_with_its_answer() {
    let engine =
        Engine::with(&["CREATE TABLE t (id UInt64) ENGINE = Memory", "CREATE VIEW v AS SELECT id FROM t"], keeping())
            .await;
    let count = json!({"aggregations": [{"fn": "count"}]});
    let first = ask(&engine, "table=t", &count, None).await;
    let told = |reply: &Reply| ["x-wh-committed", "x-wh-inserting"].map(|name| reply.header(name).map(str::to_owned));
    let seam = told(&first);
    assert!(seam[0].is_some() && seam[0] == seam[1], "nothing is under way: {seam:?}");
    assert_eq!(told(&ask(&engine, "table=t", &count, None).await), seam, "the answer is as old as it is");
    assert_eq!(told(&ask(&engine, "table=v", &count, None).await), [None, None], "a view has no rows of its own");
    let streamed = told(&ask(&engine, "table=t&format=csv", &count, None).await);
    assert_eq!(streamed, [seam[0].clone(), None], "its end is not known when it begins");
}

impl Engine {
    fn client(&self) -> Client {
        let endpoint = self.database.endpoint();
        Client::new(Options {
            url: endpoint.url().into(),
            database: self.database.name().into(),
            user: endpoint.user_name().into(),
            password: Some(endpoint.password().into()),
            ..Options::default()
        })
        .unwrap()
    }
}
