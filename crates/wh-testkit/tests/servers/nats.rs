//! One server with users, three as a cluster, a hub with a leafnode.

use serde_json::{Value, json};
use std::time::Duration;
use wh_testkit::{
    nats::{Client, Cluster, Leaf, Operator, Options, Reply, Server, Shape, unique_prefix},
    servers::NATS_VERSIONS,
    until,
};

const RIGHTS: &str = r#"permissions {
  publish { allow: [ "ok.>", "$JS.API.STREAM.INFO.*", "$JS.hub.API.STREAM.INFO.*" ] }
  subscribe { allow: [ "_INBOX_t.>" ] }
}"#;

/// What the renderer would print: a stream with a durable, and a stream of another kind.
fn files(prefix: &str, replicas: u32) -> Vec<(String, String)> {
    let stream = json!({ "name": format!("{prefix}A"), "subjects": [format!("{prefix}.a.>")], "retention": "workqueue",
        "storage": "file", "max_bytes": 1_000_000, "num_replicas": replicas });
    let other = json!({ "name": format!("{prefix}B"), "subjects": [format!("{prefix}.b.>")], "retention": "limits",
        "storage": "file", "max_bytes": 1_000_000, "num_replicas": replicas });
    let durable = json!({ "durable_name": "d-0", "ack_policy": "explicit", "priority_policy": "pinned_client",
        "priority_groups": ["g"], "priority_timeout": 10_000_000_000_u64, "ack_wait": 60_000_000_000_u64 });
    vec![
        ("apply.sh".to_owned(), "exit 1".to_owned()),
        (format!("{prefix}A.json"), stream.to_string()),
        (format!("{prefix}A.d-0.json"), durable.to_string()),
        (format!("{prefix}B.json"), other.to_string()),
    ]
}

async fn created(operator: &mut Operator, replicas: u32) -> String {
    let prefix = unique_prefix();
    let shape = Shape {
        ack_wait: Some(Duration::from_secs(1)),
        pinned_ttl: Some(Duration::from_secs(2)),
        duplicate_window: Some(Duration::from_secs(3)),
        other_bytes: Some(500_000),
        ..Shape::default()
    };
    operator.apply(files(&prefix, replicas), &shape).await.unwrap();
    prefix
}

#[tokio::test]
async fn an_operator_creates_what_the_files_say_in_the_shape_of_the_test() {
    for version in NATS_VERSIONS {
        let server = Server::start_version(version).await.unwrap();
        let mut operator = server.operator();
        let prefix = created(&mut operator, 1).await;
        let second = |n: u64| Value::from(n * 1_000_000_000);
        let queue = operator.stream_info(&format!("{prefix}A")).await.unwrap()["config"].take();
        assert_eq!((&queue["duplicate_window"], &queue["max_bytes"]), (&second(3), &json!(1_000_000)));
        let other = operator.stream_info(&format!("{prefix}B")).await.unwrap()["config"].take();
        assert_eq!(other["max_bytes"], 500_000);
        let durable = operator.consumer_info(&format!("{prefix}A"), "d-0").await.unwrap()["config"].take();
        assert_eq!((&durable["ack_wait"], &durable["priority_timeout"]), (&second(1), &second(2)));

        operator.change_durable(&format!("{prefix}A"), "d-0", &json!({ "ack_wait": second(4) })).await.unwrap();
        let durable = operator.consumer_info(&format!("{prefix}A"), "d-0").await.unwrap()["config"].take();
        assert_eq!(durable["ack_wait"], second(4));
        operator.delete_stream(&format!("{prefix}B")).await.unwrap();
        assert!(operator.stream_info(&format!("{prefix}B")).await.is_err());
    }
}

#[tokio::test]
async fn a_user_has_the_rights_it_was_given_and_others_after_a_reload() {
    let mut server = Server::with(Options::default().user("t", RIGHTS)).await.unwrap();
    created(&mut server.operator(), 1).await;
    let mut client = Client::connect(server.port(), Some("t"), "_INBOX_t").await.unwrap();
    assert_eq!(client.request("ok.x", "").await.unwrap(), Reply::Status(503));
    assert_eq!(client.request("other.x", "").await.unwrap(), Reply::Refused("other.x".to_owned()));
    assert!(Client::connect(server.port(), Some("t"), "_INBOX").await.is_err());

    let wider = RIGHTS.replace("\"ok.>\"", "\"ok.>\", \"other.>\"");
    server.reload(Options::default().user("t", wider)).await.unwrap();
    let mut client = Client::connect(server.port(), Some("t"), "_INBOX_t").await.unwrap();
    assert_eq!(client.request("other.x", "").await.unwrap(), Reply::Status(503));
}

#[tokio::test]
async fn a_cluster_goes_on_without_one_and_leaders_move() {
    for version in NATS_VERSIONS {
        let mut cluster = Cluster::with(Options::default().version(version).user("t", RIGHTS)).await.unwrap();
        let prefix = created(&mut cluster.operator(), 3).await;
        let stream = format!("{prefix}A");
        let first = cluster.stream_leader(&stream).await.unwrap();
        let within = Duration::from_secs(20);
        let look = || async { cluster.operator().step_down_stream(&stream).await };
        until(within, "it steps down", look).await.unwrap();
        let look = || async { cluster.stream_leader(&stream).await };
        let second = until(within, "another leads", look).await.unwrap();

        cluster.node_mut(second).process().kill().unwrap();
        let look = || async { cluster.stream_leader(&stream).await.map(|leader| leader != second) };
        until(within, "a leader that lives", look).await.unwrap();
        cluster.node_mut(second).restart().await.unwrap();

        let look = || async { cluster.consumer_leader(&stream, "d-0").await };
        let paused = until(within, "the consumer is led", look).await.unwrap();
        cluster.node_mut(paused).process().pause().unwrap();
        let look = || async { cluster.consumer_leader(&stream, "d-0").await.ok().filter(|leader| *leader != paused) };
        until(within, "a leader that is not paused", look).await.unwrap();
        cluster.node_mut(paused).process().resume().unwrap();
        assert!(first < 3 && second < 3);
    }
}

#[tokio::test]
async fn through_a_leafnode_only_the_long_form_reaches_the_hub() {
    for version in NATS_VERSIONS {
        let options = Options::default().version(version).domain("hub").user("t", RIGHTS);
        let both = Leaf::start(options).await.unwrap();
        let prefix = created(&mut both.operator(), 1).await;
        let mut client = Client::connect(both.leaf.port(), Some("t"), "_INBOX_t").await.unwrap();
        let long = client.request(&format!("$JS.hub.API.STREAM.INFO.{prefix}A"), "").await.unwrap().json();
        assert_eq!(long.unwrap()["config"]["name"], format!("{prefix}A"));
        let plain = client.request(&format!("$JS.API.STREAM.INFO.{prefix}A"), "").await.unwrap().json();
        assert!(plain.unwrap_err().to_string().contains("10059"), "the leafnode has no such stream");
        assert_eq!(both.domain(), "hub");
    }
}
