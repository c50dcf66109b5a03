//! The store in the process's own data folder: one segmented log for all tenants, and a table in memory.
//!
//! A reservation is one append and answered when that is durable, and so are a commit and a release: those that run at
//! one time share one write and one sync. Keys are kept as the first 16 bytes of their SHA-256. The folder has one owner;
//! when it is opened every claim of the life before has lapsed. `docs/dedupe-format.md` has the records,
//! `docs/operations/dedupe.md` what an operator should know.

mod calls;
mod error;
mod live;
mod record;
mod recover;
mod table;
#[cfg(test)]
mod tests;
mod upkeep;

pub use recover::Recovery;

use crate::{Error, Kind, Result, Retention, Row, Ticket, Under, Verdict, port};
use async_trait::async_trait;
use live::Live;
use parking_lot::Mutex;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use table::Table;
use wh_log::Log;
use wh_types::{Clock, Entropy, OsEntropy, Stop, SystemClock, Tasks};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The store's own folder; made where it is missing.
    pub dir: PathBuf,
    /// Most keys it knows; each takes 24 to 45 bytes of memory and up to 160 of disk, as tables grow by doubling and the
    /// log is cleaned when three quarters of it are over. Beyond it reservations are refused.
    pub max_known: u64,
    /// Most open claims; each takes about 150 bytes of memory. Beyond it reservations are refused.
    pub max_claims: u64,
    /// How long a claim that lapsed is remembered when nobody asks for it.
    pub forget_after: Duration,
    /// Bytes of one segment file, 64 KiB to 1 GiB.
    pub segment_bytes: u32,
    /// How often what is over is looked for.
    pub upkeep_every: Duration,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where tokens and a new log's id come from.
    pub entropy: Arc<dyn Entropy>,
    /// The file system.
    pub disk: Arc<dyn wh_log::disk::Disk>,
}

impl Options {
    /// The defaults: 100 million keys, 1 million claims, lapsed ones remembered for a day, segments of 16 MiB.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            max_known: 100_000_000,
            max_claims: 1_000_000,
            forget_after: Duration::from_secs(86_400),
            segment_bytes: 16 * 1024 * 1024,
            upkeep_every: Duration::from_secs(1),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            disk: Arc::new(wh_log::disk::RealDisk),
        }
    }

    fn log(&self) -> wh_log::Options {
        let mut log = wh_log::Options::new(&self.dir);
        log.disk = Arc::clone(&self.disk);
        log.clock = Arc::clone(&self.clock);
        log.entropy = Arc::clone(&self.entropy);
        log.segment_bytes = self.segment_bytes;
        log.group_bytes = log.group_bytes.min(self.segment_bytes / 2);
        log
    }
}

/// What a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Keys that are known; those that are over and not swept yet may be among them.
    pub known: u64,
    /// Claims that are open.
    pub claims: u64,
    /// Bytes of memory of the tables of known keys.
    pub table_bytes: u64,
    /// Bytes of segments on the disk, without those that wait to be overwritten.
    pub disk_bytes: u64,
}

#[derive(Debug)]
struct Inner {
    log: Log,
    table: Table,
    live: Mutex<Live>,
    known: AtomicU64,
    claims: AtomicU64,
    options: Options,
}

/// The store. Dropping it gives the folder up once what is queued is written; prefer [`port::Dedupe::close`].
#[derive(Debug)]
pub struct Dedupe {
    inner: Arc<Inner>,
    recovery: Recovery,
    stop: Stop,
    tasks: Tasks,
}

impl Dedupe {
    /// Opens the store of a folder, reading back what is in it. Needs a runtime with timers.
    ///
    /// # Errors
    /// `Conflict` (another process has the folder; the text names it), `Denied` (it cannot be used), `Unsupported`
    /// (another format version), Exhausted (no room), Unavailable.
    ///
    /// # Cancel safety
    /// Detached: it is opened all the same, and given up at once.
    pub async fn open(options: Options) -> Result<Self> {
        let opening = options.clone();
        let found = tokio::task::spawn_blocking(move || recover::recover(&opening)).await;
        let panicked = |e| Error::new("open", Kind::Bug("reading the log back panicked".into())).with_source(e);
        let recover::Found { log, table, live, recovery } = found.map_err(panicked)??;
        if recovery.damaged + recovery.missing > 0 {
            let (damaged, missing) = (recovery.damaged, recovery.missing);
            tracing::error!(damaged, missing, "the dedupe log is damaged: rows that were known in it may double");
        }
        let inner = Arc::new(Inner {
            log,
            table,
            live: Mutex::new(live),
            known: AtomicU64::new(recovery.known),
            claims: AtomicU64::new(recovery.claims),
            options,
        });
        let (stop, tasks) = (Stop::new(), Tasks::new());
        drop(tasks.spawn("dedupe/upkeep", upkeep::run(Arc::downgrade(&inner), stop.clone())));
        Ok(Self { inner, recovery, stop, tasks })
    }

    /// What opening found.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// What it holds now.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage {
            known: self.inner.known.load(Ordering::Relaxed),
            claims: self.inner.claims.load(Ordering::Relaxed),
            table_bytes: self.inner.table.bytes() as u64,
            disk_bytes: self.inner.log.segments().iter().map(|segment| u64::from(segment.bytes)).sum(),
        }
    }
}

impl Drop for Dedupe {
    fn drop(&mut self) {
        self.stop.give();
    }
}

#[async_trait]
impl port::Dedupe for Dedupe {
    async fn reserve(&self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>> {
        self.inner.reserve(rows, under).await
    }

    async fn commit(&self, held: &[Ticket], retention: Retention) -> Vec<Result<()>> {
        self.inner.commit(held, retention).await
    }

    async fn release(&self, held: &[Ticket]) -> Vec<Result<()>> {
        self.inner.release(held).await
    }

    async fn close(&self) {
        self.stop.give();
        self.tasks.wait().await;
        self.inner.log.close().await;
    }
}
