//! Connections that break: restarts, frozen servers, cuts, clusters that lose a node.

use crate::common::{SOON, connect, freeze, generation, heard, options, server, text, work_queue};
use bytes::Bytes;
use std::time::Duration;
use wh_nats::{Connection, Kind};
use wh_testkit::{chaos, nats::Cluster, servers::NATS_VERSIONS, until};
use wh_types::Class;

on_each_version!(
    it_reconnects_as_often_as_it_breaks,
    a_frozen_server_is_noticed,
    what_was_queued_in_a_lost_connection_is_never_sent,
    a_replaced_connection_goes_on_where_the_other_ended,
);

async fn it_reconnects_as_often_as_it_breaks(version: &'static str) {
    let mut server = server(version).await;
    let connection = connect(&server).await;
    let mut subscription = connection.subscribe("x.>").await.unwrap();
    for round in 1..=4_u64 {
        assert_eq!(connection.generation(), round);
        connection.send("x.1", None, None, round.to_string().into()).await.unwrap();
        assert_eq!(text(heard(&mut subscription).await.body()), round.to_string());
        assert_eq!(subscription.generation(), round);
        server.restart().await.unwrap();
        generation(&connection, round + 1).await;
    }
    assert!(connection.state().last_error.is_some());
    assert_eq!(connection.state().servers.len(), 1, "it is one server, however often it starts");
}

async fn a_frozen_server_is_noticed(version: &'static str) {
    let mut server = server(version).await;
    let connection = connect(&server).await;
    let mut echo = connection.subscribe("echo").await.unwrap();
    connection.round_trip().await.unwrap();
    freeze(&mut server).await;
    let asked = connection.request("echo", None, Bytes::new(), SOON).await.unwrap_err();
    assert_eq!((asked.kind(), asked.class()), (&Kind::Interrupted, Class::Unknown));
    assert!(!connection.is_connected());
    let error = connection.request("echo", None, Bytes::new(), SOON).await.unwrap_err();
    assert_eq!((error.kind(), error.class()), (&Kind::Disconnected, Class::Unavailable));
    server.process().resume().unwrap();
    assert!(connection.connected(SOON).await);
    connection.send("echo", None, None, Bytes::from_static(b"again")).await.unwrap();
    while text(heard(&mut echo).await.body()) != "again" {}
}

async fn what_was_queued_in_a_lost_connection_is_never_sent(version: &'static str) {
    let mut server = server(version).await;
    server.operator().create_stream(&work_queue()).await.unwrap();
    let connection = connect(&server).await;
    freeze(&mut server).await;
    // more than the kernel takes: the rest stays in the client
    let body = Bytes::from(vec![b'x'; 64 * 1024]);
    let mut sent = 0;
    while connection.is_connected() {
        let sending = connection.send("q.x", None, None, body.clone());
        match tokio::time::timeout(Duration::from_millis(100), sending).await {
            Ok(Ok(())) => sent += 1,
            Ok(Err(error)) => assert_eq!(error.kind(), &Kind::Disconnected),
            Err(_) => {}
        }
    }
    assert!(sent > 100, "{sent}");
    server.restart().await.unwrap();
    assert!(connection.connected(SOON).await);
    let ack = connection.request("q.x", None, Bytes::from_static(b"new"), SOON).await.unwrap();
    assert_eq!(text(ack.body()), r#"{"stream":"Q","seq":1}"#, "the first that is stored is the first of the new one");
    assert_eq!(connection.api().stream_state("Q").await.unwrap().messages, 1);
}

async fn a_replaced_connection_goes_on_where_the_other_ended(version: &'static str) {
    let server = server(version).await;
    let connection = connect(&server).await;
    let other = connect(&server).await;
    let mut subscription = connection.subscribe("x").await.unwrap();
    connection.renew();
    generation(&connection, 2).await;
    connection.round_trip().await.unwrap();
    other.send("x", None, None, Bytes::from_static(b"once")).await.unwrap();
    other.send("x", None, None, Bytes::from_static(b"last")).await.unwrap();
    assert_eq!(text(heard(&mut subscription).await.body()), "once");
    assert_eq!(text(heard(&mut subscription).await.body()), "last", "and only once");
    assert_eq!(connection.generation(), 2);
}

#[tokio::test]
async fn a_cut_connection_comes_back_and_its_requests_end_at_once() {
    let server = server(NATS_VERSIONS[0]).await;
    let proxy = chaos::Tcp::start(server.port()).await.unwrap();
    let connection = Connection::open(options(proxy.url("nats"))).await.unwrap();
    let mut silent = connection.subscribe("silent").await.unwrap();
    for number in 2..5 {
        let asking = connection.request("silent", None, Bytes::new(), SOON);
        let (asked, ()) = tokio::join!(asking, async {
            heard(&mut silent).await;
            proxy.cut();
        });
        assert_eq!(asked.unwrap_err().kind(), &Kind::Interrupted);
        generation(&connection, number).await;
    }
}

#[tokio::test]
async fn a_black_hole_in_one_direction_is_noticed() {
    let server = server(NATS_VERSIONS[0]).await;
    for way in [chaos::Way::ToServer, chaos::Way::ToClient, chaos::Way::Both] {
        let proxy = chaos::Tcp::start(server.port()).await.unwrap();
        let mut options = options(proxy.url("nats"));
        // one that is dialled in the hole is given up and dialled again
        options.connect_timeout = Duration::from_secs(5);
        options.ping_interval = Duration::from_secs(1);
        let connection = Connection::open(options).await.unwrap();
        proxy.black_hole(way);
        until(SOON, "it is noticed", || async { !connection.is_connected() }).await.unwrap();
        proxy.heal();
        assert!(connection.connected(SOON).await, "{way:?}");
        connection.round_trip().await.unwrap();
    }
}

#[tokio::test]
async fn a_node_that_dies_is_replaced_by_one_that_was_not_configured() {
    let mut cluster = Cluster::three(NATS_VERSIONS[0]).await.unwrap();
    let url = cluster.node(0).url();
    let connection = Connection::open(options(url)).await.unwrap();
    assert_eq!(connection.state().server.as_deref(), Some("n0"));
    cluster.node_mut(0).process().kill().unwrap();
    let mut state = connection.watch();
    let up = state.wait_for(|state| state.connected && state.server.as_deref() != Some("n0"));
    tokio::time::timeout(SOON, up).await.unwrap().unwrap();
    assert_eq!(connection.state().servers.len(), 2, "both that were seen count");
}
