//! Rows that are published, and what ClickHouse has of them.

use anyhow::{Context, Result, bail, ensure};
use procs::{Fleet, Member, table};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinSet;
use wh_testkit::{clickhouse, http, until};
use wh_types::{Clock, SystemClock, Timestamp};

/// How many tables there are.
pub(crate) const TABLES: usize = 16;
/// Rows of each table at a time.
const ROWS: u64 = 10;
/// How often a table is written to by [`Stream`]: so seldom that the machine is idle most of the time.
const PACE: Duration = Duration::from_millis(200);

/// Makes the tables. `p` is when a row was sent, `at` when ClickHouse took it, both in microseconds of one machine.
pub(crate) async fn create(engine: &clickhouse::Server) -> Result<()> {
    for n in 0..TABLES {
        let sql = format!(
            "CREATE TABLE {} (p Int64, at Int64 DEFAULT toUnixTimestamp64Micro(now64(6))) ENGINE = MergeTree ORDER BY p",
            table(n)
        );
        engine.query(&sql).await?;
    }
    Ok(())
}

/// Microseconds since 1970.
pub(crate) fn wall() -> i64 {
    micros(SystemClock.wall())
}

fn micros(at: Timestamp) -> i64 {
    at.as_nanos() / 1_000
}

/// Publishes some rows to every table and gives how many.
pub(crate) async fn publish(api: &Member) -> Result<u64> {
    for n in 0..TABLES {
        let rows: String = (0..ROWS).map(|_| format!("{{\"p\":{}}}\n", wall())).collect();
        let reply = api.post(&table(n), rows).await?;
        ensure!(reply.status == 200, "{} {}", reply.status, reply.text());
    }
    Ok(ROWS * TABLES as u64)
}

/// Rows in all tables.
pub(crate) async fn count(fleet: &Fleet) -> Result<u64> {
    fleet.number("SELECT count() FROM merge(default, '^t[0-9]+$')").await
}

/// Waits until there are so many.
pub(crate) async fn arrived(fleet: &Fleet, rows: u64) -> Result<()> {
    until(Duration::from_secs(180), "every row in ClickHouse", || async {
        let found = count(fleet).await?;
        if found >= rows { Ok(()) } else { bail!("{found} of {rows}") }
    })
    .await?;
    Ok(())
}

/// One row to each table over and over.
pub(crate) struct Stream {
    writers: JoinSet<()>,
    stop: Arc<AtomicBool>,
}

impl Stream {
    pub(crate) fn start(api: &Member) -> Self {
        let (mut writers, stop) = (JoinSet::new(), Arc::new(AtomicBool::new(false)));
        for n in 0..TABLES {
            let offset = PACE * u32::try_from(n).unwrap_or(0) / 16;
            let (url, stop) = (api.url(&format!("/v1/ingest?table={}", table(n))), stop.clone());
            writers.spawn(async move {
                tokio::time::sleep(offset).await;
                while !stop.load(Ordering::Relaxed) {
                    let request = http::post(url.clone(), format!("{{\"p\":{}}}", wall()));
                    // a row that is refused is only one fewer
                    drop(request.header("content-type", "application/json").send().await);
                    tokio::time::sleep(PACE).await;
                }
            });
        }
        Self { writers, stop }
    }

    pub(crate) async fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.writers.join_next().await.is_some() {}
    }
}

/// How long the slowest row waited, in milliseconds, of those that were sent within a span around a moment: from one pace
/// before it to a second after it.
pub(crate) async fn slowest(fleet: &Fleet, moment: i64) -> Result<f64> {
    let pace = i64::try_from(PACE.as_micros())?;
    let span = format!("p > {} AND p < {}", moment - pace, moment + 1_000_000);
    let sql = format!("SELECT count(), max(at - p) FROM merge(default, '^t[0-9]+$') WHERE {span}");
    let text = fleet.engine.query(&sql).await?;
    let (rows, wait) = text.trim().split_once('\t').context("two numbers")?;
    ensure!(rows.parse::<usize>()? >= TABLES * 2, "{rows} rows are too few");
    Ok(wait.parse::<f64>()? / 1_000.0)
}
