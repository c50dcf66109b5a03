//! What a statement is: ClickHouse's word, and what becomes of each kind.

use super::{Engine, engine, pipe};
use serde_json::{Value, json};

/// Statements that only read, in many forms.
const READS: &[&str] = &[
    "SELECT 1 AS x",
    "(SELECT 1 AS x)",
    "WITH 1 AS y SELECT y AS x",
    "WITH c AS (SELECT 1 AS x) SELECT x FROM c",
    "FROM t SELECT id AS x",
    "SELECT 1 AS x UNION ALL SELECT 2",
    "SELECT 1 AS x INTERSECT SELECT 1",
    "/* INSERT INTO t */ SELECT 1 AS x -- DROP TABLE t",
    "SELECT 1 AS x;",
    "SELECT 1 AS x # a comment at the end",
    "SELECT 'INSERT INTO t VALUES' AS x",
    "\u{feff}SELECT 1 AS x",
    "SHOW TABLES",
    "DESCRIBE TABLE t",
    "EXPLAIN SELECT 1",
    "EXISTS TABLE t",
    "SHOW CREATE TABLE t",
];

/// Statements that write, as `upstream-faults` and #386 have them, each of one row or one change.
const INSERTS: &[&str] = &[
    "INSERT INTO w SELECT 1",
    "INSERT INTO w VALUES (1)",
    "INSERT INTO w (id) VALUES (1);",
    "/* a /* b */ SELECT */ INSERT INTO w SELECT 1",
    "\u{feff}INSERT INTO w SELECT 1",
    "// SELECT\nINSERT INTO w SELECT 1",
    "# SELECT\nINSERT INTO w SELECT 1",
    "WITH 1 AS select INSERT INTO w SELECT select",
    "WITH c AS (SELECT 1 AS id) INSERT INTO w SELECT id FROM c",
    "INSERT INTO w FORMAT JSONEachRow {\"id\": 1}",
    "insert into w select number + 1 from numbers(1)",
];

async fn kind(engine: &Engine, name: &str) -> Value {
    let reply = engine.rig.send(crate::rig::keyed(crate::rig::get(&format!("/v1/ops/pipes/{name}")))).await;
    reply.value()["kind"].clone()
}

#[tokio::test]
async fn what_reads_is_read() {
    let pipes = READS.iter().enumerate().map(|(at, sql)| pipe(&format!("r{at}"), sql));
    let engine = engine(pipes.collect()).await;
    for (at, sql) in READS.iter().enumerate() {
        let name = format!("r{at}");
        assert_eq!(kind(&engine, &name).await, Value::Null, "nobody asked yet");
        let reply = engine.pipe(&name).await;
        assert_eq!(reply.status, 200, "{sql}: {}", reply.text());
        assert!(!reply.value().as_array().unwrap().is_empty(), "{sql}: {}", reply.text());
        assert_eq!(kind(&engine, &name).await, "read", "{sql}");
    }
}

#[tokio::test]
async fn what_inserts_does_so_once_a_call() {
    let pipes = INSERTS.iter().enumerate().map(|(at, sql)| pipe(&format!("w{at}"), sql));
    let engine = engine(pipes.collect()).await;
    for (at, sql) in INSERTS.iter().enumerate() {
        engine.says("DROP TABLE IF EXISTS w SYNC").await;
        engine.says("CREATE TABLE w (id UInt64) ENGINE = MergeTree ORDER BY id").await;
        for calls in 1..=2 {
            let reply = engine.pipe_with(&format!("w{at}"), json!({})).await;
            assert_eq!((reply.status.as_u16(), reply.text()), (200, "[]"), "{sql}");
            assert_eq!((reply.header("x-cache"), reply.header("cache-control")), (Some("BYPASS"), Some("no-store")));
            assert_eq!(engine.says("SELECT count() FROM w WHERE id = 1").await, calls.to_string(), "{sql}");
        }
        assert_eq!(kind(&engine, &format!("w{at}")).await, "write", "{sql}");
    }
}

#[tokio::test]
async fn definitions_and_mutations_write() {
    let statements = [
        "CREATE TABLE made (id UInt64) ENGINE = Memory",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS more UInt8",
        "ALTER TABLE t DELETE WHERE id = 1 SETTINGS mutations_sync = 1",
        "DELETE FROM t WHERE id = 2",
        "OPTIMIZE TABLE t FINAL",
        "RENAME TABLE made TO renamed",
        "TRUNCATE TABLE renamed",
        "DROP TABLE renamed",
        "SYSTEM FLUSH LOGS",
        "SET max_threads = 1",
        "KILL QUERY WHERE query_id = 'nobody' SYNC",
    ];
    let pipes = statements.iter().enumerate().map(|(at, sql)| pipe(&format!("d{at}"), sql));
    let engine = engine(pipes.collect()).await;
    for (at, sql) in statements.iter().enumerate() {
        let reply = engine.pipe_with(&format!("d{at}"), json!({})).await;
        assert_eq!((reply.status.as_u16(), reply.text()), (200, "[]"), "{sql}: {}", reply.text());
        assert_eq!(kind(&engine, &format!("d{at}")).await, "write", "{sql}");
    }
    assert_eq!(engine.says("SELECT groupArray(id) FROM t").await, "[3]");
}

#[tokio::test]
async fn a_statement_that_is_taken_for_a_read_cannot_write() {
    let engine = engine(json!([pipe("r", "SELECT 1 AS x SETTINGS readonly = 0")])).await;
    let reply = engine.pipe("r").await;
    assert_ne!(reply.status, 200, "it may not lift what it runs under: {}", reply.text());
}
