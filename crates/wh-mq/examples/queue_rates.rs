//! What the embedded queue does a second: publish, deliver and settle, recovery, replay. Prints a table with the disk's
//! own limit and the hand-over's from the same run. `cargo run --profile quick -p wh-mq --features embedded,sim --example queue_rates`
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods, missing_docs, reason = "a measurement")]

#[path = "../../wh-log/examples/handover/mod.rs"]
mod handover;

use bytes::Bytes;
use std::{
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};
use wh_mq::{Allowance, Broker, Budget, From, Happening, Receipt, Verdict, embedded};
use wh_types::{Block, BlockId, Encoding, OsEntropy, SystemClock, Table, Tenant, Timestamp};

const TABLES: usize = 16;
/// How often the disk alone and the queue take turns.
const TURNS: u32 = 8;

fn block(table: usize, rows: u32, body: &Bytes) -> Block {
    Block {
        id: BlockId::draw(&OsEntropy),
        tenant: Tenant::default(),
        table: Table::new(&format!("table_{table}")).unwrap(),
        received: Timestamp::default(),
        rows,
        decoded_bytes: 256 * rows,
        encoding: Encoding::Zstd,
        body: body.clone(),
        chain: None,
        trace: None,
    }
}

fn allowance() -> Allowance {
    Allowance { bytes: 1 << 40, table_bytes: 1 << 40, history: Duration::from_secs(60) }
}

/// Publishes from `writers` tasks, delivers and settles from every unit, for a while.
async fn run(broker: Arc<dyn Broker>, writers: usize, rows: u32, body: Bytes, span: Duration) -> (u64, Vec<u64>) {
    let tasks = wh_types::Tasks::new();
    let stop = wh_types::Stop::new();
    for unit in broker.units() {
        let (broker, stop) = (Arc::clone(&broker), stop.clone());
        drop(tasks.spawn("consume", async move {
            let mut feed = broker.feed(unit, Budget { rows: 200_000, bytes: 256 << 20 }).await.unwrap();
            let settle = feed.settle();
            let mut tokens = Vec::new();
            loop {
                let next = tokio::select! { biased; () = stop.wait() => break, next = feed.next() => next };
                let Some(delivery) = next.unwrap() else { break };
                tokens.push(delivery.token);
                if tokens.len() >= 64 {
                    settle.settle(&tokens, Verdict::Ack).await;
                    tokens.clear();
                }
            }
        }));
    }
    let started = Instant::now();
    let mut handles = Vec::new();
    for writer in 0..writers {
        let (broker, body) = (Arc::clone(&broker), body.clone());
        handles.push(tasks.spawn("publish", async move {
            let (mut stored, mut took) = (0_u64, Vec::new());
            while started.elapsed() < span {
                let block = block(writer % TABLES, rows, &body);
                let begun = Instant::now();
                let outcome = broker.publish(std::slice::from_ref(&block)).await.pop().unwrap();
                assert!(matches!(outcome.unwrap(), Receipt::Stored(_)));
                took.push(u64::try_from(begun.elapsed().as_micros()).unwrap());
                stored += 1;
            }
            (stored, took)
        }));
    }
    let (mut stored, mut took) = (0, Vec::new());
    for handle in handles {
        let (n, t) = handle.await.unwrap();
        stored += n;
        took.extend(t);
    }
    stop.give();
    tasks.wait().await;
    took.sort_unstable();
    (stored, took)
}

/// The disk alone: the same bytes in groups of `group` records, one write and one fdatasync each.
fn raw(dir: &std::path::Path, record: usize, group: usize, span: Duration) -> f64 {
    let mut file = std::fs::File::create(dir.join("raw")).unwrap();
    let bytes = vec![7_u8; record * group];
    let (started, mut groups, mut written) = (Instant::now(), 0_u64, 0_u64);
    while started.elapsed() < span {
        if written > 512 << 20 {
            file = std::fs::File::create(dir.join("raw")).unwrap();
            written = 0;
        }
        file.write_all(&bytes).unwrap();
        file.sync_data().unwrap();
        groups += 1;
        written += bytes.len() as u64;
    }
    (groups * group as u64) as f64 / started.elapsed().as_secs_f64()
}

/// Publishes 1,000 blocks of 500 rows a second and settles 400 blocks later; says every ten seconds what it takes.
async fn keep_steady(base: &std::path::Path, span: Duration) {
    let dir = tempfile::tempdir_in(base).unwrap();
    let mut options = embedded::Options::new(dir.path());
    options.default_allowance = Allowance { history: Duration::ZERO, ..allowance() };
    options.duplicate_window = Duration::from_secs(5);
    options.shards = 1;
    let broker = embedded::Broker::open(options).await.unwrap();
    let mut feed = broker.feed(broker.units()[0], Budget { rows: 1 << 30, bytes: 1 << 40 }).await.unwrap();
    let settle = feed.settle();
    let body = Bytes::from(vec![b'x'; 26_000]);
    let (started, mut told) = (Instant::now(), Instant::now());
    let (mut held, mut stored, mut before) = (std::collections::VecDeque::new(), 0_u64, 0);
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    while started.elapsed() < span {
        tick.tick().await;
        let blocks: Vec<Block> = (0..20).map(|n| block(n % TABLES, 500, &body)).collect();
        stored += broker.publish(&blocks).await.iter().filter(|outcome| outcome.is_ok()).count() as u64;
        for _ in 0..20 {
            held.push_back(feed.next().await.unwrap().unwrap().token);
        }
        let done: Vec<_> = held.drain(..held.len().saturating_sub(400)).collect();
        settle.settle(&done, Verdict::Ack).await;
        if told.elapsed() >= Duration::from_secs(10) {
            let disk = broker.status().await.unwrap().disk_bytes.unwrap();
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let rss = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default().to_owned();
            let rate = (stored - before) as f64 / told.elapsed().as_secs_f64();
            println!("steady: {rate:.0} blocks/s, {} MB on disk, {rss}", disk / 1_000_000);
            (told, before) = (Instant::now(), stored);
        }
    }
    broker.close().await;
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let span = Duration::from_secs(std::env::args().nth(1).map_or(3, |n| n.parse().unwrap()));
    // the third argument picks one part, for a profiler
    let only = std::env::args().nth(3);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let base = std::env::args().nth(2).map_or_else(std::env::temp_dir, Into::into);
    println!(
        "{:>8} {:>6} {:>8} | {:>12} {:>12} {:>7} {:>7} | {:>12} {:>12} {:>7} {:>7} {:>5}",
        "writers",
        "rows",
        "bytes",
        "blocks/s",
        "rows/s",
        "p50 us",
        "p99 us",
        "disk blk/s",
        "hand blk/s",
        "of disk",
        "of hand",
        "binds"
    );
    for (writers, rows, size) in
        [(1, 1, 265), (16, 1, 265), (256, 1, 265), (1, 500, 26_000), (16, 500, 26_000), (256, 500, 26_000)]
    {
        if !wanted(&format!("{writers}x{rows}")) {
            continue;
        }
        let dir = tempfile::tempdir_in(&base).unwrap();
        let mut options = embedded::Options::new(dir.path().join("queue"));
        options.default_allowance = allowance();
        let broker = runtime.block_on(embedded::Broker::open(options)).unwrap();
        // in turns: what else the machine is doing meets both
        let (mut limit, mut hand, mut stored, mut took) = (0.0, 0.0, 0, Vec::new());
        for _ in 0..TURNS {
            let group = if rows == 1 { writers } else { writers.min(160) };
            limit += raw(dir.path(), size, group, span / (2 * TURNS)) / f64::from(TURNS);
            hand += runtime.block_on(handover::rate(writers, span / (4 * TURNS))) / f64::from(TURNS);
            let queue: Arc<dyn Broker> = Arc::new(broker.clone());
            let body = Bytes::from(vec![b'x'; size]);
            let (more, times) = runtime.block_on(run(queue, writers, rows, body, span / TURNS));
            stored += more;
            took.extend(times);
        }
        took.sort_unstable();
        runtime.block_on(broker.close());
        let rate = stored as f64 / span.as_secs_f64();
        let at = |part: usize| took[(took.len() - 1) * part / 100];
        println!(
            "{writers:>8} {rows:>6} {size:>8} | {rate:>12.0} {:>12.0} {:>7} {:>7} | {limit:>12.0} {hand:>12.0} {:>7.2} \
             {:>7.2} {:>5}",
            rate * f64::from(rows),
            at(50),
            at(99),
            rate / limit,
            rate / hand,
            if limit < hand { "disk" } else { "hand" }
        );
    }
    // the state machine alone, over memory
    for (rows, size) in [(1, 265), (500, 26_000)] {
        if !wanted(&format!("memory{rows}")) {
            continue;
        }
        let (stored, _) = runtime.block_on(async {
            let broker = wh_mq::sim::Broker::new(wh_mq::sim::Options {
                epoch: wh_types::Epoch(1),
                shards: 8,
                ack_wait: Duration::from_secs(30),
                duplicate_window: Duration::from_secs(120),
                default_allowance: Allowance { history: Duration::ZERO, ..allowance() },
                dead_letter_share: 10,
                clock: Arc::new(SystemClock),
            });
            run(Arc::new(broker), 16, rows, Bytes::from(vec![b'x'; size]), span).await
        });
        println!("in memory, 16 writers, {rows} rows a block: {:.0} blocks/s", stored as f64 / span.as_secs_f64());
    }
    // a consumer that is 200,000 rows behind, for as long as the fourth argument says
    let steady = std::env::args().nth(4).map_or(0, |n| n.parse().unwrap());
    if steady > 0 && wanted("steady") {
        runtime.block_on(keep_steady(&base, Duration::from_secs(steady)));
    }
    // recovery and replay of 1,000,000 rows
    for (rows, count) in [(500_u32, 2_000_usize), (1, 1_000_000)] {
        if !wanted(&format!("recovery{rows}")) {
            continue;
        }
        let dir = tempfile::tempdir_in(&base).unwrap();
        let mut options = embedded::Options::new(dir.path());
        options.default_allowance = allowance();
        let body = Bytes::from(vec![b'x'; if rows == 1 { 265 } else { 26_000 }]);
        let cursor = runtime.block_on(async {
            let broker = embedded::Broker::open(options.clone()).await.unwrap();
            let mut first = None;
            for chunk in 0..count.div_ceil(1_000) {
                let blocks: Vec<Block> = (0..1_000.min(count)).map(|_| block(chunk % TABLES, rows, &body)).collect();
                for outcome in broker.publish(&blocks).await {
                    first.get_or_insert(outcome.unwrap().cursor());
                }
            }
            broker.close().await;
            first.unwrap()
        });
        let begun = Instant::now();
        let broker = runtime.block_on(embedded::Broker::open(options)).unwrap();
        println!(
            "recovery of {count} blocks of {rows} rows: {:?} (the queue says {:?})",
            begun.elapsed(),
            broker.recovery().took
        );
        let begun = Instant::now();
        let shown = runtime.block_on(async {
            let mut shown = 0_u64;
            let from = wh_types::Cursor { sequence: 0, ..cursor };
            for table in 0..TABLES {
                let table = Table::new(&format!("table_{table}")).unwrap();
                let mut history = broker.history(&Tenant::default(), &table, From::After(from)).await.unwrap();
                while let Some(Happening::Block(_, block)) = history.next().await.unwrap() {
                    shown += u64::from(block.rows);
                }
            }
            broker.close().await;
            shown
        });
        println!("replay of {shown} rows from disk: {:.0} rows/s", shown as f64 / begun.elapsed().as_secs_f64());
    }
}
