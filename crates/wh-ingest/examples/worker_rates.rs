//! Figures of the worker: CPU a row over a sink that takes everything, rows a second into ClickHouse beside a plain
//! client, what a bad row costs, many tables. Run by `cargo xtask bench worker`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints and fails loudly")]
#![allow(clippy::cast_precision_loss, reason = "figures are shown with three digits")]
#![allow(clippy::disallowed_methods, reason = "a bench measures with the machine's clock")]

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use wh_clickhouse::Client;
use wh_ingest::{ClickHouse, Insert, Options, Parts, Sink, SinkError, Sinks, Worker};
use wh_mq::{Allowance, Broker, sim};
use wh_testkit::{
    clickhouse::{Database, database},
    fault::{Kind, Proxy},
};
use wh_types::{Block, BlockId, Encoding, Epoch, OsEntropy, Stop, SystemClock, Table, Tasks, Tenant, Timestamp, frame};

/// Takes everything and keeps nothing.
#[derive(Debug, Default)]
struct Null(AtomicU64);

#[async_trait]
impl Sink for Null {
    fn pool(&self) -> &str {
        "null"
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), SinkError> {
        self.0.fetch_add(insert.rows, Ordering::Relaxed);
        Ok(())
    }
}

fn broker() -> sim::Broker {
    sim::Broker::new(sim::Options {
        epoch: Epoch(7),
        shards: 4,
        ack_wait: Duration::from_secs(60),
        duplicate_window: Duration::from_secs(1),
        default_allowance: Allowance { bytes: 1 << 40, table_bytes: 1 << 40, history: Duration::ZERO },
        dead_letter_share: 10,
        clock: Arc::new(SystemClock),
    })
}

/// A row of 256 bytes.
fn row(id: u64) -> String {
    let noise = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let head = format!("{{\"id\":{id},\"a\":{},\"s\":\"{noise:016x}", noise % 100_000);
    let pad = 253 - head.len();
    format!("{head}{}\"}}", &"the quick brown fox jumps over the lazy dog and runs away from it ".repeat(4)[..pad])
}

fn block(table: &str, rows: &[String]) -> Block {
    let plain = rows.iter().map(|row| format!("{row}\n")).collect::<String>();
    Block {
        id: BlockId::draw(&OsEntropy),
        tenant: Tenant::default(),
        table: Table::new(table).unwrap(),
        received: Timestamp::from_millis(1_750_000_000_000),
        rows: u32::try_from(rows.len()).unwrap(),
        decoded_bytes: u32::try_from(plain.len()).unwrap(),
        encoding: Encoding::Zstd,
        body: frame::encode(Encoding::Zstd, plain.as_bytes()).unwrap(),
        chain: None,
        trace: None,
    }
}

fn blocks(table: &str, ids: Range<u64>) -> Vec<Block> {
    let all: Vec<String> = ids.map(row).collect();
    all.chunks(500).map(|rows| block(table, rows)).collect()
}

async fn publish(broker: &sim::Broker, blocks: &[Block]) {
    for outcome in broker.publish(blocks).await {
        outcome.unwrap();
    }
}

struct Running {
    stop: Stop,
    tasks: Tasks,
}

fn work(broker: &sim::Broker, sinks: Arc<dyn Sinks>, options: Options) -> Running {
    let (stop, tasks) = (Stop::new(), Tasks::new());
    let parts =
        Parts { broker: Arc::new(broker.clone()), sinks, clock: Arc::new(SystemClock), entropy: Arc::new(OsEntropy) };
    let (worker, stopped) = (Worker::new(parts, options), stop.clone());
    drop(tasks.spawn("worker", async move { worker.run(stopped).await.unwrap() }));
    Running { stop, tasks }
}

impl Running {
    async fn end(self) {
        self.stop.give();
        self.tasks.wait().await;
    }
}

async fn settled(broker: &sim::Broker) {
    loop {
        let status = broker.status().await.unwrap();
        if status.tenants.values().filter_map(|tenant| tenant.unsettled_rows).sum::<u64>() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// CPU time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn client(database: &Database, url: String, connections: usize) -> Client {
    let endpoint = database.endpoint();
    Client::new(wh_clickhouse::Options {
        url,
        database: database.name().into(),
        user: endpoint.user_name().into(),
        password: Some(endpoint.password().into()),
        max_connections: connections,
        ..wh_clickhouse::Options::default()
    })
    .unwrap()
}

fn sink(client: Client) -> Arc<dyn Sinks> {
    Arc::new(Arc::new(ClickHouse::new(client, None, Arc::new(SystemClock))))
}

async fn cpu_a_row(block_rows: u64, count: u64) {
    let (broker, null) = (broker(), Arc::new(Null::default()));
    // the same bodies again and again: what a block holds is nothing to the worker
    let some: Vec<String> = (0..block_rows).map(row).collect();
    let one = block("t", &some);
    let all: Vec<Block> = (0..count).map(|_| Block { id: BlockId::draw(&OsEntropy), ..one.clone() }).collect();
    for some in all.chunks(100) {
        publish(&broker, some).await;
    }
    drop(all);
    let (rows, began, before) = (count * block_rows, Instant::now(), cpu());
    let running = work(&broker, Arc::new(null.clone()), Options::default());
    settled(&broker).await;
    let (took, used) = (began.elapsed(), cpu() - before);
    running.end().await;
    assert_eq!(null.0.load(Ordering::Relaxed), rows);
    println!(
        "worker alone, {block_rows} rows of 256 bytes a block: {:.3} µs of CPU a row (aim 0.6), {:.1} µs a block, {:.1} \
         million rows/s",
        used.as_secs_f64() * 1e6 / rows as f64,
        used.as_secs_f64() * 1e6 / count as f64,
        rows as f64 / took.as_secs_f64() / 1e6
    );
}

const TABLE: &str = "(id UInt64, a UInt32, s String) ENGINE = MergeTree ORDER BY id";

async fn beside_a_client(rounds: usize) {
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let database = database().await.unwrap();
        for table in ["straight", "t"] {
            database.query(&format!("CREATE TABLE {table} {TABLE}")).await.unwrap();
        }
        let rows = 1_000_000;
        let all = blocks("t", 0..rows);
        let one = client(&database, database.url().into(), 1);
        let straight = Table::new("straight").unwrap();
        let began = Instant::now();
        for batch in all.chunks(20) {
            let frames: Vec<Bytes> = batch.iter().map(|block| block.body.clone()).collect();
            let insert = wh_clickhouse::Insert {
                table: &straight,
                columns: None,
                encoding: Encoding::Zstd,
                frames: &frames,
                rows: 10_000,
                token: None,
                settings: &[],
            };
            one.insert(insert).await.unwrap();
        }
        let plain = rows as f64 / began.elapsed().as_secs_f64();
        let broker = broker();
        publish(&broker, &all).await;
        let began = Instant::now();
        let options = Options { batch_max_rows: 10_000, ..Options::default() };
        let running = work(&broker, sink(client(&database, database.url().into(), 4)), options);
        settled(&broker).await;
        let through = rows as f64 / began.elapsed().as_secs_f64();
        running.end().await;
        assert_eq!(database.query("SELECT count() FROM t").await.unwrap().trim(), rows.to_string());
        println!(
            "round {}: plain client {plain:.0} rows/s, through the worker {through:.0}, ratio {:.2}",
            round + 1,
            through / plain
        );
        ratios.push(through / plain);
    }
    ratios.sort_by(f64::total_cmp);
    println!("into ClickHouse beside a plain client in the same batches: {:.2} (aim 0.90)", ratios[ratios.len() / 2]);
}

/// Notes when an insert was first refused and when one was last stored.
#[derive(Debug)]
struct Timed {
    inner: Arc<dyn Sink>,
    refused: Mutex<Option<Instant>>,
    stored: Mutex<Option<Instant>>,
}

#[async_trait]
impl Sink for Timed {
    fn pool(&self) -> &str {
        self.inner.pool()
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), SinkError> {
        let outcome = self.inner.insert(insert).await;
        match outcome {
            Ok(()) => drop(self.stored.lock().replace(Instant::now())),
            Err(_) => drop(self.refused.lock().get_or_insert_with(Instant::now)),
        }
        outcome
    }
}

/// 5,000 rows of which one is bad, as a batch that waits its second and as one that is full at once.
async fn one_bad_row(options: Options) {
    let database = database().await.unwrap();
    database.query(&format!("CREATE TABLE t {TABLE}")).await.unwrap();
    let proxy = Proxy::start(database.url()).await.unwrap();
    let mut rows: Vec<String> = (0..5_000).map(row).collect();
    rows[3_333] = rows[3_333].replacen("\"a\":", "\"a\":\"x\",\"b\":", 1);
    let bad: Vec<Block> = rows.chunks(500).map(|rows| block("t", rows)).collect();
    let broker = broker();
    let clickhouse = ClickHouse::new(client(&database, proxy.url(), 4), None, Arc::new(SystemClock));
    let timed = Arc::new(Timed { inner: Arc::new(clickhouse), refused: Mutex::default(), stored: Mutex::default() });
    let size = options.batch_rows;
    let running = work(&broker, Arc::new(timed.clone()), options);
    let began = Instant::now();
    publish(&broker, &bad).await;
    settled(&broker).await;
    let took = began.elapsed();
    running.end().await;
    let stored = database.query("SELECT count() FROM t").await.unwrap();
    let (refused, last) = (timed.refused.lock().unwrap(), timed.stored.lock().unwrap());
    println!(
        "one bad row in 5,000, batches of {size}: {} good rows stored {} ms after they were published (aim 1,000), {} ms \
         after the first refusal; all settled after {} ms; {} requests (aim 30)",
        stored.trim(),
        (last - began).as_millis(),
        (last - refused).as_millis(),
        took.as_millis(),
        proxy.stats().requests(Kind::Insert)
    );
}

/// Every second row bad: how many of them are found and parked a second.
async fn every_second_row_bad() {
    let database = database().await.unwrap();
    database.query(&format!("CREATE TABLE t {TABLE}")).await.unwrap();
    let proxy = Proxy::start(database.url()).await.unwrap();
    let mut rows: Vec<String> = (0..2_000).map(row).collect();
    for text in rows.iter_mut().step_by(2) {
        *text = text.replacen("\"a\":", "\"a\":\"x\",\"b\":", 1);
    }
    let bad: Vec<Block> = rows.chunks(500).map(|rows| block("t", rows)).collect();
    let broker = broker();
    let running = work(&broker, sink(client(&database, proxy.url(), 4)), Options::default());
    publish(&broker, &bad).await;
    let (began, used) = (Instant::now(), cpu());
    settled(&broker).await;
    let (took, used) = (began.elapsed(), cpu() - used);
    running.end().await;
    let requests = proxy.stats().requests(Kind::Insert);
    println!(
        "every second row of 2,000 bad: {:.0} bad rows/s, {:.1} requests and {:.1} ms of CPU for each (with the proxy's)",
        1_000.0 / took.as_secs_f64(),
        requests as f64 / 1_000.0,
        used.as_secs_f64()
    );
}

async fn many_tables(seconds: u64) {
    let database = database().await.unwrap();
    for n in 0..200 {
        database.query(&format!("CREATE TABLE t{n} {TABLE}")).await.unwrap();
    }
    let broker = broker();
    let running = work(&broker, sink(client(&database, database.url().into(), 16)), Options::default());
    let (before, began) = (cpu(), Instant::now());
    let mut beat = tokio::time::interval(Duration::from_millis(100));
    for tick in 0..seconds * 10 {
        beat.tick().await;
        for n in 0..200 {
            publish(&broker, &blocks(&format!("t{n}"), tick * 10..tick * 10 + 10)).await;
        }
    }
    let (used, took) = (cpu() - before, began.elapsed());
    settled(&broker).await;
    running.end().await;
    let parts = "SELECT count() FROM system.part_log WHERE database = currentDatabase() AND event_type = 'NewPart'";
    database.query("SYSTEM FLUSH LOGS").await.unwrap();
    let parts: f64 = database.query(parts).await.unwrap().trim().parse().unwrap();
    let active = "SELECT max(n) FROM (SELECT count() AS n FROM system.parts WHERE database = currentDatabase() AND active GROUP BY table)";
    println!(
        "200 tables at 100 rows/s: {:.0} new parts a table a minute, at most {} active; {:.0} % of a core with making the \
         rows; {:.0} MiB resident",
        parts / 200.0 / took.as_secs_f64() * 60.0,
        database.query(active).await.unwrap().trim(),
        used.as_secs_f64() / took.as_secs_f64() * 100.0,
        resident_mib()
    );
}

async fn idle_tables() {
    let (broker, null) = (broker(), Arc::new(Null::default()));
    let running = work(&broker, Arc::new(null.clone()), Options::default());
    let before = resident_mib();
    for n in 0..5_000 {
        publish(&broker, &[block(&format!("table_{n}"), &[row(n)])]).await;
    }
    settled(&broker).await;
    let (with, began, used) = (resident_mib(), Instant::now(), cpu());
    tokio::time::sleep(Duration::from_secs(10)).await;
    println!(
        "5,000 tables with a row each: {:.1} MiB more resident, then idle at {:.2} % of a core",
        with - before,
        (cpu() - used).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0
    );
    running.end().await;
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    idle_tables().await;
    one_bad_row(Options::default()).await;
    one_bad_row(Options { batch_rows: 5_000, ..Options::default() }).await;
    every_second_row_bad().await;
    many_tables(30).await;
    beside_a_client(5).await;
    cpu_a_row(500, 100_000).await;
    cpu_a_row(10, 100_000).await;
}
