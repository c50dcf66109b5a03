//! The store in a folder of sled's: for deployments that keep such folders. `log` is faster by far and survives more.
//!
//! One thread does all calls, in order, and flushes once for those that wait together; each flush is followed by an
//! fdatasync of our own, as sled's promises nothing after a power cut. Open claims are in memory too. The folder has one
//! owner; when it is opened every claim of the life before has lapsed. A write that fails ends it: everything is refused
//! until it is opened again. `docs/operations/dedupe.md` has what sled cannot do; the `item` module's head has the bytes.

mod disk;
mod error;
mod item;
mod state;
#[cfg(test)]
mod tests;
mod worker;

use crate::{
    Error, Kind, Result, Retention, Row, Ticket, Under, Verdict,
    port::{self, checked},
};
use async_trait::async_trait;
use parking_lot::Mutex;
use state::State;
use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot, watch};
use wh_types::{Clock, Entropy, OsEntropy, Stop, SystemClock, Tasks};
use worker::{Gauges, Job};

/// Calls that wait for the thread at most; more wait for room.
const QUEUE: usize = 256;
/// A pause between the steps of a sweep, so that calls come between.
const BETWEEN_STEPS: Duration = Duration::from_millis(10);

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The store's own folder; made where it is missing.
    pub dir: PathBuf,
    /// Bytes that sled's cache of pages should have; it may take a multiple of it while it is written to.
    pub cache_bytes: u64,
    /// Most open claims; each takes about 200 bytes of memory. Beyond it reservations are refused.
    pub max_claims: usize,
    /// How long a claim that lapsed is remembered when nobody asks for it.
    pub forget_after: Duration,
    /// How often what is over is looked for.
    pub sweep_every: Duration,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where tokens come from.
    pub entropy: Arc<dyn Entropy>,
}

impl Options {
    /// The defaults: 64 MiB of cache, 1 million claims, lapsed ones remembered for a day, a sweep an hour.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            cache_bytes: 64 * 1024 * 1024,
            max_claims: 1_000_000,
            forget_after: Duration::from_secs(86_400),
            sweep_every: Duration::from_secs(3_600),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
        }
    }
}

/// What a store holds. How many keys it knows only a walk over all of them would tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Claims that are open.
    pub claims: u64,
    /// Bytes of its folder, as of the last sweep.
    pub disk_bytes: u64,
}

/// The store. Dropping it gives the folder up soon, once what is queued is written; prefer [`port::Dedupe::close`].
#[derive(Debug)]
pub struct Dedupe {
    /// `None`: it is closed.
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    gauges: Arc<Gauges>,
    ended: watch::Receiver<bool>,
    stop: Stop,
    _tasks: Tasks,
}

impl Dedupe {
    /// Opens the store of a folder, reading back its open claims. Needs a runtime with timers.
    ///
    /// # Errors
    /// `Conflict` (another process has the folder), `Denied` (it cannot be used), `Unsupported` (another version of
    /// sled), `Corrupt`, Exhausted (no room), Unavailable.
    ///
    /// # Cancel safety
    /// Detached: it is opened all the same, and given up at once.
    pub async fn open(options: Options) -> Result<Self> {
        const OP: &str = "open";
        let (every, opening) = (options.sweep_every, options);
        let opened = tokio::task::spawn_blocking(move || State::open(opening)).await;
        // sled may panic at what it finds in its files
        let damaged = |e| Error::new(OP, Kind::Corrupt("sled panicked while it read the folder".into())).with_source(e);
        let state = opened.map_err(damaged)??;
        let gauges = Arc::new(Gauges::default());
        gauges.claims.store(state.open_claims(), Ordering::Relaxed);
        gauges.bytes.store(state.bytes(), Ordering::Relaxed);
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (end, ended) = watch::channel(false);
        let thread = std::thread::Builder::new().name("wh-dedupe-sled".into());
        let shared = Arc::clone(&gauges);
        let started = thread.spawn(move || worker::run(state, queue, &shared, &end));
        drop(started.map_err(|e| Error::new(OP, Kind::Bug("no thread for sled".into())).with_source(e))?);
        let (stop, tasks) = (Stop::new(), Tasks::new());
        drop(tasks.spawn("dedupe/sweep", sweep(jobs.downgrade(), every, stop.clone())));
        Ok(Self { jobs: Mutex::new(Some(jobs)), gauges, ended, stop, _tasks: tasks })
    }

    /// What it holds now.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let (claims, bytes) = (&self.gauges.claims, &self.gauges.bytes);
        Usage { claims: claims.load(Ordering::Relaxed), disk_bytes: bytes.load(Ordering::Relaxed) }
    }

    async fn ask<T>(&self, op: &'static str, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Result<T> {
        let stopping = || Error::new(op, Kind::Stopping);
        let jobs = self.jobs.lock().clone().ok_or_else(stopping)?;
        let (to, answer) = oneshot::channel();
        jobs.send(job(to)).await.map_err(|_| stopping())?;
        drop(jobs);
        // the thread is gone: sled panicked
        answer.await.map_err(|_| Error::new(op, Kind::Unknown))
    }

    async fn resolve(
        &self,
        op: &'static str,
        held: &[Ticket],
        job: impl FnOnce(Vec<Ticket>, oneshot::Sender<Vec<Result<()>>>) -> Job,
    ) -> Vec<Result<()>> {
        if let Some(refused) = checked::tickets(op, held) {
            return refused;
        }
        match self.ask(op, |to| job(held.to_vec(), to)).await {
            Ok(outcomes) => outcomes,
            Err(error) => held.iter().map(|_| Err(Error::new(op, error.kind().clone()))).collect(),
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
        checked::reserve(rows, under)?;
        self.ask("reserve", |to| Job::Reserve(rows.to_vec(), *under, to)).await?
    }

    async fn commit(&self, held: &[Ticket], retention: Retention) -> Vec<Result<()>> {
        self.resolve("commit", held, |held, to| Job::Commit(held, retention, to)).await
    }

    async fn release(&self, held: &[Ticket]) -> Vec<Result<()>> {
        self.resolve("release", held, Job::Release).await
    }

    async fn close(&self) {
        self.stop.give();
        drop(self.jobs.lock().take());
        // an error means that the thread is gone
        drop(self.ended.clone().wait_for(|ended| *ended).await);
    }
}

/// Has what is over forgotten, a step at a time.
async fn sweep(jobs: mpsc::WeakSender<Job>, every: Duration, stop: Stop) {
    let mut pause = every;
    loop {
        tokio::select! {
            () = stop.wait() => return,
            () = tokio::time::sleep(pause) => {}
        }
        let Some(jobs) = jobs.upgrade() else { return };
        let (to, more) = oneshot::channel();
        if jobs.send(Job::Sweep(to)).await.is_err() {
            return;
        }
        drop(jobs);
        pause = if more.await.unwrap_or(false) { BETWEEN_STEPS } else { every };
    }
}
