//! Users with fewer rights, on a server of the test's own.

use crate::{insert, table};
use std::{sync::Arc, time::Duration};
use wh_clickhouse::{Client, Discovery, DiscoveryOptions, Failure, Options, Query, QueryFailure, RoleCaps};
use wh_testkit::clickhouse::Server;
use wh_types::{Class, Encoding, OsEntropy, Stop, SystemClock, Tasks, frame};

fn client(server: &Server, user: &str, password: &str) -> Client {
    Client::new(Options {
        url: server.url(),
        database: "app".into(),
        user: user.into(),
        password: Some(password.into()),
        ..Options::default()
    })
    .unwrap()
}

async fn server() -> Server {
    let server = Server::start().await.unwrap();
    for sql in ["CREATE DATABASE app", "CREATE TABLE app.t (id UInt64, s String) ENGINE = MergeTree ORDER BY id"] {
        server.query(sql).await.unwrap();
    }
    server
}

#[tokio::test]
async fn each_lack_of_rights_has_its_class() {
    let server = server().await;
    let row = &[r#"{"id":1}"#];
    for (user, password) in [("ro", "wrong-secret"), ("nobody", "wrong-secret")] {
        let error = insert(&client(&server, user, password), "t", row).await.unwrap_err();
        assert!(matches!(error.code(), Some(516 | 194 | 192 | 193)), "{error}");
        assert_eq!((error.failure(), error.class(), error.in_doubt()), (Failure::Denied, Class::Denied, false));
        assert_eq!(error.query_failure(RoleCaps::default()), QueryFailure::Misconfigured);
        assert!(!format!("{error} {error:?}").contains("wrong-secret"));
    }
    let error = insert(&client(&server, "ro", "ro"), "t", row).await.unwrap_err();
    assert_eq!((error.code(), error.failure()), (Some(164), Failure::Unavailable), "{error}");
    assert!(error.read_only_user() && error.message().contains("set its setting readonly to 0"), "{error}");

    server.query("CREATE DATABASE other").await.unwrap();
    server.query("CREATE TABLE other.t (id UInt64) ENGINE = Memory").await.unwrap();
    let ingest = client(&server, "ingest", "ingest");
    insert(&ingest, "t", row).await.unwrap();
    let error = ingest.query(Query::read("SELECT * FROM other.t")).await.unwrap_err();
    assert_eq!((error.code(), error.failure(), error.table_scoped()), (Some(497), Failure::Denied, true));
    assert_eq!(error.query_failure(RoleCaps::default()), QueryFailure::AccessDenied);

    let big = format!("{{\"id\":1,\"s\":\"{}\"}}\n", "x".repeat(1_000_000)).repeat(100);
    let frames = [frame::encode(Encoding::Zstd, big.as_bytes()).unwrap()];
    let error = client(&server, "small", "small").insert(crate::of(&table("t"), &frames)).await.unwrap_err();
    assert_eq!((error.code(), error.splittable()), (Some(241), true), "{error}");

    let tiny = client(&server, "tiny", "tiny");
    let mut used_up = None;
    for _ in 0..10 {
        used_up = used_up.or(insert(&tiny, "t", row).await.err());
    }
    let error = used_up.expect("a quota of 5 queries");
    assert_eq!((error.code(), error.failure()), (Some(201), Failure::Unavailable));
}

#[tokio::test]
async fn a_wrong_password_is_told_also_for_a_body_that_is_not_read() {
    let server = server().await;
    let big: String =
        (0..40_000_u64).map(|n| format!("{{\"id\":{n},\"s\":\"{:x}{:x}\"}}\n", n * n, n ^ 0xabcdef)).collect();
    let frames: Vec<_> = (0..40).map(|_| frame::encode(Encoding::Lz4, big.as_bytes()).unwrap()).collect();
    let t = table("t");
    let one = wh_clickhouse::Insert { encoding: Encoding::Lz4, ..crate::of(&t, &frames) };
    let error = client(&server, "ingest", "wrong").insert(one).await.unwrap_err();
    assert_eq!((error.code(), error.failure()), (Some(516), Failure::Denied), "{error:?}");
}

#[tokio::test]
async fn the_strictest_reader_reads_and_discovers() {
    let server = server().await;
    let (tasks, stop) = (Tasks::new(), Stop::new());
    let reader = client(&server, "ro", "ro");
    let options = DiscoveryOptions { retry_first: Duration::from_millis(10), ..DiscoveryOptions::default() };
    let schema =
        Discovery::start(reader.clone(), options, Arc::new(SystemClock), Arc::new(OsEntropy), &tasks, stop.clone());
    let seen = schema.refresh().await.unwrap();
    assert_eq!(seen.settings.value("readonly"), Some("1"));
    assert!(seen.user_fault().unwrap().contains("readonly to 0"));
    let writer = client(&server, "ingest", "ingest");
    let schema = Discovery::start(writer, options, Arc::new(SystemClock), Arc::new(OsEntropy), &tasks, stop.clone());
    assert_eq!(schema.refresh().await.unwrap().user_fault(), None);
    assert!(seen.table("t").is_some());
    let answer = reader.query(Query::read("SELECT 1").format("JSONEachRow")).await.unwrap();
    assert_eq!(answer.bytes(100).await.unwrap(), "{\"1\":1}\n", "none of our settings is refused");
    stop.give();
    tasks.wait().await;
}

#[tokio::test]
async fn a_new_password_counts_from_the_next_request_on_and_an_impossible_one_changes_nothing() {
    let (server, row) = (server().await, &[r#"{"id":1}"#]);
    let ingest = client(&server, "ingest", "old-secret");
    let clone = ingest.clone();
    assert_eq!(insert(&clone, "t", row).await.unwrap_err().class(), Class::Denied);
    ingest.set_password(Some("ingest".into())).unwrap();
    insert(&clone, "t", row).await.unwrap();
    assert!(!ingest.set_password(Some("hush\n".into())).unwrap_err().to_string().contains("hush"));
    insert(&clone, "t", row).await.unwrap();
}
