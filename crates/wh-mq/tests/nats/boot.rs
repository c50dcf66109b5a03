//! The topology's check against live servers: one case for each kind of fault, as the user that is shipped.

use crate::stand::{Stand, block, choices, publish};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use wh_mq::nats::{
    self, Faults,
    boot::{Check, Health, Recheck, Report, Unsound, wait},
};
use wh_nats::{Connection, PullRequest, Pulled, Puller};
use wh_testkit::{
    chaos::{Pace, Tcp, Way},
    free_port,
    nats::{Cluster, Options, Server, Shape},
    servers::NATS_VERSIONS,
    until,
};
use wh_topology::{Choices, Peer, Rights, RightsFormat, Role, Severity, Spec, Topology};
use wh_types::{Class, OsEntropy, Stop, SystemClock, Tasks};

const STREAM: &str = "WH_INGEST_0";
const WITHIN: Duration = Duration::from_secs(90);

async fn check(stand: &Stand, role: Role) -> Result<Check> {
    Ok(Check::new(&stand.connect().await?, &stand.spec, role))
}

/// The rules of what is required, without repeats.
fn required(report: &Report) -> Vec<&'static str> {
    let mut rules: Vec<_> = report.of(Severity::Required).map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}

/// A short wait that must fail with findings: their rules.
async fn refused(check: &Check) -> Result<Vec<&'static str>> {
    let Unsound::Findings(report) = found(check).await else { anyhow::bail!("it could not be looked at") };
    Ok(required(&report))
}

/// A wait that is over after one look must fail with findings. On a busy machine a look may not be over in its second.
async fn found(check: &Check) -> Unsound {
    for _ in 0..20 {
        let failed = wait(check, Duration::ZERO, &SystemClock).await.unwrap_err();
        if !failed.findings().is_empty() {
            return failed;
        }
    }
    panic!("nothing was found")
}

/// A durable's state without the clock.
async fn state(stand: &Stand, durable: &str) -> Result<Value> {
    let mut info = stand.operator().consumer_info(STREAM, durable).await?;
    info.as_object_mut().context("an object")?.remove("ts");
    Ok(info)
}

#[tokio::test]
async fn a_sound_topology_lets_every_role_start_and_nothing_moved() -> Result<()> {
    for version in NATS_VERSIONS {
        let stand = Stand::with(choices(), &Shape::default(), Options::default().version(version)).await?;
        stand.operator().request("wh.ingest.0.0.acme.t", "{}").await?;
        let before = state(&stand, "wh-ingest-0").await?;
        for role in Role::ALL {
            let report = wait(&check(&stand, role).await?, WITHIN, &SystemClock).await?;
            ensure!(report.complete && report.of(Severity::Required).next().is_none());
            // one server keeps one copy of each stream
            ensure!(report.findings.iter().all(|finding| finding.field == "num_replicas"), "{report:#?}");
        }
        assert_eq!(before["num_pending"], 1);
        assert_eq!(state(&stand, "wh-ingest-0").await?, before, "{version}: the probe moved something");
        assert_eq!(stand.messages().await?, 1);
    }
    Ok(())
}

#[tokio::test]
async fn the_probe_leaves_a_pin_and_what_it_holds_alone() -> Result<()> {
    let stand = Stand::new().await?;
    for _ in 0..3 {
        stand.operator().request("wh.ingest.0.0.acme.t", "{}").await?;
    }
    let mut holder = Puller::open(&stand.connect().await?, STREAM, "wh-ingest-0", "wavehouse").await?;
    let (expires, idle_heartbeat) = (Duration::from_secs(30), Duration::from_secs(10));
    holder.pull(&PullRequest { batch: 1, expires, idle_heartbeat, pin: None }).await?;
    let pulled = tokio::time::timeout(WITHIN, holder.next()).await?;
    ensure!(matches!(&pulled, Some(Pulled::Delivered(one)) if one.pin.is_some()), "{pulled:?}");
    let before = state(&stand, "wh-ingest-0").await?;
    assert_eq!(before["num_ack_pending"], 1);
    ensure!(before["priority_groups"][0]["pinned_client_id"].is_string(), "{before}");
    wait(&check(&stand, Role::Ingest).await?, WITHIN, &SystemClock).await?;
    assert_eq!(state(&stand, "wh-ingest-0").await?, before);
    Ok(())
}

#[tokio::test]
async fn a_durable_without_a_policy_is_found_and_no_block_is_taken_from_it() -> Result<()> {
    let stand = Stand::new().await?;
    stand.operator().request("wh.ingest.0.0.acme.t", "{}").await?;
    let loose = json!({ "priority_policy": "none", "priority_groups": [], "priority_timeout": 0 });
    stand.operator().change_durable(STREAM, "wh-ingest-0", &loose).await?;
    let rules = refused(&check(&stand, Role::Ingest).await?).await?;
    ensure!(rules.contains(&"consumer.priority_policy"), "{rules:?}");
    assert_eq!(state(&stand, "wh-ingest-0").await?["num_ack_pending"], 0);
    // a process that does not ingest has nothing to do with it
    wait(&check(&stand, Role::Api).await?, WITHIN, &SystemClock).await?;
    Ok(())
}

#[tokio::test]
async fn streams_and_durables_that_are_not_there_are_named() -> Result<()> {
    let stand = Stand::new().await?;
    let mut operator = stand.operator();
    operator.delete_durable(STREAM, "wh-ingest-1").await?;
    assert_eq!(refused(&check(&stand, Role::Both).await?).await?, ["consumer.none"]);
    for (stream, rule) in
        [("WH_HISTORY", "history.none"), ("KV_wh_coord", "bucket.none"), ("WH_DLQ", "dead_letters.none")]
    {
        operator.delete_stream(stream).await?;
        let rules = refused(&check(&stand, Role::Ingest).await?).await?;
        ensure!(rules.contains(&rule), "{stream}: {rules:?}");
    }
    operator.delete_stream(STREAM).await?;
    let failed = found(&check(&stand, Role::Api).await?).await;
    let text = failed.to_string();
    assert_eq!(failed.class(), Class::Denied);
    for part in ["ingest partition 0", "dead letters", "stream WH_HISTORY", "nats stream add WH_INGEST_0"] {
        ensure!(text.contains(part), "{part}: {text}");
    }
    ensure!(!text.contains("KV_wh_coord"), "leases are the workers': {text}");
    Ok(())
}

#[tokio::test]
async fn a_partition_of_the_wrong_kind_is_refused_for_each_role() -> Result<()> {
    let stand = Stand::new().await?;
    let mut operator = stand.operator();
    let mut config = operator.stream_info(STREAM).await?["config"].take();
    operator.delete_stream(STREAM).await?;
    config["name"] = json!("OTHER");
    config["retention"] = json!("limits");
    operator.create_stream(&config).await?;
    for role in [Role::Api, Role::Ingest] {
        let rules = refused(&check(&stand, role).await?).await?;
        ensure!(rules.contains(&"partition.retention"), "{rules:?}");
        assert_eq!(rules.contains(&"consumer.none"), role.ingests(), "{rules:?}");
    }
    Ok(())
}

#[tokio::test]
async fn each_right_that_a_unit_needs_is_missed_before_it_is_needed() -> Result<()> {
    let mut stand = Stand::new().await?;
    let all = Rights::new(&stand.spec, Role::Both).print(RightsFormat::Nats);
    let needs = ["MSG.NEXT.*.wh-ingest-1", "UNPIN.*.wh-ingest-1", "RESET.*.wh-ingest-1", "$JS.ACK.*.wh-ingest-1.>"];
    for needed in needs {
        let without: String =
            all.lines().filter(|line| !line.contains(needed)).map(|line| format!("{line}\n")).collect();
        stand.server.reload(Options::default().user(Role::Both.user(), without)).await?;
        let failed = found(&check(&stand, Role::Ingest).await?).await;
        let findings: Vec<_> = failed.findings().iter().filter(|one| one.severity == Severity::Required).collect();
        assert_eq!(findings.len(), 1, "{failed}");
        assert_eq!(
            (findings[0].rule, findings[0].object.as_str()),
            ("consumer.permissions", "consumer WH_INGEST_0/wh-ingest-1")
        );
        ensure!(findings[0].fix.starts_with("wavehouse mq permissions --role=ingest"), "{failed}");
        let verb = needed.split(['.', '*']).next().context("a verb")?.trim_start_matches("$JS");
        ensure!(findings[0].seen.contains(verb), "{needed}: {failed}");
    }
    // what reading needs is no finding: nothing can be said then
    let without: String =
        all.lines().filter(|line| !line.contains("STREAM.NAMES")).map(|line| format!("{line}\n")).collect();
    stand.server.reload(Options::default().user(Role::Both.user(), without)).await?;
    let failed = wait(&check(&stand, Role::Api).await?, Duration::from_secs(3), &SystemClock).await.unwrap_err();
    assert_eq!(failed.class(), Class::Denied);
    ensure!(matches!(&failed, Unsound::Unread { refused, .. } if *refused == ["$JS.API.STREAM.NAMES"]), "{failed:?}");
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_heard_is_missed_at_the_start() -> Result<()> {
    let mut stand = Stand::new().await?;
    let all = Rights::new(&stand.spec, Role::Both).print(RightsFormat::Nats);
    let names = stand.spec.names();
    let needs = [
        (Role::Api, names.history_subjects()),
        (Role::Api, names.progress_subjects()),
        (Role::Ingest, names.lease_subjects()),
    ];
    for (role, needed) in needs {
        let line = format!("\"{needed}\"");
        let (head, heard) = all.split_once("subscribe").context("what may be heard")?;
        let heard: String =
            heard.lines().filter(|text| !text.contains(&line)).map(|text| format!("{text}\n")).collect();
        let without = format!("{head}subscribe{heard}");
        ensure!(without.len() < all.len(), "{line} is not in {all}");
        stand.server.reload(Options::default().user(Role::Both.user(), without)).await?;
        let failed = found(&check(&stand, role).await?).await;
        let rules: Vec<_> = failed.findings().iter().filter(|one| one.severity == Severity::Required).collect();
        assert_eq!(rules.iter().map(|one| one.rule).collect::<Vec<_>>(), ["user.subscriptions"], "{failed}");
        ensure!(rules[0].seen.ends_with(&needed), "{failed}");
        ensure!(rules[0].fix.starts_with("wavehouse mq permissions --role="), "{failed}");
    }
    // another topology's user: nothing would be answered, for a reason that can be told
    let mut options = stand.connecting(None);
    options.inbox_prefix = "_INBOX_other".to_owned();
    options.request_timeout = Duration::from_secs(1);
    let connection = wh_nats::Connection::open(options).await?;
    let check = Check::new(&connection, &stand.spec, Role::Api);
    let failed = wait(&check, Duration::from_secs(4), &SystemClock).await.unwrap_err();
    assert_eq!(failed.class(), Class::Denied, "{failed}");
    ensure!(failed.to_string().contains("subscribe to _INBOX_other."), "{failed}");
    Ok(())
}

#[tokio::test]
async fn processes_that_differ_on_a_count_do_not_run_together() -> Result<()> {
    let stand = Stand::new().await?;
    let other = |change: fn(&mut Choices)| {
        let mut own = choices();
        change(&mut own);
        Spec::new(own)
    };
    let connection = stand.connect().await?;
    let rules = refused(&Check::new(&connection, &other(|c| c.shards = 1)?, Role::Both)).await?;
    assert_eq!(rules, ["partition.metadata_shards"], "the streams say which counts they were made for");
    let rules = refused(&Check::new(&connection, &other(|c| c.partitions = 2)?, Role::Api)).await?;
    ensure!(rules.contains(&"partition.none"), "{rules:?}");

    let peer = |shards| move || vec![Peer { name: "w2".into(), partitions: 1, shards }];
    let check = Check::new(&connection, &stand.spec, Role::Both);
    wait(&check.clone().with_peers(peer(2)), WITHIN, &SystemClock).await?;
    assert_eq!(refused(&check.with_peers(peer(4))).await?, ["peer.counts"]);
    Ok(())
}

#[tokio::test]
async fn a_dead_server_is_unavailable_with_its_last_error() -> Result<()> {
    let mut stand = Stand::new().await?;
    let check = check(&stand, Role::Both).await?;
    let port = stand.server.port();
    stand.server.process().kill()?;
    until(WITHIN, "it is noticed", || async { !check.connection().is_connected() }).await?;
    let failed = wait(&check, Duration::from_secs(3), &SystemClock).await.unwrap_err();
    assert_eq!(failed.class(), Class::Unavailable);
    let text = failed.to_string();
    ensure!(text.starts_with(&format!("no NATS server is connected: nats://127.0.0.1:{port}: ")), "{text}");

    // it comes back while a start waits for it
    let (report, restarted) = tokio::join!(wait(&check, WITHIN, &SystemClock), stand.server.restart());
    restarted?;
    ensure!(report?.is_sound());
    Ok(())
}

#[tokio::test]
async fn a_start_goes_on_once_the_operator_has_created_the_topology() -> Result<()> {
    let spec = Spec::new(choices())?;
    let rights = Rights::new(&spec, Role::Both).print(RightsFormat::Nats);
    let server = Server::with(Options::default().user(Role::Both.user(), rights)).await?;
    let stand = Stand { server, spec };
    let check = check(&stand, Role::Both).await?;
    ensure!(refused(&check).await?.contains(&"partition.none"));
    let topology = Topology::new(stand.spec.clone())?;
    let (mut operator, shape) = (stand.operator(), Shape::default());
    let created = crate::stand::create(&mut operator, &topology, &shape);
    let (report, created) = tokio::join!(wait(&check, WITHIN, &SystemClock), created);
    created?;
    ensure!(report?.is_sound());
    Ok(())
}

#[tokio::test]
async fn a_slow_server_is_waited_for_and_a_silent_one_is_not_taken_for_an_empty_one() -> Result<()> {
    let stand = Stand::new().await?;
    let proxy = Tcp::start(stand.server.port()).await?;
    let connection = Connection::open(stand.connecting(Some(proxy.port()))).await?;
    let check = Check::new(&connection, &stand.spec, Role::Both);
    proxy.slow(Way::Both, Pace { delay: Duration::from_millis(100), bytes_per_second: Some(200_000) });
    ensure!(wait(&check, WITHIN, &SystemClock).await?.is_sound());

    proxy.black_hole(Way::ToClient);
    let failed = wait(&check, Duration::from_millis(500), &SystemClock).await.unwrap_err();
    ensure!(failed.findings().is_empty() && failed.class() == Class::Unavailable, "{failed:?}");
    proxy.heal();
    ensure!(wait(&check, WITHIN, &SystemClock).await?.is_sound());
    Ok(())
}

#[tokio::test]
async fn a_leader_that_died_leaves_nothing_missing() -> Result<()> {
    let mut own = choices();
    own.replicas = 3;
    let topology = Topology::new(Spec::new(own)?)?;
    let rights = Rights::new(&topology.spec, Role::Both).print(RightsFormat::Nats);
    let mut cluster = Cluster::with(Options::default().user(Role::Both.user(), rights)).await?;
    crate::stand::create(&mut cluster.operator(), &topology, &Shape::default()).await?;
    let leader = cluster.consumer_leader(STREAM, "wh-ingest-0").await?;
    // connected to another one than the leader that will die
    let survivor = (leader + 1) % 3;
    let mut options = wh_nats::Options::new([cluster.node(survivor).url()]);
    options.credentials = wh_nats::Credentials::Password {
        user: Role::Both.user().into(),
        password: wh_types::Secret::from(wh_testkit::nats::PASSWORD),
    };
    let check = Check::new(&Connection::open(options).await?, &topology.spec, Role::Ingest);
    ensure!(wait(&check, WITHIN, &SystemClock).await?.findings.is_empty(), "three copies leave nothing to recommend");
    cluster.node_mut(leader).process().kill()?;
    let mut unread = 0;
    let sound = || {
        let run = check.run();
        async {
            match run.await {
                Ok(report) if report.of(Severity::Required).next().is_some() => panic!("{report:#?}"),
                Ok(report) if report.is_sound() => Ok(()),
                Ok(report) => Err(report.findings.len()),
                Err(_) => Err(0),
            }
        }
    };
    // the first look comes before anybody can have been elected
    unread += usize::from(sound().await.is_err());
    until(WITHIN, "it is sound again", sound).await?;
    ensure!(unread == 1, "the death was not seen at all");
    Ok(())
}

struct Running {
    health: Health,
    faults: Faults,
    tasks: Tasks,
    stop: Stop,
}

async fn running(check: Check, every: Duration) -> Result<Running> {
    running_with(check, every, Faults::default()).await
}

async fn running_with(check: Check, every: Duration, faults: Faults) -> Result<Running> {
    let boot = wait(&check, WITHIN, &SystemClock).await?;
    let (tasks, stop) = (Tasks::new(), Stop::new());
    let recheck =
        Recheck { check, faults: faults.clone(), every, clock: Arc::new(SystemClock), entropy: Arc::new(OsEntropy) };
    let health = recheck.start(&boot, &tasks, stop.clone());
    Ok(Running { health, faults, tasks, stop })
}

async fn becomes(health: &Health, sound: bool) -> Result<()> {
    let mut watch = health.watch();
    let changed = tokio::time::timeout(WITHIN, watch.wait_for(|verdict| verdict.sound == sound)).await;
    changed.with_context(|| format!("{:?}", health.now()))??;
    Ok(())
}

#[tokio::test]
async fn what_an_operator_breaks_while_it_runs_is_seen_and_its_repair_too() -> Result<()> {
    let stand = Stand::new().await?;
    let running = running(check(&stand, Role::Ingest).await?, Duration::from_millis(200)).await?;
    ensure!(running.health.now().sound);
    let config = stand.operator().consumer_info(STREAM, "wh-ingest-1").await?["config"].take();
    stand.operator().delete_durable(STREAM, "wh-ingest-1").await?;
    becomes(&running.health, false).await?;
    let verdict = running.health.now();
    assert_eq!(verdict.reason.as_deref(), Some("consumer WH_INGEST_0/wh-ingest-1: durable_name: does not exist"));
    stand.operator().create_durable(STREAM, &config).await?;
    becomes(&running.health, true).await?;
    running.stop.give();
    running.tasks.wait().await;
    Ok(())
}

#[tokio::test]
async fn a_connection_that_breaks_changes_no_verdict() -> Result<()> {
    let mut stand = Stand::new().await?;
    let check = check(&stand, Role::Ingest).await?;
    let connection = check.connection().clone();
    let running = running(check, Duration::from_millis(100)).await?;
    stand.server.process().kill()?;
    until(WITHIN, "it is noticed", || async { !connection.is_connected() }).await?;
    stand.server.restart().await?;
    until(WITHIN, "it is connected again", || async { connection.is_connected() }).await?;
    ensure!(running.health.now().sound && !running.health.watch().has_changed()?, "{:?}", running.health.now());
    running.stop.give();
    running.tasks.wait().await;
    Ok(())
}

#[tokio::test]
async fn a_refusal_that_is_seen_in_passing_counts_at_once() -> Result<()> {
    let stand = Stand::new().await?;
    let check = check(&stand, Role::Ingest).await?;
    let connection = check.connection().clone();
    // so seldom that only the fault can be the cause of a check
    let running = running(check, Duration::from_secs(3_600)).await?;
    for subject in ["$JS.API.CONSUMER.DELETE.WH_INGEST_0.wh-ingest-0", "$KV.elsewhere.lease.ingest.m0"] {
        connection.send(subject, None, None, "".into()).await?;
        becomes(&running.health, false).await?;
        let reason = running.health.now().reason.context("a reason")?;
        assert_eq!(reason, format!("the server refuses us {subject}"));
        // the check that follows 5 to 15 s later finds nothing wrong
        becomes(&running.health, true).await?;
    }
    ensure!(running.faults.last().is_none());
    running.stop.give();
    running.tasks.wait().await;
    Ok(())
}

#[tokio::test]
async fn a_stream_that_is_gone_is_noticed_by_the_publish_that_misses_it() -> Result<()> {
    let stand = Stand::new().await?;
    let check = check(&stand, Role::Api).await?;
    let connection = check.connection().clone();
    let options = nats::Options { role: Role::Api, ..nats::Options::new(stand.spec.clone()) };
    let broker = nats::Broker::open(connection, options).await?;
    let running = running_with(check, Duration::from_secs(3_600), broker.faults().clone()).await?;
    stand.operator().delete_stream(STREAM).await?;
    let lost = block("t", 1);
    // the reason is read at once: the check that follows gives its own, maybe before the publish is given up
    let unsound = async {
        becomes(&running.health, false).await?;
        running.health.now().reason.context("a reason")
    };
    let (published, reason) = tokio::join!(publish(&broker, &lost), unsound);
    assert_eq!(published.unwrap_err().class(), Class::Unavailable);
    assert_eq!(reason?, "stream WH_INGEST_0 is gone");
    // the check that follows says what to do
    let mut watch = running.health.watch();
    tokio::time::timeout(
        WITHIN,
        watch.wait_for(|verdict| verdict.findings.iter().any(|one| one.rule == "partition.none")),
    )
    .await??;
    running.stop.give();
    running.tasks.wait().await;
    Ok(())
}

#[tokio::test]
async fn a_start_without_any_server_ends_when_its_wait_is_over() -> Result<()> {
    let spec = Spec::new(choices())?;
    let options = wh_nats::Options::new([format!("nats://127.0.0.1:{}", free_port()?)]);
    let connection = Connection::start(options).await?;
    let check = Check::new(&connection, &spec, Role::Both);
    let failed = wait(&check, Duration::from_secs(3), &SystemClock).await.unwrap_err();
    ensure!(matches!(&failed, Unsound::Unavailable { last_error: Some(_), .. }), "{failed:?}");
    connection.close().await;
    Ok(())
}
