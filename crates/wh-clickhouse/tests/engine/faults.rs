//! What the network and proxies do: each fault has its kind, and only what may have happened is in doubt.

use crate::{Rig, insert};
use bytes::Bytes;
use std::time::Duration;
use wh_clickhouse::{Client, Error, Failure, Kind, Options, Query, QueryFailure, RoleCaps};
use wh_testkit::{
    fault::{Action, Proxy, Rule},
    free_port, until_equal,
};
use wh_types::{Class, Tasks};

const PATIENCE: Duration = Duration::from_secs(20);

async fn behind_proxy() -> (Rig, Proxy, Client) {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id").await;
    let proxy = Proxy::start(rig.database.url()).await.unwrap();
    let client = rig.through(proxy.url(), PATIENCE);
    (rig, proxy, client)
}

async fn read(client: &Client, sql: &str) -> Result<Bytes, Error> {
    client.query(Query::read(sql)).await?.bytes(1 << 20).await
}

#[tokio::test]
async fn without_faults_a_proxy_changes_nothing() {
    let (rig, _proxy, client) = behind_proxy().await;
    insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap();
    assert_eq!(read(&client, "SELECT * FROM t").await.unwrap(), "1\n");
    assert_eq!(rig.sql("SELECT * FROM t").await, "1");
    client.ping().await.unwrap();
}

#[tokio::test]
async fn an_insert_whose_answer_is_lost_is_unknown_and_was_done() {
    let (rig, proxy, client) = behind_proxy().await;
    proxy.add(Rule::insert(Action::DropReply).times(1));
    let error = insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap_err();
    assert_eq!((error.kind(), error.class(), error.failure()), (Kind::Lost, Class::Unknown, Failure::Unknown));
    assert!(error.in_doubt(), "{error:?}");
    assert_eq!(rig.sql("SELECT count() FROM t").await, "1", "that is why");
    insert(&client, "t", &[r#"{"id":2}"#]).await.unwrap();
}

#[tokio::test]
async fn an_insert_that_hangs_is_unknown_after_its_time() {
    let (rig, proxy, _) = behind_proxy().await;
    proxy.add(Rule::insert(Action::Hang));
    let impatient = rig.through(proxy.url(), Duration::from_millis(300));
    let error = insert(&impatient, "t", &[r#"{"id":1}"#]).await.unwrap_err();
    assert_eq!((error.kind(), error.class(), error.failure()), (Kind::Timeout, Class::Unknown, Failure::Unknown));
    assert_eq!(error.query_failure(RoleCaps::default()), QueryFailure::Unavailable);
}

#[tokio::test]
async fn a_reset_is_unknown_and_a_refused_connection_is_not() {
    let (_rig, proxy, client) = behind_proxy().await;
    let reset = proxy.add(Rule::any(Action::Reset));
    let error = insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (Kind::Lost, Class::Unknown), "{error:?}");
    let error = read(&client, "SELECT 1").await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (Kind::Lost, Class::Unavailable), "a read changed nothing");
    proxy.remove(reset);
    proxy.down().await;
    for _ in 0..3 {
        let error = insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.class(), error.failure()),
            (Kind::Connect, Class::Unavailable, Failure::Unavailable)
        );
        assert!(!error.in_doubt() && error.message().contains("refused"), "{error}");
    }
    proxy.up().await.unwrap();
    insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap();
}

#[tokio::test]
async fn a_name_that_does_not_resolve_and_a_port_nobody_has_are_unavailable() {
    for url in ["http://no-such-host.invalid:8123".into(), format!("http://127.0.0.1:{}", free_port().unwrap())] {
        let client = Client::new(Options { url, ..Options::default() }).unwrap();
        let error = insert(&client, "t", &["{}"]).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.class(), error.in_doubt()),
            (Kind::Connect, Class::Unavailable, false),
            "{error}"
        );
        assert_eq!(client.ping().await.unwrap_err().kind(), Kind::Connect);
    }
}

#[tokio::test]
async fn proxies_that_answer_for_themselves_go_by_their_status() {
    let (rig, proxy, client) = behind_proxy().await;
    let page = "<html>Code: 27. DB::Exception: quoted</html>";
    for (status, failure, class, doubt) in [
        (502, Failure::Unavailable, Class::Unknown, true),
        (503, Failure::Unavailable, Class::Unavailable, false),
        (504, Failure::Unavailable, Class::Unknown, true),
        (429, Failure::Unavailable, Class::Unavailable, false),
        (413, Failure::Rejected, Class::Invalid, false),
        (401, Failure::Denied, Class::Denied, false),
        (500, Failure::Unknown, Class::Unknown, true),
        (404, Failure::Unknown, Class::Denied, false),
        (302, Failure::Unknown, Class::Denied, false),
    ] {
        let rule = proxy.add(Rule::insert(Action::Status { status, body: page.into() }));
        let error = insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap_err();
        assert_eq!((error.kind(), error.status(), error.code()), (Kind::Status, Some(status), None));
        assert_eq!((error.failure(), error.class(), error.in_doubt()), (failure, class, doubt), "{status}");
        proxy.remove(rule);
    }
    assert_eq!(rig.sql("SELECT count() FROM t").await, "0");
}

#[tokio::test]
async fn a_good_status_with_anything_else_in_it_is_no_success() {
    let (_rig, proxy, client) = behind_proxy().await;
    for (body, kind, class) in [
        ("Code: 241. DB::Exception: Memory limit exceeded. (X) (version 21.3)", Kind::Exception, Class::Unavailable),
        ("<html>please log in</html>", Kind::Malformed, Class::Unknown),
        ("", Kind::Malformed, Class::Unknown),
    ] {
        let rule = proxy.add(Rule::insert(Action::Status { status: 200, body: body.into() }));
        let error = insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap_err();
        assert_eq!((error.kind(), error.class()), (kind, class), "{body}: {error:?}");
        proxy.remove(rule);
    }
    let named =
        Action::Error { code: 252, name: "TOO_MANY_PARTS".into(), status: 200, message: "Too many parts".into() };
    proxy.add(Rule::insert(named));
    let error = insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap_err();
    assert_eq!(
        (error.code(), error.table_scoped(), error.splittable()),
        (Some(252), true, false),
        "a code in the head"
    );
}

#[tokio::test]
async fn a_codes_class_does_not_depend_on_status_or_wording() {
    let (_rig, proxy, client) = behind_proxy().await;
    for (code, status, failure) in [
        (241, 500, Failure::Unavailable),
        (241, 200, Failure::Unavailable),
        (27, 503, Failure::Rejected),
        (516, 500, Failure::Denied),
    ] {
        for message in ["", "Memory limit (total) exceeded", "other words (at row 3)"] {
            let action = Action::Error { code, name: "X".into(), status, message: message.into() };
            let rule = proxy.add(Rule::insert(action));
            let error = insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap_err();
            assert_eq!(error.code(), i32::try_from(code).ok());
            assert_eq!(error.failure(), failure, "{code} {status} {message}");
            proxy.remove(rule);
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_taken_for_a_whole_one() {
    let (_rig, proxy, client) = behind_proxy().await;
    let rows = "SELECT number FROM numbers(100000)";
    let whole = read(&client, rows).await.unwrap();
    for bytes in [0, 1, 1_000, 500_000] {
        let cut = proxy.add(Rule::select(Action::Truncate { bytes }));
        let error = read(&client, rows).await.unwrap_err();
        assert_eq!((error.kind(), error.class()), (Kind::Lost, Class::Unavailable), "{bytes}: {error:?}");
        proxy.remove(cut);
        let name = "MEMORY_LIMIT_EXCEEDED".into();
        let failing = proxy.add(Rule::select(Action::MidException { code: 241, name, bytes }));
        let error = read(&client, rows).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (Kind::Exception, Some(241)), "{bytes}: {error:?}");
        assert!(error.message().starts_with("Code: 241. DB::Exception: injected fault"), "{error}");
        proxy.remove(failing);
    }
    assert_eq!(read(&client, rows).await.unwrap(), whole);
}

#[tokio::test]
async fn an_insert_answered_by_an_exception_in_its_body_failed() {
    let (_rig, proxy, client) = behind_proxy().await;
    proxy.add(Rule::insert(Action::MidException { code: 999, name: "KEEPER_EXCEPTION".into(), bytes: 0 }));
    let error = insert(&client, "t", &[r#"{"id":1}"#]).await.unwrap_err();
    assert_eq!((error.kind(), error.code(), error.failure()), (Kind::Exception, Some(999), Failure::Unavailable));
}

#[tokio::test]
async fn requests_beyond_the_connections_wait_and_those_that_wait_too_long_were_not_sent() {
    let (rig, proxy, _) = behind_proxy().await;
    let options =
        Options { url: proxy.url(), max_connections: 1, request_timeout: PATIENCE, ..Rig::options(&rig.database) };
    let client = Client::new(options).unwrap();
    proxy.add(Rule::insert(Action::Hang).times(1));
    let tasks = Tasks::new();
    let hanging = tasks.spawn("hanging", {
        let client = client.clone();
        async move { insert(&client, "t", &[r#"{"id":1}"#]).await }
    });
    until_equal(PATIENCE, "hanging inserts", 1, || async { proxy.stats().fired("hang") }).await.unwrap();
    let error = client.query(Query::read("SELECT 1").timeout(Duration::from_millis(50))).await.unwrap_err();
    assert_eq!((error.kind(), error.class(), error.in_doubt()), (Kind::Busy, Class::Unavailable, false));
    hanging.abort();
    insert(&client, "t", &[r#"{"id":2}"#]).await.unwrap();
    assert_eq!(rig.sql("SELECT groupArray(id) FROM t").await, "[2]");
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_tls_set_up_that_fails_sends_nothing() {
    let rig = Rig::new().await;
    let client = rig.through(rig.database.url().replace("http:", "https:"), PATIENCE);
    let error = insert(&client, "t", &["{}"]).await.unwrap_err();
    assert_eq!((error.kind(), error.in_doubt()), (Kind::Connect, false), "{error:?}");
    rig.client.ping().await.unwrap();
}
