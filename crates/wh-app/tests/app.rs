//! The application in this process, over its public interface: boot, what refuses it, and what a stop leaves.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step fails the test")]

use std::{error::Error, fs, path::Path, time::Duration};
use tempfile::TempDir;
use wh_app::{About, App, ListenError, Running, StartError};
use wh_config::{Config, Environment, load};
use wh_testkit::{clickhouse, http, until};

const ABOUT: About = About { name: "wavehouse", version: "0.0.0", commit: "test" };
const WAIT: Duration = Duration::from_secs(90);
const TABLE: &str = "CREATE TABLE events (id UInt64, note String) ENGINE = MergeTree ORDER BY id";
/// An address where nobody is.
const NOBODY: &str = "http://127.0.0.1:1";

/// A configuration on a free port with its data in `folder`.
fn config(folder: &Path, clickhouse: &str) -> Config {
    let file = folder.join("config.yaml");
    let (data, key) = (folder.join("data"), folder.join("key"));
    fs::write(&key, "old-key").unwrap();
    let text = format!(
        "data_dir: {data:?}\nauth: {{operator_key_file: {key:?}}}\ningest: {{batch_wait: 50ms}}\n\
         tenant_defaults: {{clickhouse: {{url: {clickhouse:?}}}, schema: {{refresh_interval: 1}}}}\n"
    );
    fs::write(&file, text).unwrap();
    let mut config = load(Some(&file), &Environment::default()).unwrap_or_else(|findings| panic!("{findings}")).config;
    config.server.port = 0;
    config
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn url(running: &Running, path: &str) -> String {
    format!("http://{}{path}", running.addr())
}

async fn status(running: &Running, path: &str) -> u16 {
    http::get(url(running, path)).send().await.unwrap().status.as_u16()
}

async fn post(running: &Running, ids: std::ops::Range<u64>) -> anyhow::Result<http::Reply> {
    let rows: Vec<_> = ids.map(|id| format!(r#"{{"id":{id},"note":"n"}}"#)).collect();
    http::post(url(running, "/v1/ingest?table=events"), rows.join("\n"))
        .header("content-type", "application/x-ndjson")
        .send()
        .await
}

async fn ready(running: &Running) {
    until(WAIT, "/readyz to be 200", || async {
        let reply = http::get(url(running, "/readyz")).send().await?;
        anyhow::ensure!(reply.status == 200, "{}", reply.text());
        Ok::<_, anyhow::Error>(())
    })
    .await
    .unwrap();
}

async fn stopped(mut running: Running) {
    running.stop();
    tokio::time::timeout(WAIT, running.wait()).await.expect("it does not stop").unwrap();
}

async fn engine() -> clickhouse::Server {
    let engine = clickhouse::Server::start().await.unwrap();
    engine.query(TABLE).await.unwrap();
    engine
}

async fn count(engine: &clickhouse::Server, what: &str) -> u64 {
    engine.query(&format!("SELECT {what} FROM events")).await.unwrap().trim().parse().unwrap()
}

/// An error with all its causes.
fn words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[tokio::test]
async fn a_taken_port_is_named_and_nothing_is_touched() {
    let folder = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config(folder.path(), NOBODY);
    config.server.port = taken.local_addr().unwrap().port();
    let error = App::start(config.clone(), ABOUT).await.unwrap_err();
    assert!(matches!(error, StartError::Listen(ListenError::Taken(_))), "{error:?}");
    assert!(error.to_string().contains(&config.server.port.to_string()), "{error}");
    assert!(!config.data_dir.exists(), "the port comes before the queue");
}

#[tokio::test]
async fn a_data_folder_that_cannot_be_used_is_named_and_the_port_is_given_back() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below"), "/proc/wavehouse".into()] {
        let mut config = config(folder.path(), NOBODY);
        config.data_dir.clone_from(&path);
        config.server.port = wh_testkit::free_port().unwrap();
        let error = App::start(config.clone(), ABOUT).await.unwrap_err();
        assert!(matches!(error, StartError::DataDir(_)), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        std::net::TcpListener::bind(("127.0.0.1", config.server.port)).unwrap();
    }
    // a file where the queue's folder goes
    let config = config(folder.path(), NOBODY);
    fs::create_dir_all(&config.data_dir).unwrap();
    fs::write(config.data_dir.join("queue"), "").unwrap();
    let error = App::start(config.clone(), ABOUT).await.unwrap_err();
    assert!(matches!(error, StartError::Queue { .. }), "{error:?}");
    assert!(words(&error).contains(config.data_dir.join("queue").to_str().unwrap()), "{}", words(&error));
}

#[tokio::test]
async fn a_second_application_on_the_same_data_is_refused_until_the_first_has_stopped() {
    let folder = folder();
    let config = config(folder.path(), NOBODY);
    let first = App::start(config.clone(), ABOUT).await.unwrap();
    let error = App::start(config.clone(), ABOUT).await.unwrap_err();
    assert!(words(&error).contains(&std::process::id().to_string()), "the owner is named: {}", words(&error));
    stopped(first).await;
    stopped(App::start(config, ABOUT).await.unwrap()).await;
}

#[tokio::test]
async fn without_clickhouse_it_lives_and_takes_rows_once_the_schema_is_known() {
    let mut engine = engine().await;
    engine.crash().unwrap();
    let folder = folder();
    let running = App::start(config(folder.path(), &engine.url()), ABOUT).await.unwrap();
    assert_eq!((status(&running, "/livez").await, status(&running, "/readyz").await), (200, 503));
    let refused = post(&running, 0..1).await.unwrap();
    assert_eq!((refused.status.as_u16(), refused.header("retry-after").is_some()), (503, true), "{}", refused.text());

    engine.restart().await.unwrap();
    ready(&running).await;
    assert_eq!(post(&running, 0..10).await.unwrap().status, 200);
    until(WAIT, "10 rows in ClickHouse", || async { (count(&engine, "count()").await == 10).then_some(()) })
        .await
        .unwrap();
    // the last one is counted once the insert has ended, which is after its rows can be seen
    let names = ["wavehouse_build_info{", "wavehouse_process_uptime_seconds ", "wavehouse_ingest_rows_inserted_total{"];
    until(WAIT, "the metrics to be there", || async {
        let metrics = http::get(url(&running, "/metrics")).send().await.unwrap();
        let text = metrics.text();
        names.iter().all(|name| text.contains(name)).then_some(())
    })
    .await
    .unwrap();
    stopped(running).await;
}

#[tokio::test]
async fn a_stop_ends_streams_and_inserts_what_was_accepted() {
    let engine = engine().await;
    let folder = folder();
    let mut config = config(folder.path(), &engine.url());
    // so long that only the stop flushes
    config.ingest.batch_wait = Duration::from_secs(600);
    let running = App::start(config, ABOUT).await.unwrap();
    ready(&running).await;
    let mut events = http::get(url(&running, "/v1/stream?table=events")).events().await.unwrap();
    assert_eq!(events.next(WAIT).await.unwrap().unwrap().kind, "ready");
    assert_eq!(post(&running, 0..100).await.unwrap().status, 200);
    assert_eq!(count(&engine, "count()").await, 0);
    let (addr, ()) = (running.addr(), stopped(running).await);
    let mut last = String::new();
    while let Some(event) = events.next(WAIT).await.unwrap() {
        last = event.kind;
    }
    assert_eq!(last, "end", "the stream is told");
    assert_eq!(count(&engine, "count()").await, 100);
    assert!(tokio::net::TcpStream::connect(addr).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn a_stop_under_load_loses_and_doubles_nothing_that_was_answered() {
    let engine = engine().await;
    let folder = folder();
    let config = config(folder.path(), &engine.url());
    let running = App::start(config.clone(), ABOUT).await.unwrap();
    ready(&running).await;
    let writer = |from: u64| {
        let running = &running;
        async move {
            let (mut accepted, mut next) = (0, from);
            while let Ok(reply) = post(running, next..next + 10).await {
                match reply.status.as_u16() {
                    200 => accepted += 10,
                    503 => break,
                    other => panic!("{other}: {}", reply.text()),
                }
                next += 10;
            }
            accepted
        }
    };
    let writers = futures::future::join_all((0..20_u64).map(|n| writer(n * 1_000_000)));
    let stop = async {
        until(WAIT, "1000 rows in ClickHouse", || async { (count(&engine, "count()").await >= 1_000).then_some(()) })
            .await
            .unwrap();
        running.stop();
    };
    let (accepted, ()) = tokio::join!(writers, stop);
    stopped(running).await;
    let accepted: u64 = accepted.into_iter().sum();

    let again = App::start(config, ABOUT).await.unwrap();
    until(WAIT, "every accepted row in ClickHouse", || async {
        let found = count(&engine, "uniqExact(id)").await;
        anyhow::ensure!(found >= accepted, "{found} of {accepted}");
        Ok::<_, anyhow::Error>(())
    })
    .await
    .unwrap();
    stopped(again).await;
    assert_eq!(count(&engine, "count()").await, count(&engine, "uniqExact(id)").await, "nothing is doubled");
}

#[tokio::test]
async fn a_changed_operator_key_counts_without_a_restart() {
    let folder = folder();
    let running = App::start(config(folder.path(), NOBODY), ABOUT).await.unwrap();
    let ask = |key: &str| {
        let request = http::get(url(&running, "/v1/ops/queue")).header("authorization", format!("Operator {key}"));
        async { request.send().await.unwrap().status.as_u16() }
    };
    assert_eq!((ask("old-key").await, ask("new-key").await, ask("").await), (200, 401, 401));
    fs::write(folder.path().join("key"), "new-key\n").unwrap();
    until(WAIT, "the new key to count", || async { (ask("new-key").await == 200).then_some(()) }).await.unwrap();
    assert_eq!(ask("old-key").await, 401);
    stopped(running).await;
}
