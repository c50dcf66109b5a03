//! Under load: a writer goes on while clients come, go at any place and come back by their last id. Each has every row
//! once, in order, and nobody is told of a gap.

use super::{Reading, resume};
use crate::rig::{Rig, Setup, get};
use std::{ops::Range, sync::Arc, time::Duration};
use tokio::time::timeout;
use wh_api::ApiOptions;
use wh_mq::{Allowance, Broker, embedded, sim};
use wh_types::{Entropy, Epoch, SeededEntropy, SystemClock};

const ROWS: u64 = 6_000;
/// So many are there before anybody reads.
const BEFORE: u64 = 1_000;
const CLIENTS: u64 = 6;
/// So long nothing takes.
const WAIT: Duration = Duration::from_secs(120);
const PATH: &str = "/v1/stream?table=t";

fn below(entropy: &SeededEntropy, most: u64) -> u64 {
    entropy.next_u64() % most
}

/// Posts rows in order, in requests of different sizes.
async fn write(rig: &Rig, rows: Range<u64>) {
    let entropy = SeededEntropy::new(rows.start);
    let mut next = rows.start;
    while next < rows.end {
        let end = rows.end.min(next + 1 + below(&entropy, 40));
        let lines = (next..end).map(|n| format!("{{\"id\":{n}}}\n")).collect::<String>();
        let reply = rig.lines(lines).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        next = end;
        tokio::task::yield_now().await;
    }
}

/// Reads all rows over many connections; says how many, and how many rows were marked.
async fn read(rigs: &[Rig], client: u64) -> (u64, u64) {
    let entropy = SeededEntropy::new(100 + client);
    let (mut next, mut id, mut connections, mut replayed) = (0, None::<String>, 0, 0);
    while next < ROWS {
        let rig = &rigs[usize::try_from(below(&entropy, rigs.len() as u64)).unwrap()];
        let request = match &id {
            Some(id) => resume(PATH, id),
            None => get(&format!("{PATH}&since=1d")),
        };
        let mut reading = Reading::begin(rig, request).await;
        connections += 1;
        // some go at once, some stay until they are live and longer, some do not read for a while
        let (mut left, mut live) = (below(&entropy, 400), false);
        while left > 0 && next < ROWS {
            let event = timeout(WAIT, reading.event()).await.expect("no event came");
            left -= 1;
            if below(&entropy, 16) == 0 {
                tokio::task::yield_now().await;
            }
            match event.kind.as_str() {
                "row" => {
                    assert_eq!(event.data, format!("{{\"id\":{next}}}"), "connection {connections}, after {id:?}");
                    assert!(!(live && event.replay), "{event:?}: it was live");
                    replayed += u64::from(event.replay);
                    next += 1;
                }
                "ready" => live = true,
                // too slow for the small ring: the rows come all the same
                "gap" if event.value()["reason"] == "slow" => live = false,
                _ => panic!("{event:?}"),
            }
            id = event.id.or(id);
        }
    }
    (connections, replayed)
}

async fn holds(queue: Arc<dyn Broker>) {
    // one ring is small and is fallen out of, and two histories at a time are fewer than clients
    let options = |stream_bytes| ApiOptions { stream_bytes, max_replays: 2, ..ApiOptions::default() };
    let rig = |bytes| Rig::with(Setup { queue: Some(Arc::clone(&queue)), options: options(bytes), ..Setup::default() });
    let rigs: Arc<[Rig]> = [rig(16 << 20), rig(1)].into();
    write(&rigs[0], 0..BEFORE).await;
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let rigs = Arc::clone(&rigs);
        clients.spawn(async move { read(&rigs, client).await });
    }
    write(&rigs[0], BEFORE..ROWS).await;
    let (mut connections, mut replayed) = (0, 0);
    while let Some(client) = clients.join_next().await {
        let (its, marked) = client.unwrap();
        connections += its;
        replayed += marked;
    }
    assert!(connections > CLIENTS * 10, "{connections} connections");
    assert!(replayed >= CLIENTS * 100, "{replayed} rows were replayed");
}

fn allowance() -> Allowance {
    Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(600) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_queue_in_memory_nobody_misses_or_doubles_a_row() {
    holds(Arc::new(sim::Broker::new(sim::Options {
        epoch: Epoch(0xe),
        shards: 1,
        ack_wait: Duration::from_secs(60),
        duplicate_window: Duration::from_secs(120),
        default_allowance: allowance(),
        dead_letter_share: 10,
        clock: Arc::new(SystemClock),
    })))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_queue_on_disk_nobody_misses_or_doubles_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let options = embedded::Options { shards: 1, default_allowance: allowance(), ..embedded::Options::new(dir.path()) };
    let queue = Arc::new(embedded::Broker::open(options).await.unwrap());
    holds(Arc::clone(&queue) as Arc<dyn Broker>).await;
    queue.close().await;
}
