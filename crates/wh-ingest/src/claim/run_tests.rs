//! Several workers over one queue and one lease store, all in memory, in paused time.

use crate::{ClaimOptions, Memory, Options, Parts, Script, Worker};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use wh_coord::{Key, Leases, sim as leases};
use wh_mq::{Allowance, Broker, Unit, sim};
use wh_types::{
    Block, BlockId, Clock, Encoding, Epoch, Mono, SeededEntropy, SimClock, Stop, SystemClock, Table, Tasks, Tenant,
    Timestamp, frame,
};

const SHARDS: u32 = 8;

struct Bench {
    queue: sim::Broker,
    sink: Arc<Memory>,
    store: leases::Cluster,
    clock: Arc<SimClock>,
    next: u64,
}

struct Running {
    stop: Stop,
    tasks: Tasks,
    link: leases::Link,
    seed: u64,
}

fn now() -> Mono {
    SystemClock.now()
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(SimClock::new(Timestamp::from_millis(1_750_000_000_000)));
        let queue = sim::Broker::new(sim::Options {
            epoch: Epoch(7),
            shards: SHARDS,
            ack_wait: Duration::from_secs(60),
            duplicate_window: Duration::from_secs(120),
            default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(60) },
            dead_letter_share: 10,
            clock: clock.clone(),
        });
        Self { queue, sink: Arc::new(Memory::new()), store: leases::Cluster::new(), clock, next: 0 }
    }

    fn start(&self, seed: u64) -> Running {
        let (stop, tasks) = (Stop::new(), Tasks::new());
        let entropy = Arc::new(SeededEntropy::new(seed));
        let leases = self.store.join(wh_coord::Options {
            holder: format!("worker-{seed}"),
            duration: Duration::from_secs(15),
            clock: self.clock.clone(),
            entropy: entropy.clone(),
            tasks: Tasks::new(),
        });
        let link = leases.link();
        let parts = Parts {
            broker: Arc::new(self.queue.clone()),
            sinks: Arc::new(self.sink.clone()),
            clock: self.clock.clone(),
            entropy,
        };
        let worker = Worker::new(parts, Options::default())
            .with_claims(Arc::new(leases), ClaimOptions::default())
            .with_tasks(tasks.clone());
        let own = stop.clone();
        tasks.spawn("worker", async move { worker.run(own).await.unwrap() });
        Running { stop, tasks, link, seed }
    }

    /// Publishes rows `from..to` of a table as blocks of ten.
    async fn publish(&mut self, table: &str, from: u32, to: u32) {
        for first in (from..to).step_by(10) {
            let plain: String = (first..(first + 10).min(to)).map(|n| format!("{{\"n\":{n:06}}}\n")).collect();
            self.next += 1;
            let block = Block {
                id: BlockId(u128::from(self.next).to_be_bytes()),
                tenant: Tenant::default(),
                table: Table::new(table).unwrap(),
                received: Timestamp::from_millis(1_750_000_000_000),
                rows: u32::try_from(plain.lines().count()).unwrap(),
                decoded_bytes: u32::try_from(plain.len()).unwrap(),
                encoding: Encoding::Zstd,
                body: frame::encode(Encoding::Zstd, plain.as_bytes()).unwrap(),
                chain: None,
                trace: None,
            };
            for outcome in self.queue.publish(&[block]).await {
                outcome.unwrap();
            }
        }
    }

    /// What each member says to work on, and whether nothing is on its way.
    async fn shares(&self) -> (Vec<usize>, bool) {
        let looker = self.store.join(wh_coord::Options {
            holder: "looker".to_owned(),
            duration: Duration::from_secs(15),
            clock: self.clock.clone(),
            entropy: Arc::new(SeededEntropy::new(999)),
            tasks: Tasks::new(),
        });
        let seen = looker.observe(&Key::new("ingest").unwrap()).await.unwrap();
        let notes: Vec<_> = seen.values().map(|seen| super::note::Note::read(&seen.note)).collect();
        let still = notes.iter().all(|note| note.wanted.is_empty() && note.leaving.is_empty());
        let all: BTreeSet<Unit> = notes.iter().flat_map(|note| note.own.iter().copied()).collect();
        (notes.iter().map(|note| note.own.len()).collect(), still && all.len() == SHARDS as usize)
    }

    /// Waits until the units are shared out so; gives how long it took.
    async fn shared(&self, shares: &[usize]) -> Duration {
        let began = now();
        loop {
            let (mut found, still) = self.shares().await;
            found.sort_unstable();
            if still && found == shares {
                return now() - began;
            }
            assert!(now() - began < Duration::from_secs(120), "{found:?} instead of {shares:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn rows(&self, table: &str) -> Vec<String> {
        self.sink.rows(&Table::new(table).unwrap())
    }
}

impl Running {
    async fn stopped(self) -> Duration {
        let began = now();
        self.stop.give();
        self.tasks.wait().await;
        now() - began
    }
}

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| format!("{{\"n\":{n:06}}}")).collect()
}

const TABLES: [&str; 16] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];

#[tokio::test(start_paused = true)]
async fn units_are_shared_evenly_and_a_join_and_a_stop_keep_every_row_once_and_in_order() {
    let mut bench = Bench::new();
    let first = bench.start(1);
    bench.shared(&[8]).await;
    for table in TABLES {
        bench.publish(table, 0, 200).await;
    }
    let second = bench.start(2);
    let took = bench.shared(&[4, 4]).await;
    assert!(took < Duration::from_millis(2_500), "{took:?}");
    for table in TABLES {
        bench.publish(table, 200, 400).await;
    }
    let third = bench.start(3);
    bench.shared(&[2, 3, 3]).await;
    for table in TABLES {
        bench.publish(table, 400, 600).await;
    }
    assert!(first.stopped().await < Duration::from_secs(1));
    let took = bench.shared(&[4, 4]).await;
    assert!(took < Duration::from_millis(90), "{took:?}");
    bench.sink.wait_for(16 * 600).await;
    for table in TABLES {
        assert_eq!(bench.rows(table), numbers(0..600), "{table}");
    }
    second.stopped().await;
    bench.shared(&[8]).await;
    third.stopped().await;
    assert!(bench.store.is_empty(), "everybody resigned");
}

#[tokio::test(start_paused = true)]
async fn a_worker_cut_off_from_the_leases_gives_its_units_up_and_takes_them_again() {
    let mut bench = Bench::new();
    let (first, second) = (bench.start(1), bench.start(2));
    bench.shared(&[4, 4]).await;
    first.link.cut(true);
    let took = bench.shared(&[8]).await;
    assert!(took > Duration::from_secs(11) && took < Duration::from_secs(17), "after a lease: {took:?}");
    for table in TABLES {
        bench.publish(table, 0, 100).await;
    }
    bench.sink.wait_for(1_600).await;
    first.link.cut(false);
    bench.shared(&[4, 4]).await;
    for table in TABLES {
        bench.publish(table, 100, 200).await;
    }
    bench.sink.wait_for(3_200).await;
    for table in TABLES {
        assert_eq!(bench.rows(table), numbers(0..200), "{table}");
    }
    drop((first, second));
}

#[tokio::test(start_paused = true)]
async fn a_stop_with_a_dead_lease_store_takes_no_longer_than_its_budget() {
    let bench = Bench::new();
    let first = bench.start(1);
    bench.shared(&[8]).await;
    first.link.cut(true);
    assert_eq!(first.seed, 1);
    let took = first.stopped().await;
    assert!(took <= Duration::from_secs(6), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_frozen_batch_is_answered_before_its_unit_is_handed_over() {
    let mut bench = Bench::new();
    let first = bench.start(1);
    bench.shared(&[8]).await;
    // stored at the third try for all we know; the token keeps the rows single
    bench.sink.script([Script::LoseAnswer, Script::LoseAnswer, Script::LoseAnswer]);
    for table in TABLES {
        bench.publish(table, 0, 10).await;
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let second = bench.start(2);
    bench.shared(&[4, 4]).await;
    bench.sink.wait_for(160).await;
    for table in TABLES {
        assert_eq!(bench.rows(table), numbers(0..10), "{table}");
    }
    first.stopped().await;
    second.stopped().await;
}
