//! Continuous publishing of numbered rows to many tables, and the judgement of what became of them.

use anyhow::{Context, Result, bail, ensure};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinSet;
use wh_testkit::{clickhouse, http, until};

/// How often a table is written to.
const PACE: Duration = Duration::from_millis(50);

/// The name of the nth table.
#[must_use]
pub fn table(n: usize) -> String {
    format!("t{n:02}")
}

/// Makes the first `count` tables. `at` is when ClickHouse took a row.
///
/// # Errors
/// The engine refuses.
pub async fn create_tables(engine: &clickhouse::Server, count: usize) -> Result<()> {
    for n in 0..count {
        let sql = format!(
            "CREATE TABLE {} (n UInt64, note String, at DateTime64(6) DEFAULT now64(6)) ENGINE = MergeTree ORDER BY n",
            table(n)
        );
        engine.query(&sql).await?;
    }
    Ok(())
}

/// One writer for each table, each always at the same api, so that its table's order is promised.
#[derive(Debug)]
pub struct Traffic {
    writers: JoinSet<(String, BTreeSet<u64>)>,
    stop: Arc<AtomicBool>,
    accepted: Arc<AtomicU64>,
    unanswered: Arc<AtomicU64>,
}

/// The numbers that were accepted, by table.
#[derive(Debug)]
pub struct Accepted {
    /// By table.
    pub tables: BTreeMap<String, BTreeSet<u64>>,
    /// Requests that were not answered, or not with a plain 200.
    pub unanswered: u64,
}

/// What ClickHouse holds of one table, judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Accepted rows that are not there.
    pub missing: usize,
    /// Accepted rows that are there more than once.
    pub doubled: usize,
    /// Neighbours by number of which the later one was inserted before the earlier one.
    pub swapped: usize,
}

impl Traffic {
    /// Starts writing five rows a request to the first `tables` tables, in turn at these apis' addresses.
    #[must_use]
    pub fn start(apis: &[String], tables: usize) -> Self {
        Self::start_at(1, apis, tables)
    }

    /// The same with rows of these numbers and on.
    #[must_use]
    pub fn start_at(first: u64, apis: &[String], tables: usize) -> Self {
        let (stop, accepted, unanswered) = <(Arc<AtomicBool>, Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let mut writers = JoinSet::new();
        for n in 0..tables {
            let url = format!("{}/v1/ingest?table={}", apis[n % apis.len()], table(n));
            let (stop, accepted, unanswered) = (stop.clone(), accepted.clone(), unanswered.clone());
            writers.spawn(async move {
                let (mut own, mut next) = (BTreeSet::new(), first);
                while !stop.load(Ordering::Relaxed) {
                    match post(&url, next).await {
                        Ok(true) => {
                            own.extend(next..next + ROWS);
                            accepted.fetch_add(ROWS, Ordering::Relaxed);
                        }
                        Ok(false) | Err(_) => drop(unanswered.fetch_add(1, Ordering::Relaxed)),
                    }
                    next += ROWS;
                    // a pace, not a wait for anything
                    tokio::time::sleep(PACE).await;
                }
                (table(n), own)
            });
        }
        Self { writers, stop, accepted, unanswered }
    }

    /// How many rows were accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Waits until `more` further rows were accepted.
    ///
    /// # Errors
    /// They were not in time.
    pub async fn until_more(&self, more: u64, within: Duration) -> Result<()> {
        let goal = self.accepted() + more;
        until(within, "more rows to be accepted", || async {
            let now = self.accepted();
            if now >= goal { Ok(()) } else { bail!("{now} of {goal}") }
        })
        .await?;
        Ok(())
    }

    /// Stops after the requests in flight.
    ///
    /// # Errors
    /// A writer panicked.
    pub async fn stop(mut self) -> Result<Accepted> {
        self.stop.store(true, Ordering::Relaxed);
        let mut tables = BTreeMap::new();
        while let Some(writer) = self.writers.join_next().await {
            let (table, own) = writer.context("a writer panicked")?;
            tables.insert(table, own);
        }
        Ok(Accepted { tables, unanswered: self.unanswered.load(Ordering::Relaxed) })
    }
}

/// Rows of one request.
const ROWS: u64 = 5;

async fn post(url: &str, first: u64) -> Result<bool> {
    let body: String = (first..first + ROWS).map(|n| format!("{{\"n\":{n},\"note\":\"row {n}\"}}\n")).collect();
    let request = http::post(url, body).header("content-type", "application/x-ndjson");
    let reply = request.timeout(Duration::from_secs(40)).send().await?;
    Ok(reply.status.as_u16() == 200 && reply.json()?["accepted"] == ROWS)
}

impl Accepted {
    /// How many rows there are in all.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.tables.values().map(BTreeSet::len).sum()
    }

    /// Waits until every accepted row is in ClickHouse.
    ///
    /// # Errors
    /// One is not in time.
    pub async fn arrived(&self, engine: &clickhouse::Server, within: Duration) -> Result<()> {
        until(within, "every accepted row to be in ClickHouse", || async {
            for (table, own) in &self.tables {
                let found = judge(engine, table, own).await?;
                ensure!(found.missing == 0, "{table}: {} of {} are missing", found.missing, own.len());
            }
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        Ok(())
    }

    /// What ClickHouse holds now, over all tables.
    ///
    /// # Errors
    /// The engine does not answer.
    pub async fn found(&self, engine: &clickhouse::Server) -> Result<Found> {
        let mut all = Found::default();
        for (table, own) in &self.tables {
            let one = judge(engine, table, own).await?;
            all.missing += one.missing;
            all.doubled += one.doubled;
            all.swapped += one.swapped;
        }
        Ok(all)
    }
}

async fn judge(engine: &clickhouse::Server, table: &str, own: &BTreeSet<u64>) -> Result<Found> {
    let sql =
        format!("SELECT n, count(), toUnixTimestamp64Micro(min(at)) FROM {table} GROUP BY n ORDER BY n FORMAT TSV");
    let text = engine.query(&sql).await?;
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let numbers: Vec<u64> = line.split('\t').map(str::parse).collect::<Result<_, _>>()?;
        let &[n, count, at] = numbers.as_slice() else { bail!("{line:?}") };
        rows.insert(n, (count, at));
    }
    let mut found = Found { missing: own.iter().filter(|n| !rows.contains_key(n)).count(), ..Found::default() };
    let mut last = 0;
    for (n, (count, at)) in rows {
        if own.contains(&n) {
            found.doubled += usize::from(count > 1);
            found.swapped += usize::from(at < last);
            last = last.max(at);
        }
    }
    Ok(found)
}
