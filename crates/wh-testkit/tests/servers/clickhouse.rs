//! The ClickHouse engine: its life, its users, databases that tests share.

use std::time::Duration;
use wh_testkit::{
    clickhouse::{Database, Server, database},
    until_equal,
};

const SOON: Duration = Duration::from_secs(60);

async fn with_rows() -> Server {
    let server = Server::start().await.unwrap();
    server.query("CREATE TABLE e (a UInt64, s String) ENGINE = MergeTree ORDER BY a").await.unwrap();
    server.query("INSERT INTO e SELECT number, 'x' FROM numbers(10000)").await.unwrap();
    server
}

#[tokio::test]
async fn rows_survive_a_crash_and_a_restart_on_the_same_port() {
    let mut server = with_rows().await;
    let (url, port) = (server.url(), server.port());
    server.crash().unwrap();
    assert!(server.query("SELECT 1").await.is_err(), "its port refuses");
    server.restart().await.unwrap();
    assert_eq!((server.url(), server.port()), (url, port));
    assert_eq!(server.query("SELECT count() FROM e").await.unwrap(), "10000");
}

#[tokio::test]
async fn a_paused_server_hangs_and_a_resumed_one_answers() {
    let mut server = with_rows().await;
    server.pause().unwrap();
    let hanging = server.endpoint().request(None, "SELECT 1").timeout(Duration::from_millis(300)).send().await;
    assert!(format!("{:#}", hanging.unwrap_err()).contains("no answer in"));
    server.resume().unwrap();
    assert_eq!(server.query("SELECT count() FROM e").await.unwrap(), "10000");
}

#[tokio::test]
async fn a_stopped_server_keeps_a_folder_that_was_given_and_frees_its_port() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::options().dir(dir.path()).start().await.unwrap();
    let port = server.port();
    server.query("CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a").await.unwrap();
    server.query("INSERT INTO kept VALUES (7)").await.unwrap();
    server.stop().await.unwrap();
    let again = Server::options().dir(dir.path()).port(port).start().await.unwrap();
    assert_eq!(again.query("SELECT a FROM kept").await.unwrap(), "7");
}

#[tokio::test]
async fn a_dropped_server_is_gone_with_its_folder() {
    let server = Server::start().await.unwrap();
    let (endpoint, dir) = (server.endpoint(), server.dir().to_owned());
    drop(server);
    assert!(!endpoint.answers().await && !dir.exists());
}

#[tokio::test]
async fn the_users_have_the_limits_they_are_for() {
    let server = Server::start().await.unwrap();
    server.query("CREATE DATABASE app").await.unwrap();
    server.query("CREATE TABLE app.e (a UInt64) ENGINE = MergeTree ORDER BY a").await.unwrap();
    let code_of = |user: &'static str, sql: &'static str| {
        let endpoint = server.endpoint().user(user, user);
        async move {
            let reply = endpoint.request(None, sql).send().await.unwrap();
            reply.header("x-clickhouse-exception-code").map(str::to_owned)
        }
    };
    let code = |text: &str| Some(text.to_owned());
    assert_eq!(code_of("ro", "SELECT 1").await, None);
    assert_eq!(code_of("ro", "INSERT INTO app.e VALUES (1)").await, code("164"));
    assert_eq!(code_of("ingest", "INSERT INTO app.e VALUES (1)").await, None);
    assert_eq!(code_of("ingest", "CREATE TABLE app.f (a UInt8) ENGINE = Memory").await, code("497"));
    assert_eq!(code_of("small", "SELECT groupArray(number) FROM numbers(100000000)").await, code("241"));
    // reading no table is not counted against a quota
    for _ in 0..5 {
        assert_eq!(code_of("tiny", "SELECT a FROM app.e").await, None);
    }
    assert_eq!(code_of("tiny", "SELECT a FROM app.e").await, code("201"));
    assert_eq!(code_of("nobody", "SELECT 1").await, code("516"));
}

#[tokio::test]
async fn databases_on_a_shared_server_do_not_see_each_other() {
    let (one, two) = tokio::join!(database(), database());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.name(), two.name());
    one.query("CREATE TABLE e (a UInt8) ENGINE = MergeTree ORDER BY a").await.unwrap();
    one.query("INSERT INTO e VALUES (1)").await.unwrap();
    assert_eq!(one.query("SELECT count() FROM e").await.unwrap(), "1");
    let error = two.query("SELECT count() FROM e").await.unwrap_err().to_string();
    assert!(error.contains("UNKNOWN_TABLE") && error.contains("SELECT count() FROM e"), "{error}");
}

#[tokio::test]
async fn a_database_on_a_server_of_the_users_goes_with_its_value() {
    let server = Server::start().await.unwrap();
    let database = Database::on(server.endpoint()).await.unwrap();
    let there = format!("SELECT count() FROM system.databases WHERE name = '{}'", database.name());
    assert_eq!(server.query(&there).await.unwrap(), "1");
    drop(database);
    assert_eq!(server.query(&there).await.unwrap(), "0");
}

#[tokio::test]
async fn the_query_log_can_be_read() {
    let server = Server::start().await.unwrap();
    server.query("SELECT 'needle'").await.unwrap();
    let logged =
        "SELECT count() > 0 FROM system.query_log WHERE query = 'SELECT \\'needle\\'' AND type = 'QueryFinish'";
    // the table is made at the first flush
    let seen = || async { server.query(logged).await.unwrap_or_else(|error| error.to_string()) };
    until_equal(SOON, "the statement is logged", "1".to_owned(), seen).await.unwrap();
}
