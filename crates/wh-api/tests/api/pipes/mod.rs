//! Pipes over the real engine.

mod calls;
mod kept;
mod kinds;
mod limits;
mod listing;
mod values;
mod writes;

use crate::{
    engine::Engine,
    rig::{Reply, Setup, get, post},
};
use serde_json::{Value, json};
use wh_api::PipeSet;

const TABLE: &str = "CREATE TABLE t (id UInt64, origin LowCardinality(String), delay Nullable(Int32), day Date, \
    at DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY id";
const ROWS: &str = "INSERT INTO t VALUES (1, 'DTW', -5, '2001-01-01', '2001-01-01 09:00:00.500'), \
    (2, 'ORD', NULL, '2001-01-02', '2001-01-02 09:00:00'), (3, 'O''Hare\\n', 30, '2001-01-03', '2001-01-03 09:00:00')";

/// An engine with a table and these pipes; who presents nothing is a viewer.
async fn engine(pipes: Value) -> Engine {
    with(pipes, &[TABLE, ROWS], Setup::default()).await
}

async fn with(pipes: Value, statements: &[&str], setup: Setup) -> Engine {
    let (pipes, warnings) = PipeSet::parse(json!({ "pipes": pipes }).to_string().as_bytes()).unwrap();
    assert_eq!(warnings, []);
    Engine::with(statements, Setup { pipes, default_role: Some("viewer".to_owned()), ..setup }).await
}

/// A pipe that viewers may run.
fn pipe(name: &str, sql: &str) -> Value {
    json!({"name": name, "sql": sql, "allowed_roles": ["viewer"]})
}

impl Engine {
    /// Runs a pipe, its values in the query string.
    async fn pipe(&self, path: &str) -> Reply {
        self.rig.send(get(&format!("/v1/pipes/{path}"))).await
    }

    /// Runs a pipe, its values in the body.
    async fn pipe_with(&self, path: &str, body: Value) -> Reply {
        self.rig.send(post(&format!("/v1/pipes/{path}"), "application/json", body.to_string())).await
    }

    /// What the engine itself says.
    async fn says(&self, sql: &str) -> String {
        self.database.query(sql).await.unwrap().trim().to_owned()
    }
}
