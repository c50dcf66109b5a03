//! Keeps a schema fresh in the background. Whatever fails keeps the view there was.

use super::{Schema, read};
use crate::{Client, Error, Kind, Result, error::Purpose};
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot, watch};
use wh_types::{Backoff, Clock, Entropy, Mono, Stop, Tasks, Throttle, Timestamp};

/// How often the schema is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryOptions {
    /// Time between reads; the first after the start comes at a random point of it.
    pub interval: Duration,
    /// Most time for one read.
    pub timeout: Duration,
    /// Until the first success: the bound of the first delay, which doubles.
    pub retry_first: Duration,
    /// Until the first success: the largest bound of a delay.
    pub retry_longest: Duration,
}

impl Default for DiscoveryOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(30),
            retry_first: Duration::from_secs(2),
            retry_longest: Duration::from_secs(60),
        }
    }
}

/// Counts of one discovery, for metrics and health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveryStats {
    /// Reads that gave a schema.
    pub reads: u64,
    /// Reads that failed; the view before them was kept.
    pub failures: u64,
    /// Why the latest read failed; `None` after a success.
    pub last_error: Option<String>,
    /// ClickHouse's code of it, where the latest read failed with an exception of ClickHouse's.
    pub last_code: Option<i32>,
    /// When the current view was read.
    pub taken_at: Option<Timestamp>,
}

/// What a caller of [`SchemaHandle::refresh`] waits for.
type Reply = oneshot::Sender<Result<Arc<Schema>, Arc<Error>>>;

/// Most tables that one warning names.
const NAMED: usize = 10;

/// How often a server that cannot be read is told of.
const TELL_FAILED: Duration = Duration::from_secs(60);

/// More calls than this wait for room before they wait for their read.
const WAITING: usize = 1024;

/// Reads one client's database in the background.
#[derive(Debug)]
pub struct Discovery {
    client: Client,
    options: DiscoveryOptions,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    current: watch::Sender<Option<Arc<Schema>>>,
    stats: Arc<Mutex<DiscoveryStats>>,
    calls: mpsc::Receiver<Reply>,
    /// Tables without a deduplication window that were told of.
    told: BTreeSet<String>,
    /// Reads that failed since the last good one.
    failing: Option<Failing>,
}

/// A row of failed reads.
#[derive(Debug)]
struct Failing {
    since: Mono,
    reads: u64,
    told: Throttle,
}

impl Discovery {
    /// Starts reading, at once and then periodically, until `stop` is given. What it reads of the server's settings
    /// it teaches the client ([`Client::learn`]).
    #[must_use]
    pub fn start(
        client: Client,
        options: DiscoveryOptions,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        tasks: &Tasks,
        stop: Stop,
    ) -> SchemaHandle {
        let (current, seen) = watch::channel(None);
        let (sender, calls) = mpsc::channel(WAITING);
        let stats = Arc::new(Mutex::new(DiscoveryStats::default()));
        let handle = SchemaHandle { current: seen, stats: stats.clone(), calls: Some(sender) };
        let discovery =
            Self { client, options, clock, entropy, current, stats, calls, told: BTreeSet::new(), failing: None };
        // its end is told by the group; readers keep the last view
        drop(tasks.spawn("discovery", discovery.run(stop)));
        handle
    }

    async fn run(mut self, stop: Stop) {
        let backoff = Backoff::full_jitter(self.options.retry_first, self.options.retry_longest);
        let mut failures = 0;
        let mut next = self.clock.now();
        loop {
            let mut waiting = Vec::new();
            tokio::select! {
                biased;
                () = stop.wait() => return,
                call = self.calls.recv() => waiting.extend(call),
                () = tokio::time::sleep_until(next) => {}
            }
            // all who asked before the read begins share it; who asks while it runs shares the one after it
            while let Ok(call) = self.calls.try_recv() {
                waiting.push(call);
            }
            let due = self.clock.now() >= next;
            let first = self.current.borrow().is_none();
            let read = tokio::select! {
                biased;
                () = stop.wait() => return,
                read = read::read(&self.client, self.clock.wall(), self.options.timeout) => read,
            };
            let outcome = match read {
                Ok(schema) => Ok(self.adopt(schema)),
                Err(error) => Err(Arc::new(self.failed(error))),
            };
            next = match (&outcome, first) {
                (Ok(_), true) => self.clock.now() + self.options.interval.mul_f64(self.entropy.unit()),
                (Err(_), true) if due => {
                    failures += 1;
                    self.clock.now() + backoff.delay(failures, &*self.entropy)
                }
                (_, false) if due => self.clock.now() + self.options.interval,
                _ => next,
            };
            for reply in waiting {
                // who no longer waits needs no answer
                drop(reply.send(outcome.clone()));
            }
        }
    }

    /// Puts a whole view in place. What did not change stays the same `Arc`, and waiters are woken only by a change.
    fn adopt(&mut self, mut schema: Schema) -> Arc<Schema> {
        let old = self.current.borrow().clone();
        let mut changed = true;
        if let Some(old) = &old {
            for (name, table) in &mut schema.tables {
                if let Some(same) = old.tables.get(name).filter(|same| *same == table) {
                    *table = same.clone();
                }
            }
            if old.settings == schema.settings {
                schema.settings = old.settings.clone();
            }
            changed = old.version != schema.version
                || old.timezone != schema.timezone
                || !Arc::ptr_eq(&old.settings, &schema.settings)
                || old.tables != schema.tables;
        }
        let schema = Arc::new(schema);
        self.client.learn(schema.settings.clone());
        self.current.send_if_modified(|current| {
            *current = Some(schema.clone());
            changed
        });
        self.tell_windows(&schema);
        self.tell_read(&schema, old.is_none());
        let mut stats = self.stats.lock();
        stats.reads += 1;
        stats.last_error = None;
        stats.last_code = None;
        stats.taken_at = Some(schema.taken_at);
        schema
    }

    /// Warns of tables that keep no tokens, each once: an insert whose answer is lost is repeated, and may double there.
    fn tell_windows(&mut self, schema: &Schema) {
        let without = schema.tables.values().filter(|table| table.deduplication_window == Some(0));
        let mut new: Vec<&str> = without.map(|table| &*table.name).filter(|name| !self.told.contains(*name)).collect();
        let tables = new.len();
        if tables == 0 {
            return;
        }
        self.told.extend(new.iter().map(|name| (*name).to_owned()));
        new.truncate(NAMED);
        let names = new.join(", ");
        tracing::warn!(
            tables,
            names,
            "{tables} tables keep no tokens of inserts: one whose answer is lost may be stored twice there; set \
             non_replicated_deduplication_window to 1000 on them ({names}{})",
            if tables > NAMED { ", …" } else { "" }
        );
    }

    /// Says that the schema is there, the first time and after reads that failed.
    fn tell_read(&mut self, schema: &Schema, first: bool) {
        let (tables, version, place) = (schema.tables.len(), &schema.version, self.client.pool_key());
        match self.failing.take() {
            Some(Failing { since, reads, .. }) => {
                let seconds = self.clock.now().saturating_duration_since(since).as_secs();
                tracing::info!(
                    tables, %version, reads, seconds,
                    "the schema of {place} is read again, after {reads} failed reads in {seconds} s"
                );
            }
            None if first => tracing::info!(tables, %version, "the schema of {place} is read"),
            None => {}
        }
    }

    fn failed(&mut self, error: Error) -> Error {
        let now = self.clock.now();
        let failing = || Failing { since: now, reads: 0, told: Throttle::new(TELL_FAILED) };
        let failing = self.failing.get_or_insert_with(failing);
        failing.reads += 1;
        let place = self.client.pool_key();
        match failing.told.note(1, now) {
            Some(1) => tracing::warn!(%error, "the schema of {place} could not be read, what was known stays"),
            Some(count) => tracing::warn!(
                %error, count,
                "the schema of {place} could not be read {count} more times, what was known stays"
            ),
            None => tracing::debug!(%error, "the schema of {place} could not be read again"),
        }
        let mut stats = self.stats.lock();
        stats.failures += 1;
        stats.last_error = Some(error.to_string());
        stats.last_code = error.code();
        error
    }
}

/// The current schema, for any number of readers. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct SchemaHandle {
    current: watch::Receiver<Option<Arc<Schema>>>,
    stats: Arc<Mutex<DiscoveryStats>>,
    calls: Option<mpsc::Sender<Reply>>,
}

impl SchemaHandle {
    /// A handle on a schema that never changes: for tests and for embedding without discovery.
    #[must_use]
    pub fn fixed(schema: Schema) -> Self {
        let stats = DiscoveryStats { reads: 1, taken_at: Some(schema.taken_at), ..DiscoveryStats::default() };
        Self { current: watch::channel(Some(Arc::new(schema))).1, stats: Arc::new(Mutex::new(stats)), calls: None }
    }

    /// The latest good view; `None` until the first read succeeded. Never waits.
    #[must_use]
    pub fn get(&self) -> Option<Arc<Schema>> {
        self.current.borrow().clone()
    }

    /// Wakes on changes of the view: not when a read found it as it was.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Option<Arc<Schema>>> {
        self.current.clone()
    }

    /// Reads now and returns the new view. Reads never overlap: calls that come while one runs share the one after it,
    /// so each sees whatever was done before it called. A caller that others can drive paces itself.
    ///
    /// # Errors
    /// Why the read failed: the view before it is kept. [`Kind::Stopping`] once the discovery has stopped.
    ///
    /// # Cancel safety
    /// Safe: the read goes on for the others.
    pub async fn refresh(&self) -> Result<Arc<Schema>, Arc<Error>> {
        let stopped = || {
            let purpose = Purpose { op: "discover", effect: false };
            Arc::new(Error::new(Kind::Stopping, purpose, "discovery has stopped"))
        };
        match (&self.calls, self.get()) {
            (Some(calls), _) => {
                let (reply, answer) = oneshot::channel();
                calls.send(reply).await.map_err(|_| stopped())?;
                answer.await.map_err(|_| stopped())?
            }
            (None, fixed) => fixed.ok_or_else(stopped),
        }
    }

    /// Counts.
    #[must_use]
    pub fn stats(&self) -> DiscoveryStats {
        self.stats.lock().clone()
    }
}
