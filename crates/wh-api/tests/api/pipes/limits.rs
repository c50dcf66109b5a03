//! Whose bound it was that a pipe ran into: the pipe's own, or the server's.

use super::{pipe, with};
use crate::rig::{Reply, Rig, Setup, get};
use serde_json::{Value, json};
use std::time::Duration;
use wh_api::{PipeSet, TenantLimits};
use wh_clickhouse::{Client, Options};
use wh_testkit::{clickhouse::Server, until};

const ENDLESS: &str = "SELECT count() AS c FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))";
/// Holds some 100 MiB.
const HUNGRY: &str = "SELECT length(groupArray(number)) AS c FROM numbers(10000000) SETTINGS max_threads = 1";

/// Pipes over a server of the test's own, as one of its users.
async fn as_user(user: &str, pipes: Value) -> (Server, Rig) {
    let server = Server::start().await.unwrap();
    server.query("CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id").await.unwrap();
    let options = Options { url: server.url(), user: user.into(), password: Some(user.into()), ..Options::default() };
    let (pipes, _) = PipeSet::parse(json!({ "pipes": pipes }).to_string().as_bytes()).unwrap();
    let clickhouse = Client::new(options).unwrap();
    let rig = Rig::with(Setup { clickhouse, pipes, default_role: Some("viewer".into()), ..Setup::default() });
    (server, rig)
}

/// Runs a pipe until its answer is of this kind. A bound on time that ClickHouse notices very late, on a busy machine, is
/// told as trouble of the server's.
async fn answered(rig: &Rig, path: &str, status: u16, code: &str) -> Reply {
    let expected = (status, (status >= 400).then(|| code.to_owned()));
    until(Duration::from_secs(120), path, || async {
        let reply = rig.send(get(&format!("/v1/pipes/{path}"))).await;
        if reply.outcome() == expected { Ok(reply) } else { Err(reply.text().to_owned()) }
    })
    .await
    .unwrap()
}

async fn outcomes(rig: &Rig, expected: &[(&str, u16, &str)]) {
    for (name, status, code) in expected {
        answered(rig, name, *status, code).await;
    }
}

#[tokio::test]
async fn a_bound_of_the_servers_profile_is_the_servers_unless_the_pipe_has_a_lower_one() {
    // the profile of this user allows 50 MB and 1 s
    let pipes = json!([
        pipe("hungry", HUNGRY),
        bounded("lean", HUNGRY, "max_memory_usage", json!("10MiB")),
        bounded("quick", ENDLESS, "max_execution_time", json!(200)),
    ]);
    let (_server, rig) = as_user("small", pipes).await;
    let limit = "clickhouse.limit_exceeded";
    outcomes(&rig, &[("hungry", 503, "clickhouse.unavailable"), ("lean", 400, limit), ("quick", 400, limit)]).await;
}

#[tokio::test]
async fn what_our_user_may_not_do_is_the_operators_to_mend() {
    let pipes = json!([pipe("read", "SELECT count() FROM t"), pipe("write", "INSERT INTO t SELECT 1")]);
    let denied = "clickhouse.misconfigured";
    // one that may change nothing, no setting either, and one without grants here
    for user in ["ro", "ingest"] {
        let (server, rig) = as_user(user, pipes.clone()).await;
        outcomes(&rig, &[("read", 502, denied), ("write", 502, denied)]).await;
        assert_eq!(server.query("SELECT count() FROM t").await.unwrap().trim(), "0");
    }
}

fn bounded(name: &str, sql: &str, bound: &str, value: Value) -> Value {
    let mut all = pipe(name, sql);
    all[bound] = value;
    all
}

#[tokio::test]
async fn a_bound_on_time_of_the_pipes_own_is_400_and_the_servers_is_503() {
    let limits = TenantLimits { query_timeout: Duration::from_secs(1), ..TenantLimits::default() };
    let pipes = json!([
        bounded("short", ENDLESS, "max_execution_time", json!("200ms")),
        bounded("long", ENDLESS, "max_execution_time", json!("1h")),
        pipe("endless", ENDLESS),
    ]);
    let engine = with(pipes, &[], Setup { limits, ..Setup::default() }).await;
    for format in ["json", "ndjson"] {
        let reply = answered(&engine.rig, &format!("short?format={format}"), 400, "clickhouse.limit_exceeded").await;
        assert_eq!(reply.value()["error"], "the query took longer than its own timeout of 200ms");
        assert_eq!((reply.value()["retryable"].as_bool(), reply.header("retry-after")), (Some(false), None));
    }
    for name in ["endless", "long"] {
        let reply = engine.pipe(name).await;
        assert_eq!(reply.outcome(), (503, Some("clickhouse.unavailable".into())), "{name}: {}", reply.text());
        assert_eq!(reply.value()["error"], "the query took longer than 1s");
        assert_eq!((reply.value()["retryable"].as_bool(), reply.header("retry-after")), (Some(true), Some("5")));
    }
}

#[tokio::test]
async fn a_bound_on_memory_and_rows_of_the_pipes_own_is_400_and_another_is_503() {
    let pipes = json!([
        bounded("lean", HUNGRY, "max_memory_usage", json!("10MiB")),
        // as a profile of the server's would have it
        pipe("hungry", &format!("{HUNGRY}, max_memory_usage = 10000000")),
        bounded("narrow", "SELECT sum(number) FROM numbers(100000)", "max_rows_to_read", json!(1000)),
    ]);
    let engine = with(pipes, &[], Setup::default()).await;
    for (name, told) in [("lean", "the query needs more memory than it may use"), ("narrow", "rows")] {
        for format in ["json", "ndjson"] {
            let path = format!("{name}?format={format}");
            let reply = answered(&engine.rig, &path, 400, "clickhouse.limit_exceeded").await;
            assert!(reply.text().contains(told), "{name}: {}", reply.text());
            assert_eq!((reply.value()["retryable"].as_bool(), reply.header("retry-after")), (Some(false), None));
        }
    }
    let reply = answered(&engine.rig, "hungry", 503, "clickhouse.unavailable").await;
    assert_eq!(reply.value()["error"], "ClickHouse has not the memory for the query now");
}
