//! `cargo xtask bench api`: what a request costs by its shape, and what reading and judging its records does of that.
#![expect(clippy::print_stdout, reason = "it prints its table")]
#![expect(clippy::cast_precision_loss, reason = "figures are shown with three digits")]

use super::{
    ingest::{Bench, median},
    load::{self, Http},
    rows,
};
use anyhow::{Context, Result, ensure};
use std::{path::Path, process::Command, time::Duration};
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
}

/// A shape of requests: rows in each, connections, and the form.
const SHAPES: &[(&str, u64, u64, &str)] = &[
    ("single events, 256 connections", 1, 256, "application/json"),
    ("NDJSON of 500 rows, 8 connections", 500, 8, "application/x-ndjson"),
    ("NDJSON of 10,000 rows, 4 connections", 10_000, 4, "application/x-ndjson"),
    ("CSV of 500 rows, 8 connections", 500, 8, "text/csv; header=absent"),
    ("CSV of 10,000 rows, 4 connections", 10_000, 4, "text/csv; header=absent"),
];

pub(crate) fn run(args: &Args) -> Result<()> {
    let bench = Bench::prepare()?;
    let csv = bench.fast.join("rows.csv");
    rows::write_csv(&bench.rows, &csv)?;
    println!("\nreading and judging alone, one thread (aim 0.8 us a row of 256 bytes):");
    scan()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(args, &bench, &csv))
}

fn scan() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace::root()?);
    command.args(["run", "-q", "--profile", "quick", "-p", "wh-api", "--example", "bench_scan"]);
    ensure!(command.status()?.success(), "bench_scan failed");
    Ok(())
}

async fn measure(args: &Args, bench: &Bench, csv: &Path) -> Result<()> {
    println!(
        "\nThe process takes rows and inserts them; its processor time is of both. Rows are sent without a pause."
    );
    let head = ["rows/s", "p50 ms", "p99 ms", "CPU us/row", "refused"];
    println!("{:<40} {:>10} {:>9} {:>9} {:>11} {:>8}", "", head[0], head[1], head[2], head[3], head[4]);
    for (name, rows, connections, media) in SHAPES {
        let mut measured = Vec::new();
        for _ in 0..args.rounds.max(1) {
            let file = if media.starts_with("text/csv") { csv } else { &bench.rows };
            measured.push(once(args, bench, file, *rows, *connections, media).await?);
        }
        let of = |figure: fn(&Once) -> f64| median(measured.iter().map(figure).collect());
        println!(
            "{name:<40} {:>10.0} {:>9.2} {:>9.2} {:>11.2} {:>8.0}",
            of(|once| once.rate),
            of(|once| once.p50),
            of(|once| once.p99),
            of(|once| once.cpu),
            of(|once| once.refused)
        );
    }
    Ok(())
}

struct Once {
    rate: f64,
    p50: f64,
    p99: f64,
    cpu: f64,
    refused: f64,
}

async fn once(args: &Args, bench: &Bench, file: &Path, rows: u64, connections: u64, media: &str) -> Result<Once> {
    let engine = bench.engine().await?;
    let (mut process, port) = bench.wavehouse(&engine.url()).await?;
    let before = cpu(process.id())?;
    let sent = load::run::<Http>(
        &bench.bin.join("wh-load"),
        "http",
        &[
            ("file", file.display().to_string()),
            ("address", format!("127.0.0.1:{port}")),
            ("path", "/v1/ingest?table=flights".to_owned()),
            ("content-type", media.to_owned()),
            ("rows", rows.to_string()),
            ("connections", connections.to_string()),
            ("seconds", args.seconds.to_string()),
        ],
    )?;
    let used = cpu(process.id())? - before;
    process.stop(Duration::from_secs(60)).await?;
    engine.stop().await?;
    let stored = (sent.ok * rows) as f64;
    ensure!(stored > 0.0, "nothing was stored");
    Ok(Once {
        rate: stored / sent.seconds,
        p50: sent.p50_us as f64 / 1e3,
        p99: sent.p99_us as f64 / 1e3,
        cpu: used / stored * 1e6,
        refused: sent.refused as f64,
    })
}

/// Seconds of processor time that a process has used. Linux counts them in hundredths.
fn cpu(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // the second field is the name, in parentheses; 14 and 15 of all are user and system time
    let fields = stat.rsplit(')').next().context("no stat")?.split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}
