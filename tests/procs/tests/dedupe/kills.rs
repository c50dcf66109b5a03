//! Each event once through kill -9: whatever a kill leaves open between a claim, a publish and a commit is found out when
//! the client sends the same ids again.

use procs::System;
use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use wh_testkit::{http, until};
use wh_types::Tasks;

const WAIT: Duration = Duration::from_secs(60);
/// Nothing is inserted while processes are killed: an insert that a kill cuts may double by itself.
const HELD: &str = "  dedupe:\n    enabled: true\n    id_field: id\ningest:\n  batch_wait: 1m\n";
const CLIENTS: u64 = 6;
const ROWS: u64 = 20;
const KILLS: u64 = 6;

/// What the clients have come to.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    /// Requests that were answered 200.
    done: AtomicU64,
    /// Requests that met a dead process or were told to come again.
    again: AtomicU64,
    duplicates: AtomicU64,
}

/// Sends batches of ids, each until it is told that all of them are stored. Two clients share each range of ids.
async fn client(url: String, number: u64, load: Arc<Load>) -> BTreeSet<u64> {
    let mut stored = BTreeSet::new();
    let mut batch = 0;
    while !load.stop.load(Ordering::Relaxed) {
        let first = (number / 2) * 1_000_000 + batch * ROWS;
        let body: String = (first..first + ROWS)
            .map(|id| format!("{{\"id\":{id},\"at\":\"2026-01-01T00:00:00Z\",\"note\":\"client {number}\"}}\n"))
            .collect();
        loop {
            let reply = http::post(url.clone(), body.clone().into_bytes())
                .header("content-type", "application/x-ndjson")
                .send()
                .await;
            match reply {
                Ok(reply) if reply.status == 200 => {
                    let answer: serde_json::Value = reply.json().unwrap();
                    let count = |name: &str| answer[name].as_u64().unwrap();
                    assert_eq!(count("accepted") + count("duplicates"), ROWS, "{answer}");
                    load.duplicates.fetch_add(count("duplicates"), Ordering::Relaxed);
                    break;
                }
                Ok(reply) => assert_eq!(reply.status, 503, "{}", reply.text()),
                Err(_) => {}
            }
            load.again.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        load.done.fetch_add(1, Ordering::Relaxed);
        stored.extend(first..first + ROWS);
        batch += 1;
    }
    stored
}

async fn until_more(load: &Load, more: u64) {
    let goal = load.done.load(Ordering::Relaxed) + more;
    until(WAIT, "more requests to be answered", || async {
        let done = load.done.load(Ordering::Relaxed);
        anyhow::ensure!(done >= goal, "{done} of {goal}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn kills_between_claim_publish_and_commit_store_each_event_once() {
    killed_over_and_over("dedupe: {backend: log}\n", KILLS).await;
}

#[tokio::test]
async fn with_sled_kills_between_claim_publish_and_commit_store_each_event_once() {
    killed_over_and_over("dedupe: {backend: sled}\n", KILLS / 2).await;
}

async fn killed_over_and_over(store: &str, kills: u64) {
    let mut system = System::with(&format!("{HELD}{store}")).await.unwrap();
    let (load, tasks) = (Arc::new(Load::default()), Tasks::new());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| tasks.spawn("client", client(system.url("/v1/ingest?table=events"), number, Arc::clone(&load))))
        .collect();
    for kill in 0..kills {
        until_more(&load, 20 + kill * 7).await;
        system.wavehouse.kill().unwrap();
        system.restart().await.unwrap();
    }
    until_more(&load, 20).await;
    load.stop.store(true, Ordering::Relaxed);
    let mut stored = BTreeSet::new();
    for client in clients {
        stored.extend(client.await.unwrap());
    }
    assert!(load.again.load(Ordering::Relaxed) > 0, "no request met a dead process: the kills tested nothing");
    assert!(load.duplicates.load(Ordering::Relaxed) > 0, "nothing was sent twice");

    // now they may be inserted
    assert!(system.wavehouse.stop(WAIT).await.unwrap().success());
    let file = system.dir().join("config.yaml");
    let config = fs::read_to_string(&file).unwrap().replace("batch_wait: 1m", "batch_wait: 50ms");
    fs::write(&file, config).unwrap();
    system.restart().await.unwrap();
    system.holds_ids(stored.len() as u64, WAIT).await.unwrap();
    let rows = system.number("SELECT count() FROM events").await.unwrap();
    assert_eq!(rows, stored.len() as u64, "each event once");
    assert!(system.wavehouse.stop(WAIT).await.unwrap().success());
}
