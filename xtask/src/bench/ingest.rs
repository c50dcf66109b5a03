//! `cargo xtask bench ingest`: HTTP to durable, HTTP to ClickHouse, and single events, against their yardsticks.
#![expect(clippy::print_stdout, reason = "it prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench measures with the machine's clock")]
#![expect(clippy::cast_precision_loss, reason = "figures are shown with three digits")]

use super::{
    load::{self, Http, Yardstick},
    machine, rows,
};
use crate::workspace::cargo;
use anyhow::{Context, Result, bail, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use wh_testkit::{Process, clickhouse, free_port, http, until, workspace};

const SECOND: Duration = Duration::from_secs(1);

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Rows sent in all, for the figures from HTTP to the queue and to ClickHouse
    #[arg(long, default_value_t = 3_000_000)]
    rows: u64,
    /// Connections that send 500-row requests
    #[arg(long, default_value_t = 8)]
    connections: u64,
    /// Seconds for each figure of single events
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// One run's folders, binaries and rows.
pub(super) struct Bench {
    pub(super) bin: PathBuf,
    /// The engine's data: on tmpfs where there is one.
    pub(super) fast: PathBuf,
    /// The queue's data: on the disk.
    disk: tempfile::TempDir,
    pub(super) rows: PathBuf,
    /// Whether rows have ids.
    with_ids: bool,
    _fast: tempfile::TempDir,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let bench = Bench::prepare(false)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(args, &bench))
}

fn build(root: &Path) -> Result<()> {
    for what in [
        &["-p", "wavehouse", "-p", "wh-testkit", "--bin", "wavehouse", "--bin", "wh-chserver", "--bin", "wh-load"][..],
        &["-p", "wh-app", "--example", "empty"][..],
    ] {
        let built = cargo().current_dir(root).args(["build", "--profile", "quick"]).args(what).status()?;
        ensure!(built.success(), "the build failed");
    }
    Ok(())
}

async fn measure(args: &Args, bench: &Bench) -> Result<()> {
    let (mut straight, mut durable, mut whole, mut empty, mut single) = (vec![], vec![], vec![], vec![], vec![]);
    for round in 1..=args.rounds {
        let yardstick = bench.yardstick().await?;
        straight.push(yardstick.rows as f64 / yardstick.seconds);
        let bytes = yardstick.compressed_bytes as f64 / yardstick.rows as f64;
        let (accepted, arrived, sent) = bench.end_to_end(args).await?;
        durable.push(accepted);
        whole.push(arrived);
        let bare = bench.empty(args).await?;
        empty.push(bare.ok as f64 / bare.seconds);
        let events = bench.single_events(args).await?;
        single.push(events.ok as f64 / events.seconds);
        println!(
            "round {round}: straight {:.0} rows/s ({bytes:.0} B/row compressed) · durable {accepted:.0} · in ClickHouse \
             {arrived:.0} (p50 {} µs, p99 {} µs, {} told to wait) · empty handler {:.0} req/s · single events {:.0} \
             (p50 {} µs, p99 {} µs)",
            straight[round - 1],
            sent.p50_us,
            sent.p99_us,
            sent.refused,
            empty[round - 1],
            single[round - 1],
            events.p50_us,
            events.p99_us,
        );
    }
    let [straight, durable, whole, empty, single] = [straight, durable, whole, empty, single].map(median);
    println!(
        "\n{:<58} {:>12} {:>12} {:>8}",
        format!("medians of {} rounds", args.rounds),
        "measured",
        "limit",
        "ratio"
    );
    let line = |name: &str, measured: f64, limit: f64| {
        println!("{name:<58} {measured:>12.0} {limit:>12.0} {:>8.2}", measured / limit);
    };
    line("HTTP → durable, rows/s (aim 300,000)", durable, 300_000.0);
    line("HTTP → ClickHouse, rows/s (limit: straight inserts; aim 0.6)", whole, straight);
    line("single events, 256 connections, req/s (limit: empty axum; aim 0.5)", single, empty);
    Ok(())
}

impl Bench {
    /// Builds what is measured, and writes the rows.
    pub(super) fn prepare(with_ids: bool) -> Result<Self> {
        crate::setup::ensure(&[crate::setup::Server::Clickhouse])?;
        let root = workspace::root()?;
        build(&root)?;
        let shm = Path::new("/dev/shm");
        let fast = if shm.is_dir() { tempfile::tempdir_in(shm)? } else { tempfile::tempdir()? };
        let bench = Self {
            bin: root.join("target/quick"),
            fast: fast.path().to_owned(),
            disk: tempfile::tempdir_in(root.join("target"))?,
            rows: fast.path().join("rows.ndjson"),
            with_ids,
            _fast: fast,
        };
        let count = rows::write(&bench.rows, with_ids)?;
        println!("machine: {}", machine::line());
        println!(
            "{count} real flights padded to {} bytes; engine's data on {}",
            rows::ROW_BYTES,
            if shm.is_dir() { "tmpfs" } else { "disk" }
        );
        Ok(bench)
    }

    pub(super) async fn engine(&self) -> Result<clickhouse::Server> {
        let dir = self.fast.join("clickhouse");
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        let engine = clickhouse::Server::options().dir(dir).start().await?;
        engine.query(if self.with_ids { rows::TABLE_WITH_IDS } else { rows::TABLE }).await?;
        Ok(engine)
    }

    fn load<T: for<'a> serde::Deserialize<'a>>(&self, mode: &str, options: &[(&str, String)]) -> Result<T> {
        let mut all = vec![("file", self.rows.display().to_string())];
        all.extend(options.iter().cloned());
        load::run(&self.bin.join("wh-load"), mode, &all)
    }

    /// The same rows straight to the engine: one connection, 10,000 rows an insert, the same compression.
    pub(super) async fn yardstick(&self) -> Result<Yardstick> {
        let engine = self.engine().await?;
        let path = "/?query=INSERT%20INTO%20flights%20FORMAT%20JSONEachRow&async_insert=0\
                    &date_time_input_format=best_effort&input_format_null_as_default=1";
        let options = [
            ("address", format!("127.0.0.1:{}", engine.port())),
            ("path", path.to_owned()),
            ("rows", "10000".to_owned()),
            ("requests", "200".to_owned()),
        ];
        let measured = self.load("yardstick", &options)?;
        engine.stop().await?;
        Ok(measured)
    }

    /// The process on an empty data folder; `more` is added to its configuration, within `tenant_defaults`.
    pub(super) async fn wavehouse(&self, clickhouse: &str, more: &str) -> Result<(Process, u16)> {
        self.wavehouse_with(clickhouse, "", more).await
    }

    /// The same, with `server` besides within the section of that name.
    pub(super) async fn wavehouse_with(&self, clickhouse: &str, server: &str, more: &str) -> Result<(Process, u16)> {
        let data = self.disk.path().join("data");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let (port, config) = (free_port()?, self.disk.path().join("config.yaml"));
        fs::write(
            &config,
            format!(
                "data_dir: {data:?}\nserver:\n  port: {port}\n{server}log:\n  level: warn\n\
                 tenant_defaults:\n  clickhouse:\n    url: {clickhouse:?}\n    database: default\n{more}"
            ),
        )?;
        let mut process = Process::launch("wavehouse", self.bin.join("wavehouse"))
            .args(["serve", "--config"])
            .arg(&config)
            // an emulator takes any
            .env("AWS_ACCESS_KEY_ID", "bench")
            .env("AWS_SECRET_ACCESS_KEY", "bench")
            .start()?;
        let url = format!("http://127.0.0.1:{port}/readyz");
        process.ready(20 * SECOND, "wavehouse to be ready", || ok(url.clone())).await?;
        Ok((process, port))
    }

    /// Rows/s to the last 200, rows/s to the last row in ClickHouse, and what the client saw.
    async fn end_to_end(&self, args: &Args) -> Result<(f64, f64, Http)> {
        let engine = self.engine().await?;
        let (mut process, port) = self.wavehouse(&engine.url(), "").await?;
        let began = Instant::now();
        let sent = self.load::<Http>(
            "http",
            &[
                ("address", format!("127.0.0.1:{port}")),
                ("path", "/v1/ingest?table=flights".to_owned()),
                ("rows", "500".to_owned()),
                ("connections", args.connections.to_string()),
                ("requests", (args.rows / 500).to_string()),
                ("seconds", "300".to_owned()),
            ],
        )?;
        let rows = sent.ok * 500;
        until(300 * SECOND, "every accepted row to be in ClickHouse", || async {
            let count = engine.query("SELECT count() FROM flights").await?;
            if count.trim() == rows.to_string() { Ok(()) } else { bail!("{} of {rows}", count.trim()) }
        })
        .await?;
        let all = began.elapsed().as_secs_f64();
        process.stop(30 * SECOND).await?;
        engine.stop().await?;
        Ok((rows as f64 / sent.seconds, rows as f64 / all, sent))
    }

    /// One event a request from 256 connections, with everything running.
    async fn single_events(&self, args: &Args) -> Result<Http> {
        let engine = self.engine().await?;
        let (mut process, port) = self.wavehouse(&engine.url(), "").await?;
        let measured = self.singles(args, port, "/v1/ingest?table=flights")?;
        process.stop(30 * SECOND).await?;
        engine.stop().await?;
        Ok(measured)
    }

    /// The same requests to a handler that does nothing.
    async fn empty(&self, args: &Args) -> Result<Http> {
        let (mut process, port) = self.handler().await?;
        let measured = self.singles(args, port, "/")?;
        process.stop(10 * SECOND).await?;
        Ok(measured)
    }

    /// A server whose handler does nothing.
    pub(super) async fn handler(&self) -> Result<(Process, u16)> {
        let port = free_port()?;
        let mut process =
            Process::launch("empty", self.bin.join("examples/empty")).arg(port.to_string()).stdin_open().start()?;
        process.listens(port, 10 * SECOND).await?;
        Ok((process, port))
    }

    fn singles(&self, args: &Args, port: u16, path: &str) -> Result<Http> {
        self.load(
            "http",
            &[
                ("address", format!("127.0.0.1:{port}")),
                ("path", path.to_owned()),
                ("content-type", "application/json".to_owned()),
                ("rows", "1".to_owned()),
                ("connections", "256".to_owned()),
                ("seconds", args.seconds.to_string()),
            ],
        )
    }
}

async fn ok(url: String) -> Result<()> {
    let reply = http::get(url).send().await?;
    ensure!(reply.status.is_success(), "{} {}", reply.status, reply.text());
    Ok(())
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("no rounds").unwrap_or(f64::NAN)
}
