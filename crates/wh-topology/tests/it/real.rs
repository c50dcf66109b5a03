//! The generated configurations on real servers: created, read back, and found without fault by our own verifier.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::time::Duration;
use wh_testkit::{
    nats::{Client, Cluster, Operator, Server, Shape},
    servers::NATS_VERSIONS,
    until,
};
use wh_topology::{Action, Captured, Choices, Observed, Plan, Role, Spec, Topology, renderer, verify};

fn topology(partitions: u32, shards: u32, replicas: u32) -> Topology {
    let choices = Choices { partitions, shards, replicas, file_store: 512 << 20, ..Choices::default() };
    Topology::new(Spec::new(choices).unwrap()).unwrap()
}

/// Creates what the files for the command line say.
pub(crate) async fn create(operator: &mut Operator, topology: &Topology) -> Result<()> {
    let files = renderer("nats-cli").unwrap().render(topology)?;
    operator.apply(files.into_iter().map(|file| (file.name, file.text)), &Shape::default()).await
}

/// Reads everything back, as a capture of raw answers.
async fn read_back(client: &mut Client, topology: &Topology) -> Result<Observed> {
    let mut texts = vec![("INFO".to_owned(), client.info.clone())];
    for subject in ["$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST"] {
        texts.push((subject.to_owned(), client.request(subject, "").await?.json()?.to_string()));
    }
    for partition in &topology.partitions {
        let subject = format!("$JS.API.CONSUMER.LIST.{}", partition.stream.name);
        let page = client.request(&subject, r#"{"offset":0}"#).await?;
        // a partition that is not made yet, or not any more, has no consumers
        if let Ok(page) = page.json() {
            texts.push((subject, page.to_string()));
        }
    }
    Ok(Captured::new(texts).read()?)
}

#[tokio::test]
async fn every_tested_release_makes_what_was_asked_for() -> Result<()> {
    for version in NATS_VERSIONS {
        let server = Server::start_version(version).await?;
        let mut client = Client::connect(server.port(), None, "_INBOX_wh").await?;
        let wanted = topology(4, 8, 1);
        create(&mut server.operator(), &wanted).await?;
        let seen = read_back(&mut client, &wanted).await?;
        assert_eq!((seen.streams.len(), seen.consumers.len()), (7, 32), "{version}");

        // one server keeps one copy; nothing else is to be said
        let findings = verify(&wanted.spec, Role::Both, &seen);
        let others: Vec<_> = findings.iter().filter(|finding| finding.field != "num_replicas").collect();
        assert!(others.is_empty() && findings.len() == 7, "{version}: {findings:#?}");
        let plan = Plan::new(&wanted, &seen);
        assert!(plan.is_empty(), "{version}: {plan}");
        server.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_cluster_of_three_has_no_finding_at_all() -> Result<()> {
    let cluster = Cluster::three(NATS_VERSIONS[0]).await?;
    let wanted = topology(2, 2, 3);
    create(&mut cluster.operator(), &wanted).await?;
    let (port, wanted) = (cluster.node(1).port(), &wanted);
    let seen = until(Duration::from_secs(90), "no finding", || without_findings(port, wanted)).await?;
    assert!(Plan::new(wanted, &seen).is_empty());
    Ok(())
}

/// A consumer whose leader is not elected yet is in the list's `missing`: it was not read.
async fn without_findings(port: u16, wanted: &Topology) -> Result<Observed> {
    let mut client = Client::connect(port, None, "_INBOX_wh").await?;
    let seen = read_back(&mut client, wanted).await?;
    let findings = verify(&wanted.spec, Role::Both, &seen);
    ensure!(seen.is_complete() && findings.is_empty(), "{findings:#?}");
    Ok(seen)
}

#[tokio::test]
async fn a_block_is_heard_by_the_history_under_its_own_subject() -> Result<()> {
    let server = Server::start().await?;
    let mut client = Client::connect(server.port(), None, "_INBOX_wh").await?;
    let wanted = topology(4, 8, 1);
    create(&mut server.operator(), &wanted).await?;
    let stored = client.request("wh.ingest.2.5.acme.a%2Eb", "{}").await?.json()?;
    assert_eq!(stored["stream"], "WH_INGEST_2");
    let port = server.port();
    until(Duration::from_secs(60), "the history heard it", || heard(port)).await?;
    let next = client.request("$JS.API.CONSUMER.INFO.WH_INGEST_2.wh-ingest-5", "").await?.json()?;
    assert_eq!(next["num_pending"], 1, "the shard's durable has it");
    Ok(())
}

async fn heard(port: u16) -> Result<()> {
    let mut client = Client::connect(port, None, "_INBOX_wh").await?;
    let info = client.request("$JS.API.STREAM.INFO.WH_HISTORY", r#"{"subjects_filter":">"}"#).await?.json()?;
    ensure!(info["state"]["subjects"] == json!({ "wh.hist.acme.a%2Eb": 1 }), "{}", info["state"]);
    Ok(())
}

/// What the plan calls an update the server takes, and what it calls a replacement the server refuses.
#[tokio::test]
async fn the_server_agrees_on_what_can_be_changed() -> Result<()> {
    let server = Server::start().await?;
    let mut client = Client::connect(server.port(), None, "_INBOX_wh").await?;
    let wanted = topology(1, 1, 1);
    create(&mut server.operator(), &wanted).await?;
    let seen = read_back(&mut client, &wanted).await?;
    let stream = serde_json::to_value(&wanted.partitions[0].stream)?;
    let durable = serde_json::to_value(&wanted.partitions[0].shards[0])?;
    let cases = [
        (false, "max_bytes", json!(1_000_000)),
        (false, "max_age", json!(600_000_000_000_u64)),
        (false, "duplicate_window", json!(60_000_000_000_u64)),
        (false, "allow_direct", json!(true)),
        (false, "republish", json!({ "src": "wh.ingest.0.*.>", "dest": "x.>" })),
        (false, "subjects", json!(["wh.ingest.0.>", "y.>"])),
        (false, "no_ack", json!(true)),
        (false, "retention", json!("limits")),
        (false, "storage", json!("memory")),
        (false, "persist_mode", json!("async")),
        (true, "ack_wait", json!(30_000_000_000_u64)),
        (true, "max_ack_pending", json!(20_000)),
        (true, "max_deliver", json!(5)),
        (true, "priority_timeout", json!(6_000_000_000_u64)),
        (true, "priority_groups", json!(["x"])),
        (true, "headers_only", json!(true)),
        (true, "inactive_threshold", json!(60_000_000_000_u64)),
        (true, "max_expires", json!(60_000_000_000_u64)),
        (true, "deliver_policy", json!("new")),
        (true, "ack_policy", json!("all")),
        (true, "replay_policy", json!("original")),
        (true, "max_waiting", json!(64)),
    ];
    for (of_durable, field, value) in cases {
        // the server holds the right value, and the operator's plan is to come from the wrong one
        let mut wrong = seen.clone();
        let config = match wrong.consumers.values_mut().next().filter(|_| of_durable) {
            Some(consumer) => &mut consumer.config,
            None => &mut wrong.streams.get_mut("WH_INGEST_0").context("gone")?.config,
        };
        config.set(field, value.clone());
        let plan = Plan::new(&wanted, &wrong);
        let replaced = plan.of(Action::Replace).count() == 1;
        assert!(replaced || plan.of(Action::Update).count() == 1, "{field}: {plan}");

        let mut changed = if of_durable { durable.clone() } else { stream.clone() };
        changed[field] = value;
        let answer = if of_durable {
            let body = json!({ "stream_name": "WH_INGEST_0", "config": changed, "action": "update" }).to_string();
            client.request("$JS.API.CONSUMER.CREATE.WH_INGEST_0.wh-ingest-0", &body).await?.json()
        } else {
            client.request("$JS.API.STREAM.UPDATE.WH_INGEST_0", &changed.to_string()).await?.json()
        };
        assert_eq!(answer.is_err(), replaced, "{field}: {answer:?}");
    }
    Ok(())
}

/// Raising and lowering both counts and back, as the plans say, with a row that is queued throughout.
#[tokio::test]
async fn changing_the_counts_twice_leaves_no_orphan_on_a_server() -> Result<()> {
    let server = Server::start().await?;
    let mut client = Client::connect(server.port(), None, "_INBOX_wh").await?;
    let first = topology(1, 2, 1);
    create(&mut server.operator(), &first).await?;
    client.request("wh.ingest.0.1.acme.t", "x").await?.json()?;
    for (partitions, shards) in [(3, 4), (2, 1), (1, 2)] {
        let wanted = topology(partitions, shards, 1);
        let seen = read_back(&mut client, &topology(3, 4, 1)).await?;
        let plan = Plan::new(&wanted, &seen);
        ensure!(plan.of(Action::Replace).count() == 0, "{plan}");
        carry_out(&mut client, &plan, &wanted).await?;

        let after = read_back(&mut client, &topology(3, 4, 1)).await?;
        let plan = Plan::new(&wanted, &after);
        assert!(plan.is_empty(), "{plan}");
        assert_eq!(after.streams.len(), usize::try_from(partitions)? + 3);
        assert_eq!(after.consumers.len(), usize::try_from(partitions * shards)?);
        let findings = verify(&wanted.spec, Role::Both, &after);
        assert!(findings.iter().all(|finding| finding.field == "num_replicas"), "{findings:#?}");
        assert_eq!(after.streams["WH_INGEST_0"].state.messages, 1, "the row is still there");
    }
    Ok(())
}

async fn carry_out(client: &mut Client, plan: &Plan, wanted: &Topology) -> Result<()> {
    let (streams, durables) =
        (wanted.streams(), wanted.partitions.iter().flat_map(|p| p.shards.iter().map(move |d| (p, d))));
    let durables: Vec<_> = durables.collect();
    for change in plan.changes.iter().filter(|change| change.action != Action::Leave) {
        let stream = &change.stream;
        let (subject, body) = match (&change.durable, change.action) {
            (None, Action::Drain) => (format!("$JS.API.STREAM.DELETE.{stream}"), String::new()),
            // a stream took its durables along
            (Some(_), Action::Drain) if plan.of(Action::Drain).any(|c| c.durable.is_none() && c.stream == *stream) => {
                continue;
            }
            (Some(durable), Action::Drain) => (format!("$JS.API.CONSUMER.DELETE.{stream}.{durable}"), String::new()),
            (None, action) => {
                let verb = if action == Action::Create { "CREATE" } else { "UPDATE" };
                let config = streams.iter().find(|config| config.name == *stream).context("unknown stream")?;
                (format!("$JS.API.STREAM.{verb}.{stream}"), serde_json::to_string(config)?)
            }
            (Some(durable), _) => {
                let own = durables.iter().find(|(p, d)| p.stream.name == *stream && d.name == *durable);
                let config = own.context("unknown durable")?.1;
                let body = json!({ "stream_name": stream, "config": config }).to_string();
                (format!("$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{durable}"), body)
            }
        };
        client.request(&subject, &body).await?.json().with_context(|| change.object.clone())?;
    }
    Ok(())
}
