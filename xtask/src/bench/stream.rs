//! `cargo xtask bench stream`: many subscribers to one table, the load generator on the same cores: how many rows reach
//! them, how late, and what each costs; and how soon a replay is there.
#![expect(clippy::print_stdout, reason = "it prints its tables")]
#![expect(clippy::cast_precision_loss, reason = "figures are shown with three digits")]

use super::{
    ingest::{Bench, median},
    load, machine,
};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::time::Duration;
use wh_testkit::clickhouse;

const TABLE: &str = "CREATE TABLE ticks (n UInt64, pad String) ENGINE = MergeTree ORDER BY n";
const STREAM: &str = "/v1/stream?table=ticks";
const INGEST: &str = "/v1/ingest?table=ticks";
/// Rows of a replay.
const REPLAYED: u64 = 100_000;

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Seconds for each line
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only lines with this in their name
    #[arg(long)]
    only: Option<String>,
    /// Bytes of a row
    #[arg(long, default_value_t = 128)]
    bytes: u64,
}

/// Subscribers and rows.
struct Shape {
    name: &'static str,
    connections: u64,
    /// A second.
    rate: u64,
    /// Of one request, and so of one block.
    rows: u64,
}

const SHAPES: &[Shape] = &[
    Shape { name: "10,000 subscribers, 15 rows/s, 5 a request", connections: 10_000, rate: 15, rows: 5 },
    Shape { name: "10,000 subscribers, 30 rows/s, 10 a request", connections: 10_000, rate: 30, rows: 10 },
    Shape { name: "10,000 subscribers, 60 rows/s, 20 a request", connections: 10_000, rate: 60, rows: 20 },
    Shape { name: "100 subscribers, 1,500 rows/s, 50 a request", connections: 100, rate: 1_500, rows: 50 },
    Shape { name: "100 subscribers, 3,000 rows/s, 100 a request", connections: 100, rate: 3_000, rows: 100 },
    Shape { name: "100 subscribers, 6,000 rows/s, 100 a request", connections: 100, rate: 6_000, rows: 100 },
];

/// What `wh-load stream` measured.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Measured {
    connections: u64,
    deliveries: u64,
    expected: u64,
    seconds: f64,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
    gaps: u64,
    ended: u64,
    cpu_us: u64,
    opening_kb: u64,
    rss_kb: u64,
}

/// What `wh-load replay` measured.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Replayed {
    rows: u64,
    seconds: f64,
    gaps: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let bench = Bench::prepare(false)?;
    raise_file_limit();
    println!("machine: {}", machine::line());
    println!(
        "The generator has its share of the same cores. Late: from the answer of ingest to the row at a subscriber. A row has\n\
         {} bytes. Medians of {} rounds of {} s.\n",
        args.bytes,
        args.rounds.max(1),
        args.seconds
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        println!(
            "{:<46} {:>12} {:>9} {:>9} {:>9} {:>11} {:>9} {:>6}",
            "", "deliveries/s", "p50 ms", "p99 ms", "max ms", "CPU us each", "KiB each", "missed"
        );
        for shape in SHAPES.iter().filter(|shape| args.only.as_ref().is_none_or(|only| shape.name.contains(only))) {
            let mut rounds = Vec::new();
            for _ in 0..args.rounds.max(1) {
                rounds.push(once(args, &bench, shape).await?);
            }
            tell(shape, &rounds);
        }
        if args.only.as_ref().is_none_or(|only| "replay".contains(only.as_str())) {
            replays(args, &bench).await?;
        }
        Ok(())
    })
}

fn tell(shape: &Shape, rounds: &[Measured]) {
    let of = |what: &dyn Fn(&Measured) -> f64| median(rounds.iter().map(what).collect());
    println!(
        "{:<46} {:>12.0} {:>9.1} {:>9.1} {:>9.1} {:>11.2} {:>9.1} {:>6}",
        shape.name,
        of(&|one| one.deliveries as f64 / one.seconds),
        of(&|one| one.p50_us as f64 / 1e3),
        of(&|one| one.p99_us as f64 / 1e3),
        of(&|one| one.max_us as f64 / 1e3),
        of(&|one| one.cpu_us as f64 / one.deliveries.max(1) as f64),
        of(&|one| one.opening_kb as f64 / one.connections as f64),
        rounds.iter().map(|one| one.expected - one.deliveries).sum::<u64>(),
    );
    let (gaps, ended) = rounds.iter().fold((0, 0), |(gaps, ended), one| (gaps + one.gaps, ended + one.ended));
    let rss = rounds.iter().map(|one| one.rss_kb).max().unwrap_or(0) >> 10;
    println!("{:<46} {gaps} gaps, {ended} streams ended, at most {rss} MiB resident", "");
}

async fn once(args: &Args, bench: &Bench, shape: &Shape) -> Result<Measured> {
    let engine = engine(bench).await?;
    let (mut process, port) =
        bench.wavehouse_with(&engine.url(), "  max_connections: 20000\n  max_streams: 15000\n", "").await?;
    let options = [
        ("address", format!("127.0.0.1:{port}")),
        ("path", STREAM.to_owned()),
        ("ingest", INGEST.to_owned()),
        ("connections", shape.connections.to_string()),
        ("rate", shape.rate.to_string()),
        ("rows", shape.rows.to_string()),
        ("seconds", args.seconds.to_string()),
        ("bytes", args.bytes.to_string()),
        ("pid", process.id().to_string()),
    ];
    let measured = load::run(&bench.bin.join("wh-load"), "stream", &options)?;
    process.stop(Duration::from_secs(30)).await?;
    engine.stop().await?;
    Ok(measured)
}

/// Everything that is there, to one subscriber: what is still in memory, and from the disk.
async fn replays(args: &Args, bench: &Bench) -> Result<()> {
    let engine = engine(bench).await?;
    let (mut process, port) = bench.wavehouse_with(&engine.url(), "", "").await?;
    let file = bench.fast.join("ticks.ndjson");
    let rows: String = (0..REPLAYED).map(|n| format!("{{\"n\":1{n:09},\"pad\":\"{n:0>100}\"}}\n")).collect();
    std::fs::write(&file, rows)?;
    let sent: load::Http = load::run(
        &bench.bin.join("wh-load"),
        "http",
        &[
            ("address", format!("127.0.0.1:{port}")),
            ("path", INGEST.to_owned()),
            ("file", file.display().to_string()),
            ("rows", "500".to_owned()),
            ("requests", (REPLAYED / 500).to_string()),
        ],
    )?;
    ensure!(sent.rows == REPLAYED, "{} of {REPLAYED} rows were stored", sent.rows);
    let mut times = Vec::new();
    let mut gaps = 0;
    for _ in 0..args.rounds.max(3) {
        let options = [
            ("address", format!("127.0.0.1:{port}")),
            ("path", format!("{STREAM}&since=1h")),
            ("expect", REPLAYED.to_string()),
        ];
        let one: Replayed = load::run(&bench.bin.join("wh-load"), "replay", &options)?;
        ensure!(one.rows >= REPLAYED, "{} of {REPLAYED} rows", one.rows);
        times.push(one.seconds);
        gaps += one.gaps;
    }
    process.stop(Duration::from_secs(30)).await?;
    engine.stop().await?;
    println!("\nreplay of {REPLAYED} rows to one subscriber: {:.3} s (aim 1), {gaps} gaps", median(times));
    Ok(())
}

async fn engine(bench: &Bench) -> Result<clickhouse::Server> {
    let engine = bench.engine().await?;
    engine.query(TABLE).await.context("the table")?;
    Ok(engine)
}

/// Each subscriber is a file handle, here and in the process: as many as this user may have.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if setrlimit(Resource::Nofile, limit).is_err() {
        println!("the limit of open files stays as it is; 10,000 subscribers need more");
    }
}
