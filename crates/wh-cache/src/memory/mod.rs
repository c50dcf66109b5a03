//! Answers kept in this process, in one pool for all tenants that is bounded by bytes.
//!
//! A version is a number that was never given before, kept while it is of use. Ending something is forgetting its
//! version: the next snapshot draws a new one, and what was kept under the old is found stale. So the index holds what
//! was looked up since it last changed, and forgetting more of it than needed costs misses only; it is itself a bounded
//! cache for that reason.

#[cfg(test)]
mod tests;

use crate::{
    Change, Error, Filled, Found, Hit, Key, Kind, Landing, Outcome, Result, Skipped, Snapshot, Status, View, metrics,
    name::Name, port,
};
use async_trait::async_trait;
use bytes::Bytes;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter, sync};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use wh_types::{Clock, Mono};

const BACKEND: &str = "memory";
/// What an entry costs beside its bytes.
const OVERHEAD: u64 = 256;
/// Least entries of the largest size that a part of the pool has room for.
const ROOM: u64 = 8;

/// How a cache in memory is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// What all answers may take together, with their overhead. At least eight times `max_value_bytes`.
    pub bytes: u64,
    /// The largest answer that is kept.
    pub max_value_bytes: usize,
    /// Most versions that are remembered: one for each tenant, table and scope.
    pub versions: usize,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl Options {
    /// 64 MiB, 1 MiB an answer, 100,000 versions.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { bytes: 64 << 20, max_value_bytes: 1 << 20, versions: 100_000, clock }
    }
}

/// A cache in memory.
#[derive(Debug)]
pub struct Cache {
    options: Options,
    answers: sync::Cache<[u8; 32], Arc<Entry>, Weigh>,
    versions: sync::Cache<Name, u64>,
    next: AtomicU64,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Entry {
    versions: Arc<[u64]>,
    value: Bytes,
    put: Mono,
    until: Mono,
}

#[derive(Clone, Copy, Debug)]
struct Weigh;

impl Weighter<[u8; 32], Arc<Entry>> for Weigh {
    fn weight(&self, _: &[u8; 32], entry: &Arc<Entry>) -> u64 {
        OVERHEAD + entry.value.len() as u64 + 8 * entry.versions.len() as u64
    }
}

impl Cache {
    /// An empty one.
    ///
    /// # Errors
    /// Invalid: the pool has no room for eight of the largest answers.
    pub fn new(options: Options) -> Result<Self> {
        let largest = options.max_value_bytes as u64 + OVERHEAD + 8 * 200;
        if options.bytes < ROOM * largest {
            let text = format!("{} bytes are less than {ROOM} answers of {largest}", options.bytes);
            return Err(Error::new("memory", Kind::Invalid(text.into())));
        }
        // an answer goes into one part of the pool, whole
        let parts = (options.bytes / (ROOM * largest)).clamp(1, 64);
        let items = usize::try_from(options.bytes / (8 << 10)).unwrap_or(usize::MAX).max(16);
        let pool = OptionsBuilder::new()
            .shards(usize::try_from(1_u64 << parts.ilog2()).unwrap_or(1))
            .estimated_items_capacity(items)
            .weight_capacity(options.bytes)
            .build()
            .map_err(|error| Error::new("memory", Kind::Bug("the pool's size".into())).with_source(error))?;
        Ok(Self {
            answers: sync::Cache::with_options(pool, Weigh, DefaultHashBuilder::default(), Default::default()),
            versions: sync::Cache::new(options.versions.max(1)),
            options,
            next: AtomicU64::new(1),
            closed: AtomicBool::new(false),
        })
    }

    /// What all answers take together now, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.answers.weight()
    }

    /// How many versions are remembered.
    #[must_use]
    pub fn versions(&self) -> usize {
        self.versions.len()
    }

    fn version(&self, name: &Name) -> u64 {
        let draw = || Ok::<_, Infallible>(self.next.fetch_add(1, Ordering::Relaxed));
        match self.versions.get_or_insert_with(name, draw) {
            Ok(version) => version,
            Err(never) => match never {},
        }
    }

    fn take(&self, view: &View) -> Snapshot {
        if self.closed.load(Ordering::Acquire) {
            return Snapshot::blind(view);
        }
        Snapshot::new(view, view.names().iter().map(|name| self.version(name)).collect())
    }

    fn find(&self, at: &Snapshot, key: &Key) -> Outcome {
        let Some(versions) = at.versions() else { return Outcome::Bypass };
        let (slot, now) = (at.view().slot(key), self.options.clock.now());
        let Some(entry) = self.answers.get(&slot) else { return Outcome::Miss };
        if entry.versions == *versions && now < entry.until {
            let age = now.saturating_duration_since(entry.put);
            return Outcome::Hit(Hit { value: entry.value.clone(), age });
        }
        if now >= entry.until || !self.holds(at.view(), &entry.versions) {
            // nobody will be served it any more
            self.answers.remove_if(&slot, |held| Arc::ptr_eq(held, &entry));
        }
        Outcome::Stale
    }

    /// Whether these are a view's versions still.
    fn holds(&self, view: &View, versions: &[u64]) -> bool {
        view.names().iter().zip(versions).all(|(name, version)| self.versions.peek(name) == Some(*version))
    }
}

#[async_trait]
impl crate::Cache for Cache {
    async fn snapshot(&self, view: &View) -> Snapshot {
        self.take(view)
    }

    async fn get(&self, at: &Snapshot, key: &Key) -> Outcome {
        let outcome = self.find(at, key);
        metrics::looked_up(BACKEND, &outcome);
        outcome
    }

    async fn lookup(&self, view: &View, key: &Key) -> Found {
        let at = self.take(view);
        let outcome = self.find(&at, key);
        metrics::looked_up(BACKEND, &outcome);
        Found { at, outcome }
    }

    async fn put(&self, at: &Snapshot, key: &Key, value: Bytes, ttl: Duration) -> Result<Filled> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new("put", Kind::Stopping));
        }
        if value.len() > self.options.max_value_bytes {
            metrics::oversize(BACKEND);
        }
        port::check(&value, self.options.max_value_bytes, ttl)?;
        let Some(versions) = at.versions() else { return Ok(Filled::Skipped(Skipped::Blind)) };
        if !self.holds(at.view(), versions) {
            return Ok(Filled::Skipped(Skipped::Stale));
        }
        metrics::kept(BACKEND, value.len());
        let put = self.options.clock.now();
        // copied, so that a part of a larger buffer does not keep all of it
        let value = Bytes::copy_from_slice(&value);
        let entry = Entry { versions: Arc::clone(versions), value, put, until: put + ttl };
        self.answers.insert(at.view().slot(key), Arc::new(entry));
        Ok(Filled::Kept)
    }

    async fn invalidate(&self, changes: &[Change]) -> Vec<Result<Landing>> {
        let closed = self.closed.load(Ordering::Acquire);
        let end = |change: &Change| {
            if closed {
                return Err(Error::new("invalidate", Kind::Stopping));
            }
            for name in change.names() {
                self.versions.remove(&name);
            }
            metrics::invalidated(BACKEND, true);
            Ok(Landing::Landed)
        };
        changes.iter().map(end).collect()
    }

    fn status(&self) -> Status {
        let away = self.closed.load(Ordering::Acquire).then(|| "closed".to_owned());
        Status { away, owed: 0 }
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.answers.clear();
        self.versions.clear();
    }
}
