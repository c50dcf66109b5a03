//! Pipes and kept answers: what is shared, for how long, and what ends it.

use super::{TABLE, pipe, with};
use crate::{
    engine::Engine,
    query::kept::keeping,
    rig::{Reply, get},
};
use futures::future::join_all;
use serde_json::{Value, json};

fn how(reply: &Reply) -> &str {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.header("x-cache").unwrap()
}

async fn kept(pipes: Value) -> Engine {
    with(pipes, &[TABLE, super::ROWS, "CREATE VIEW v AS SELECT id FROM t"], keeping()).await
}

#[tokio::test]
async fn an_answer_is_shared_by_who_asks_the_same() {
    let mut never = pipe("never", "SELECT count() AS n FROM t");
    never["cache_ttl"] = json!("0");
    let mut long = pipe("long", "SELECT generateUUIDv4() AS u");
    long["cache_ttl"] = json!("10m");
    let engine = kept(json!([pipe("ids", "SELECT id FROM t WHERE id > {min:UInt64} ORDER BY id"), never, long])).await;
    for (path, expected) in [
        ("ids?min=1", "MISS"),
        ("ids?min=1", "HIT"),
        ("ids?min=2", "MISS"),
        ("ids?min=1&numbers=string", "MISS"),
        ("ids?min=1&format=ndjson", "MISS"),
        ("ids?min=1&format=ndjson", "HIT"),
        ("never", "BYPASS"),
        ("never", "BYPASS"),
    ] {
        let reply = engine.pipe(path).await;
        assert_eq!(how(&reply), expected, "{path}");
        assert_eq!(reply.header("cache-control"), Some("no-cache"));
        assert_eq!(reply.header("age").is_some(), expected == "HIT");
    }
    assert_eq!(how(&engine.pipe_with("ids", json!({"min": 1})).await), "HIT", "however it is asked");
    let mut fresh = get("/v1/pipes/ids?min=1");
    fresh.headers_mut().insert("cache-control", "no-store".parse().unwrap());
    assert_eq!(how(&engine.rig.send(fresh).await), "BYPASS");
    let (one, other) = (engine.pipe("long").await, engine.pipe("long").await);
    assert_eq!((how(&one), how(&other), &one.body), ("MISS", "HIT", &other.body), "its own time, though it drifts");
}

#[tokio::test]
async fn a_pipe_is_computed_once_for_all_who_ask_at_the_same_time() {
    let engine = kept(json!([pipe("one", "SELECT generateUUIDv4() AS u, sleep(0.5) AS s")])).await;
    let all = join_all((0..30).map(|_| engine.pipe("one"))).await;
    assert!(all.iter().all(|reply| reply.body == all[0].body && how(reply) != "BYPASS"), "{all:?}");
}

#[tokio::test]
async fn whatever_writes_ends_what_was_read() {
    let engine = kept(json!([
        pipe("count", "SELECT count() AS n FROM v"),
        pipe("add", "INSERT INTO t (id) SELECT {id:UInt64}"),
        pipe("fail", "INSERT INTO t (id) SELECT throwIf({id:UInt64} > 0)"),
        pipe("forget", "ALTER TABLE t DELETE WHERE id = {id:UInt64} SETTINGS mutations_sync = 2"),
    ]))
    .await;
    let query = json!({"aggregations": [{"fn": "count", "alias": "n"}]});
    let mut n = 3;
    for (write, change) in [("", 0), ("add?id=7", 1), ("fail?id=1", 0), ("forget?id=7", -1)] {
        if !write.is_empty() {
            let reply = engine.pipe(write).await;
            assert_eq!(reply.status.as_u16(), if write.starts_with("fail") { 400 } else { 200 }, "{}", reply.text());
        }
        n += change;
        for expected in ["MISS", "HIT"] {
            let reply = engine.pipe("count").await;
            assert_eq!((how(&reply), reply.value()[0]["n"].as_i64()), (expected, Some(n)), "behind {write:?}");
            let reply = engine.query(query.clone()).await;
            assert_eq!((how(&reply), reply.value()[0]["n"].as_i64()), (expected, Some(n)), "behind {write:?}");
        }
    }
    assert_eq!(engine.sql("INSERT INTO t (id) VALUES (8)").await.status, 200);
    assert_eq!(engine.pipe("count").await.value()[0]["n"], n + 1);
}
