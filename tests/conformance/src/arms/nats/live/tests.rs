//! The arm for a NATS that the user names, on a server of the test's own.

use super::*;
use crate::{case::Case, stage::salted};
use wh_nats::Credentials;
use wh_testkit::nats::{OPERATOR, Options, PASSWORD, Server, Shape};
use wh_topology::{Choices, Rights, RightsFormat, Role, Topology, renderer};
use wh_types::Secret;

const PREFIX: &str = "whconf";

fn topology() -> Topology {
    let choices = Choices {
        prefix: PREFIX.into(),
        partitions: 1,
        shards: SHARDS,
        replicas: 1,
        file_store: 1 << 30,
        ..Choices::default()
    };
    Topology::new(Spec::new(choices).unwrap()).unwrap()
}

async fn server() -> Server {
    let rights = Rights::new(&topology().spec, Role::Both).print(RightsFormat::Nats);
    Server::with(Options::default().user(Role::Both.user(), rights)).await.unwrap()
}

async fn create(server: &Server) {
    let files = renderer("nats-cli").unwrap().render(&topology()).unwrap();
    let shape = Shape { pinned_ttl: Some(Duration::from_secs(5)), ..Shape::default() };
    server.operator().apply(files.into_iter().map(|file| (file.name, file.text)), &shape).await.unwrap();
}

fn live(server: &Server, operated: bool) -> Live {
    let who = |user: &str| Credentials::Password { user: user.to_owned(), password: Secret::from(PASSWORD) };
    Live::new(LiveOptions {
        urls: vec![server.url()],
        js_domain: None,
        ca_file: None,
        user: who(Role::Both.user()),
        operator: operated.then(|| who(OPERATOR)),
        prefix: PREFIX.into(),
    })
}

/// Some cases that leave something behind, and some that must find nothing.
async fn run(arm: &dyn Arm) {
    let some = [
        "mq01_what_was_stored_is_delivered_after_a_crash",
        "mq26_the_next_owner_gets_every_unsettled_block_in_order",
        "mq29_unowned_names_exactly_the_units_with_work_and_no_feed",
        "mq41_from_a_cursor_shows_what_follows_settled_or_not_then_live",
        "mq42_from_a_time_shows_what_was_received_since",
        "mq53_a_purged_letter_is_gone_for_good",
        "mq55_a_tenant_without_letters_has_an_empty_page",
        "mq60_the_status_says_what_is_held",
    ];
    let cases: Vec<Case> = crate::all().into_iter().filter(|case| some.contains(&case.name)).collect();
    assert_eq!(cases.len(), some.len());
    for case in cases {
        if let Err(error) = salted((case.run)(arm)).await {
            panic!("{}: {error:#}", case.name);
        }
    }
}

async fn held(server: &Server, stream: &str) -> u64 {
    server.operator().stream_info(stream).await.unwrap()["state"]["messages"].as_u64().unwrap()
}

async fn refusal(arm: &Live) -> String {
    format!("{:#}", arm.open(crate::stage::setup()).await.unwrap_err())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_an_operator_a_topology_is_made_and_deleted_and_no_other_touched() {
    let server = self::server().await;
    let arm = live(&server, true);
    run(&arm).await;
    arm.finish().await.unwrap();
    assert_eq!(server.operator().ask("STREAM.NAMES", "").await.unwrap()["total"], 0);
    // on another server: streams that come back under a name they had may bring old messages along
    let server = self::server().await;
    create(&server).await;
    let arm = live(&server, true);
    let text = refusal(&arm).await;
    assert!(text.contains("WHCONF_INGEST_0 exists"), "{text}");
    arm.finish().await.unwrap();
    assert_eq!(server.operator().ask("STREAM.NAMES", "").await.unwrap()["total"], 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_operator_an_empty_topology_is_used_and_left_empty() {
    let server = server().await;
    let text = refusal(&live(&server, false)).await;
    assert!(text.contains("no stream takes whconf.ingest.0.x"), "{text}");
    create(&server).await;
    for _ in 0..2 {
        let arm = live(&server, false);
        assert!(!arm.profile().ack_wait);
        run(&arm).await;
        arm.finish().await.unwrap();
        let names = topology().spec.names().clone();
        for stream in [names.partition_stream(0), names.dead_letters] {
            assert_eq!(held(&server, &stream).await, 0, "{stream}");
        }
    }
}

#[tokio::test]
async fn a_topology_that_holds_something_is_refused_and_left_alone() {
    let server = server().await;
    create(&server).await;
    server.operator().request("whconf.dlq.acme.t", "{}").await.unwrap();
    let arm = live(&server, false);
    let text = refusal(&arm).await;
    assert!(text.contains("WHCONF_DLQ holds 1 messages"), "{text}");
    arm.finish().await.unwrap();
    assert_eq!(held(&server, "WHCONF_DLQ").await, 1);
}
