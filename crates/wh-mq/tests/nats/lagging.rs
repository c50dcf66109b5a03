//! Copies that lag, and ids that are being decided: what a cluster answers only at certain moments, made to last.

use crate::{
    raw::Raw,
    stand::{Stand, block, choices, create, publish, table, tenant},
    three::Three,
};
use anyhow::{Context as _, Result, ensure};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use wh_mq::{Broker as _, From, Happening, nats};
use wh_nats::{Connection, Kind, Publisher, err_code};
use wh_testkit::nats::{Options, Server, Shape};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology};
use wh_types::{Class, Cursor, Tasks, Timestamp};

const SECOND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(60);
/// How the process calls JetStream, which only the one between it and the server hears.
const DOMAIN: &str = "copy";
const BETWEEN: &str = "between";

/// Answers for the history's copies, which know nothing so often, and are up to date after that. Everything else is passed
/// on: the server answers the process itself.
async fn between(mut raw: Raw, empty: Arc<AtomicU32>) -> Result<()> {
    raw.send(format!("SUB $JS.{DOMAIN}.API.> 1\r\n").as_bytes()).await?;
    loop {
        let line = raw.line().await?;
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["PING"] => raw.send(b"PONG\r\n").await?,
            ["MSG", subject, _, reply, length] => {
                let body = raw.body(length.parse()?).await?;
                let tail = subject.strip_prefix(&format!("$JS.{DOMAIN}.API.")).context("not asked for")?;
                let lag = |left: u32| left.checked_sub(1);
                let of_history = tail.starts_with("DIRECT.GET.WH_HISTORY");
                if of_history && empty.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lag).is_ok() {
                    let headers = "NATS/1.0 404 Message Not Found\r\n\r\n";
                    raw.send(format!("HPUB {reply} {0} {0}\r\n{headers}\r\n", headers.len()).as_bytes()).await?;
                } else {
                    let mut bytes = format!("PUB $JS.API.{tail} {reply} {}\r\n", body.len()).into_bytes();
                    bytes.extend(body.iter().chain(b"\r\n"));
                    raw.send(&bytes).await?;
                }
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_copy_of_the_history_that_lags_hides_nothing() -> Result<()> {
    let spec = Spec::new(Choices { js_domain: Some(DOMAIN.to_owned()), ..choices() })?;
    let rights = Rights::new(&spec, Role::Both).print(RightsFormat::Nats);
    let server = Server::with(Options::default().user(Role::Both.user(), rights).user(BETWEEN, "")).await?;
    let plain = Spec::new(choices())?;
    create(&mut server.operator(), &Topology::new(plain.clone())?, &Shape::default()).await?;
    let stand = Stand { server, spec: plain };
    let empty = Arc::new(AtomicU32::new(0));
    let (raw, answers) = (Raw::connect_as(&stand, BETWEEN).await?, Arc::clone(&empty));
    let tasks = Tasks::new();
    // it ends with the server
    drop(tasks.spawn("between", async move { drop(between(raw, answers).await) }));

    let writer = stand.broker().await?;
    let blocks: Vec<_> = (0..5).map(|_| block("t", 2)).collect();
    let mut cursors = Vec::new();
    for outcome in writer.publish(&blocks).await {
        cursors.push(outcome?.cursor());
    }
    let mut connecting = stand.connecting(None);
    connecting.js_domain = Some(DOMAIN.to_owned());
    let connection = Connection::open(connecting).await?;
    let reading = nats::Broker::open(connection, nats::Options::new(spec)).await?;

    // one empty answer after another, at each step of the way
    for lag in [1, 2, 3, 7] {
        empty.store(lag, Ordering::SeqCst);
        let from = From::After(Cursor { sequence: 0, ..cursors[0] });
        let mut history = reading.history(&tenant(), &table("t"), from).await?;
        let mut shown = Vec::new();
        loop {
            match tokio::time::timeout(SOON, history.next()).await??.context("the end")? {
                Happening::Block(cursor, _) => shown.push(cursor),
                Happening::Live => break,
                Happening::Gap(gap) => anyhow::bail!("{gap:?} after {lag} empty answers"),
            }
        }
        ensure!(shown == cursors, "{shown:?} after {lag} empty answers");
        ensure!(empty.load(Ordering::SeqCst) == 0, "nobody was told of a copy that lags");
    }
    // one that knows nothing for good is an error that can be tried again, and no end of the history
    empty.store(u32::MAX, Ordering::SeqCst);
    let since = From::Time(Timestamp::from_millis(0));
    let mut history = reading.history(&tenant(), &table("t"), since).await?;
    let error = tokio::time::timeout(SOON, history.next()).await?.unwrap_err();
    ensure!(error.class() == Class::Unavailable, "{error:?}");
    Ok(())
}

#[tokio::test]
async fn an_id_that_is_being_decided_is_asked_for_until_it_is_and_stored_once() -> Result<()> {
    let mut three = Three::new().await?;
    let stream = three.stream();
    // a leader that is alone for long gives up before it is asked: then with another block
    for _ in 0..5 {
        let leader = three.cluster.stream_leader(&stream).await?;
        let connection = Connection::open(three.connecting(leader)).await?;
        let broker = nats::Broker::open(connection.clone(), nats::Options::new(three.spec.clone())).await?;
        let publisher = Publisher::open(&connection).await?;
        publish(&broker, &block("t", 1)).await?;
        let before = three.cluster.operator().stream_info(&stream).await?["state"]["last_seq"].as_u64();
        let others: Vec<usize> = (0..3).filter(|number| *number != leader).collect();
        for number in &others {
            three.cluster.node_mut(*number).process().pause()?;
        }
        let waiting = block("t", 2);
        let ask = || {
            let headers = [("Nats-Msg-Id", waiting.id)].into_iter().collect();
            publisher.publish(&format!("wh.ingest.0.0.{}.t", tenant()), headers, waiting.body.clone(), SECOND / 2)
        };
        let (first, second) = (ask().await, ask().await);
        let in_process = matches!(first.map_err(|error| error.kind().clone()), Err(Kind::Timeout))
            && second.is_err_and(|error| error.is_api(err_code::ID_IN_PROCESS));
        let publishing = publish(&broker, &waiting);
        tokio::pin!(publishing);
        // told the same, it asks on
        let early = tokio::time::timeout(SECOND / 4, &mut publishing).await;
        for number in &others {
            three.cluster.node_mut(*number).process().resume()?;
        }
        if !in_process {
            continue;
        }
        ensure!(early.is_err(), "nothing is decided: {early:?}");
        // an election may follow, and take longer than the budget
        if let Err(error) = publishing.await {
            ensure!(matches!(error.class(), Class::Unknown | Class::Unavailable), "{error:?}");
            let again = || publish(&broker, &waiting);
            wh_testkit::until(SOON, "it is decided", again).await?;
        }
        let after = three.cluster.operator().stream_info(&stream).await?["state"]["last_seq"].as_u64();
        ensure!(after == before.map(|before| before + 1), "{before:?} and then {after:?}: stored once");
        return Ok(());
    }
    anyhow::bail!("no id was in process")
}
