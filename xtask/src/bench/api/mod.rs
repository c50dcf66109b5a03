//! `cargo xtask bench api`: what a request costs by its shape and with ids kept; what reading and judging its records does
//! of that; what a bomb costs.
#![expect(clippy::print_stdout, reason = "it prints its table")]
#![expect(clippy::cast_precision_loss, reason = "figures are shown with three digits")]

mod bomb;
mod store;

use super::{
    ingest::{Bench, median},
    load::{self, Http},
    rows,
};
use crate::workspace::cargo;
use anyhow::{Context, Result, ensure};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use store::Store;
use wh_testkit::workspace;

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Seconds for each figure
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only shapes with this in their name; `none` for the figures beside them
    #[arg(long)]
    only: Option<String>,
}

/// A shape of requests.
struct Shape {
    name: &'static str,
    /// In each request.
    rows: u64,
    connections: u64,
    media: &'static str,
    stores: &'static [Store],
}

const NDJSON: &str = "application/x-ndjson";
const CSV: &str = "text/csv; header=absent";
const TSV: &str = "text/tab-separated-values; header=absent";

const fn shape(
    name: &'static str,
    rows: u64,
    connections: u64,
    media: &'static str,
    stores: &'static [Store],
) -> Shape {
    Shape { name, rows, connections, media, stores }
}

const SHAPES: &[Shape] = &[
    shape("single events, 256 connections", 1, 256, "application/json", store::ALL),
    shape("NDJSON of 500 rows, 8 connections", 500, 8, NDJSON, store::ALL),
    // an emulator of DynamoDB takes a thousand or two ids a second: 40,000 at a time are past every deadline
    shape("NDJSON of 10,000 rows, 4 connections", 10_000, 4, NDJSON, &[Store::Off, Store::Log, Store::Sled]),
    shape("CSV of 500 rows, 8 connections", 500, 8, CSV, &[Store::Off, Store::Log]),
    shape("CSV of 10,000 rows, 4 connections", 10_000, 4, CSV, &[Store::Off]),
    shape("TSV of 10,000 rows, 4 connections", 10_000, 4, TSV, &[Store::Off]),
];

/// The rows in each form.
struct Files {
    csv: PathBuf,
    tsv: PathBuf,
}

impl Files {
    fn of<'a>(&'a self, bench: &'a Bench, media: &str) -> &'a Path {
        match media {
            CSV => &self.csv,
            TSV => &self.tsv,
            _ => &bench.rows,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    crate::setup::ensure(&[crate::setup::Server::DynamoDb])?;
    let bench = Bench::prepare(true)?;
    let files = Files { csv: bench.fast.join("rows.csv"), tsv: bench.fast.join("rows.tsv") };
    rows::write_cells(&bench.rows, &files.csv, ',')?;
    rows::write_cells(&bench.rows, &files.tsv, '\t')?;
    println!("\nreading and judging alone, one thread (aim 0.8 us a row of 256 bytes):");
    scan()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        bomb::run(&bench).await?;
        measure(args, &bench, &files).await
    })
}

fn scan() -> Result<()> {
    let mut command = cargo();
    command.current_dir(workspace::root()?);
    command.args(["run", "-q", "--profile", "quick", "-p", "wh-api", "--example", "bench_scan"]);
    ensure!(command.status()?.success(), "bench_scan failed");
    Ok(())
}

/// What was measured of one shape and store, a round after the other.
type Rounds = Vec<Once>;

async fn measure(args: &Args, bench: &Bench, files: &Files) -> Result<()> {
    let wanted = |shape: &&Shape| args.only.as_ref().is_none_or(|only| shape.name.contains(only));
    let shapes: Vec<&Shape> = SHAPES.iter().filter(wanted).collect();
    if shapes.is_empty() {
        return Ok(());
    }
    let (mut straight, mut handler) = (Vec::new(), Vec::new());
    let mut measured: Vec<Vec<Rounds>> =
        shapes.iter().map(|shape| shape.stores.iter().map(|_| Rounds::new()).collect()).collect();
    // stores take turns, so that a machine that slows down does so for all of them
    for _ in 0..args.rounds.max(1) {
        let yardstick = bench.yardstick().await?;
        straight.push(yardstick.rows as f64 / yardstick.seconds);
        for (shape, stores) in shapes.iter().zip(&mut measured) {
            if shape.rows == 1 {
                handler.push(nothing(args, bench, files, shape).await?);
            }
            for (store, rounds) in shape.stores.iter().zip(stores) {
                rounds.push(once(args, bench, files, shape, *store).await?);
            }
        }
    }
    let (straight, handler) = (median(straight), median(handler));
    println!(
        "\nThe process takes rows and inserts them; its processor time is of both. Rows are sent without a pause, each with\n\
         an id of its own. Medians of {} rounds of {} s; `of off` compares runs of one round.",
        args.rounds.max(1),
        args.seconds
    );
    println!(
        "limit of batches: the same rows straight into the engine, one connection, 10,000 an insert: {straight:.0} rows/s"
    );
    if handler.is_finite() {
        println!("limit of single events: the same requests to a handler that does nothing: {handler:.0} a second");
    }
    println!(
        "\n{:<40} {:>9} {:>8} {:>9} {:>10} {:>8} {:>9} {:>7}",
        "", "rows/s", "p50 ms", "p99 ms", "CPU us/row", "refused", "of limit", "of off"
    );
    for (shape, stores) in shapes.iter().zip(&measured) {
        println!("{}", shape.name);
        let limit = if shape.rows == 1 { handler } else { straight };
        for (store, rounds) in shape.stores.iter().zip(stores) {
            line(store.name(), rounds, &stores[0], limit);
        }
    }
    Ok(())
}

fn line(name: &str, rounds: &[Once], off: &[Once], limit: f64) {
    let of = |figure: fn(&Once) -> f64| median(rounds.iter().map(figure).collect());
    let ratio = median(rounds.iter().zip(off).map(|(on, off)| on.rate / off.rate).collect());
    let rate = of(|once| once.rate);
    println!(
        "  {name:<38} {rate:>9.0} {:>8.2} {:>9.2} {:>10.2} {:>8.0} {:>9.2} {ratio:>7.2}",
        of(|once| once.p50),
        of(|once| once.p99),
        of(|once| once.cpu),
        of(|once| once.refused),
        rate / limit
    );
}

struct Once {
    rate: f64,
    p50: f64,
    p99: f64,
    cpu: f64,
    refused: f64,
}

async fn once(args: &Args, bench: &Bench, files: &Files, shape: &Shape, store: Store) -> Result<Once> {
    let engine = bench.engine().await?;
    let (more, emulator) = store.prepare().await?;
    let (mut process, port) = bench.wavehouse(&engine.url(), &more).await?;
    let before = cpu(process.id())?;
    let sent = load(args, bench, files, shape, port, "/v1/ingest?table=flights")?;
    let used = cpu(process.id())? - before;
    process.stop(Duration::from_secs(60)).await?;
    engine.stop().await?;
    if let Some(emulator) = emulator {
        emulator.stop().await?;
    }
    let stored = sent.rows as f64;
    ensure!(stored > 0.0, "{}, {}: nothing was stored: {sent:?}", shape.name, store.name());
    Ok(Once {
        rate: stored / sent.seconds,
        p50: sent.p50_us as f64 / 1e3,
        p99: sent.p99_us as f64 / 1e3,
        cpu: used / stored * 1e6,
        refused: sent.refused as f64,
    })
}

/// Requests a second to a handler that does nothing.
async fn nothing(args: &Args, bench: &Bench, files: &Files, shape: &Shape) -> Result<f64> {
    let (mut process, port) = bench.handler().await?;
    let sent = load(args, bench, files, shape, port, "/ids")?;
    process.stop(Duration::from_secs(10)).await?;
    Ok(sent.ok as f64 / sent.seconds)
}

fn load(args: &Args, bench: &Bench, files: &Files, shape: &Shape, port: u16, path: &str) -> Result<Http> {
    load::run::<Http>(
        &bench.bin.join("wh-load"),
        "http",
        &[
            ("file", files.of(bench, shape.media).display().to_string()),
            ("address", format!("127.0.0.1:{port}")),
            ("path", path.to_owned()),
            ("content-type", shape.media.to_owned()),
            ("rows", shape.rows.to_string()),
            ("connections", shape.connections.to_string()),
            ("seconds", args.seconds.to_string()),
            ("ids", true.to_string()),
        ],
    )
}

/// Seconds of processor time that a process has used. Linux counts them in hundredths.
fn cpu(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // the second field is the name, in parentheses; 14 and 15 of all are user and system time
    let fields = stat.rsplit(')').next().context("no stat")?.split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}
