//! Requests, refusals, subscriptions, closing.

use crate::common::{SOON, connect, connect_as, fails, heard, options, restricted, server, text};
use bytes::Bytes;
use std::time::Duration;
use tempfile::TempDir;
use wh_nats::{Connection, Credentials, Kind, Options, Subscription};
use wh_testkit::{
    Process, free_port,
    nats::{self, Server},
    servers::{NATS_VERSIONS, nats_server},
    until,
};
use wh_types::{Class, Clock as _, SystemClock};

on_each_version!(
    a_request_ends_with_its_answer_or_with_the_reason_for_none,
    a_refused_request_ends_at_once,
    refused_subscriptions_and_acks_are_on_record,
    a_round_trip_is_one_for_the_restricted_user_too,
    what_is_too_large_is_not_sent,
    what_a_reader_leaves_is_bounded_by_number_and_by_bytes_and_counted,
    closing_ends_everything,
);

async fn what_a_reader_leaves_is_bounded_by_number_and_by_bytes_and_counted(version: &'static str) {
    let server = server(version).await;
    let sent: Vec<_> = (0..100).map(|number| format!("{number:03}")).collect();
    // nobody reads until all of it was there: the client keeps what it may by number
    let few = Options { subscription_capacity: 16, ..options(server.url()) };
    let connection = Connection::open(few).await.unwrap();
    let mut slow = connection.subscribe("x").await.unwrap();
    connection.round_trip().await.unwrap();
    for text in &sent {
        connection.send("x", None, None, text.clone().into()).await.unwrap();
    }
    connection.round_trip().await.unwrap();
    let dropped = || async { connection.state().slow_consumers > 0 };
    until(SOON, "it is counted", dropped).await.unwrap();
    for expected in &sent[..16] {
        assert_eq!(text(heard(&mut slow).await.body()), expected);
    }
    connection.send("x", None, None, Bytes::from_static(b"last")).await.unwrap();
    assert_eq!(text(heard(&mut slow).await.body()), "last");

    // the first look finds all of it: of that four messages fit
    let few = Options { subscription_bytes: 4 * (Subscription::OVERHEAD + 8), ..options(server.url()) };
    let connection = Connection::open(few).await.unwrap();
    let mut slow = connection.subscribe("x").await.unwrap();
    connection.round_trip().await.unwrap();
    for text in &sent {
        connection.send("x", None, None, text.clone().into()).await.unwrap();
    }
    connection.round_trip().await.unwrap();
    for expected in &sent[..4] {
        assert_eq!(text(heard(&mut slow).await.body()), expected);
    }
    assert_eq!(connection.state().slow_consumers, 96);
    connection.send("x", None, None, Bytes::from_static(b"last")).await.unwrap();
    assert_eq!(text(heard(&mut slow).await.body()), "last");
}

async fn a_request_ends_with_its_answer_or_with_the_reason_for_none(version: &'static str) {
    let server = server(version).await;
    let connection = connect(&server).await;
    let state = connection.state();
    assert!(state.connected && connection.is_connected() && state.generation == 1);
    let seen = state.servers.values().next().unwrap();
    assert_eq!(seen.to_string(), version);
    assert!(connection.max_payload() >= 1024 * 1024);

    let mut echo = connection.subscribe("echo").await.unwrap();
    let (answer, ()) = tokio::join!(connection.request("echo", None, Bytes::from_static(b"hi"), SOON), async {
        let asked = heard(&mut echo).await;
        connection.send(asked.reply().unwrap(), None, None, asked.body().clone()).await.unwrap();
    });
    assert_eq!(text(answer.unwrap().body()), "hi");

    let short = Duration::from_millis(50);
    let silent = connection.request("echo", None, Bytes::new(), short).await.unwrap_err();
    assert_eq!((silent.kind(), silent.class()), (&Kind::Timeout, Class::Unknown));
    let nobody = connection.request("nobody.home", None, Bytes::new(), SOON).await.unwrap_err();
    assert_eq!((nobody.kind(), nobody.class()), (&Kind::NoResponders, Class::Unavailable));
    let bad = connection.request("a b", None, Bytes::new(), SOON).await.unwrap_err();
    assert!(matches!(bad.kind(), Kind::Invalid(_)), "{bad}");
    assert!(connection.subscribe("a..b").await.is_err());
}

const INBOX: &[&str] = &["_INBOX_wh.>"];

async fn a_refused_request_ends_at_once(version: &'static str) {
    let server = restricted(version, &["$JS.API.INFO", "free.>"], INBOX).await;
    let connection = connect_as(&server, "wavehouse").await;
    connection.api().account_info().await.unwrap();
    let started = SystemClock.now();
    let refused = connection.request("$JS.API.STREAM.CREATE.X", None, Bytes::new(), SOON).await.unwrap_err();
    assert_eq!(refused.kind(), &Kind::Refused { subject: "$JS.API.STREAM.CREATE.X".into() });
    assert_eq!((refused.class(), refused.code()), (Class::Denied, "nats.refused"));
    assert!(SystemClock.now() - started < SOON / 2, "it did not wait for its time to run out");
    // two at once, of which one is refused
    let (refused, free) = tokio::join!(
        connection.request("$JS.API.STREAM.NAMES", None, Bytes::new(), SOON),
        connection.request("free.x", None, Bytes::new(), SOON),
    );
    assert!(matches!(refused.unwrap_err().kind(), Kind::Refused { .. }));
    assert_eq!(free.unwrap_err().kind(), &Kind::NoResponders);
    let subjects: Vec<_> = connection.refusals().since(0).into_iter().map(|refusal| refusal.subject).collect();
    assert_eq!(subjects, ["$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.NAMES"]);
}

async fn refused_subscriptions_and_acks_are_on_record(version: &'static str) {
    let server = restricted(version, &["free"], INBOX).await;
    let connection = connect_as(&server, "wavehouse").await;
    let _secret = connection.subscribe("secret.>").await.unwrap();
    assert!(connection.refusals().wait("secret.>", 0, SOON).await);
    let last = connection.refusals().last();
    assert!(connection.refusals().since(0)[0].subscription);
    connection.send("$JS.ACK.S.d.1.1.1.1.0", None, None, Bytes::new()).await.unwrap();
    assert!(connection.refusals().wait("$JS.ACK.S.d.1.1.1.1.0", last, SOON).await);
    assert!(connection.is_connected(), "a refusal does not end the connection");
}

async fn a_round_trip_is_one_for_the_restricted_user_too(version: &'static str) {
    for allowed in [&["wh.>", "$JS.API.INFO"][..], &["wh.>"][..]] {
        let server = restricted(version, allowed, &["_INBOX_wh.>", "wh.>"]).await;
        let connection = connect_as(&server, "wavehouse").await;
        let mut heard = connection.subscribe("wh.done").await.unwrap();
        connection.send("wh.done", None, None, Bytes::from_static(b"x")).await.unwrap();
        connection.round_trip().await.unwrap();
        let waits = tokio::time::timeout(Duration::ZERO, heard.next()).await;
        assert!(matches!(waits, Ok(Some(_))), "what was sent before is here when the round trip ends");
    }
}

async fn what_is_too_large_is_not_sent(version: &'static str) {
    let server = server(version).await;
    let connection = connect(&server).await;
    let body = Bytes::from(vec![0; connection.max_payload() + 1]);
    let error = connection.send("x", None, None, body.clone()).await.unwrap_err();
    assert!(matches!(error.kind(), Kind::TooLarge { limit, .. } if *limit == connection.max_payload()), "{error}");
    assert!(error.is_unsent());
    let error = connection.request("x", None, body, SOON).await.unwrap_err();
    assert!(matches!(error.kind(), Kind::TooLarge { .. }), "{error}");
}

async fn closing_ends_everything(version: &'static str) {
    let server = server(version).await;
    let (connection, other) = (connect(&server).await, connect(&server).await);
    let mut seen = other.subscribe("last").await.unwrap();
    other.round_trip().await.unwrap();
    let mut subscription = connection.subscribe("x").await.unwrap();
    let mut echo = other.subscribe("echo").await.unwrap();
    other.round_trip().await.unwrap();
    let asking = connection.request("echo", None, Bytes::new(), SOON);
    let closing = async {
        heard(&mut echo).await;
        connection.send("last", None, None, Bytes::new()).await.unwrap();
        connection.close().await;
    };
    let (asked, ()) = tokio::join!(asking, closing);
    assert!(matches!(asked.unwrap_err().kind(), Kind::Interrupted | Kind::Closed));
    assert!(subscription.next().await.is_none());
    assert_eq!(heard(&mut seen).await.subject(), "last", "what was sent before is written");
    let error = connection.send("x", None, None, Bytes::new()).await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (&Kind::Closed, Class::Stopping));
    assert!(connection.subscribe("x").await.is_err());
    assert!(!connection.is_connected() && connection.state().closed);
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connection() {
    let server = Server::start().await.unwrap();
    let connection = connect(&server).await;
    let mut state = connection.watch();
    drop(connection);
    let closed = state.wait_for(|state| state.closed);
    tokio::time::timeout(SOON, closed).await.unwrap().unwrap();
}

#[tokio::test]
async fn opening_says_why_it_failed() {
    let port = free_port().unwrap();
    let nobody = options(format!("nats://127.0.0.1:{port}"));
    fails(nobody.clone(), "refused").await;
    let short = Options { connect_timeout: Duration::from_millis(100), ..nobody };
    let error = Connection::open(short).await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (&Kind::Disconnected, Class::Unavailable));

    let server = restricted(NATS_VERSIONS[0], &["x"], INBOX).await;
    let mut wrong = options(server.url());
    wrong.credentials = Credentials::Password { user: "wavehouse".into(), password: "hush".into() };
    fails(wrong, "authorization violation").await;

    let none: [&str; 0] = [];
    let error = Connection::open(Options::new(none)).await.unwrap_err();
    assert!(matches!(error.kind(), Kind::Config(_)));
}

#[tokio::test]
async fn starting_does_not_wait_for_a_server() {
    let port = free_port().unwrap();
    let connection = Connection::start(options(format!("nats://127.0.0.1:{port}"))).await.unwrap();
    let mut subscription = connection.subscribe("x").await.unwrap();
    let error = connection.send("x", None, None, Bytes::new()).await.unwrap_err();
    assert_eq!(error.kind(), &Kind::Disconnected);
    until(SOON, "a failed attempt", || async { connection.state().last_error }).await.unwrap();

    let dir = TempDir::new().unwrap();
    let conf = dir.path().join("nats.conf");
    std::fs::write(&conf, nats::Options::default().file(port, dir.path())).unwrap();
    let program = nats_server(NATS_VERSIONS[0]).unwrap();
    let log = dir.path().join("nats.log");
    let server = Process::launch("nats-server", program).arg("-c").arg(&conf).log_file(log).start().unwrap();
    assert!(connection.connected(SOON).await);
    connection.send("x", None, None, Bytes::from_static(b"now")).await.unwrap();
    assert_eq!(text(heard(&mut subscription).await.body()), "now");
    drop(server);
}
