//! A cache over a store that processes share and that may be slow, away or behind.
//!
//! Every name has a version in the store: random bytes that a write replaces. An answer is stored with the versions it
//! stands on and is served only where they are the versions read now, so an answer that is put late, or by another
//! process, is never served after what ended it.
//!
//! Owed before it is sent: an invalidation is in this process's books before the store hears of it, and leaves them when
//! the store said so. What is dropped half way or fails is repeated by a task.

mod breaker;
mod life;
mod names;
mod options;
mod over;
mod owed;
mod store;
mod value;

#[cfg(feature = "redis")]
pub(crate) use names::probe;
pub use options::Options;
pub(crate) use over::over_remote;
pub(crate) use store::{Item, Store};

use crate::{
    Change, Error, Filled, Found, Hit, Key, Kind, Landing, Outcome, Result, Skipped, Snapshot, Status, View, metrics,
    name::Name, port,
};
use async_trait::async_trait;
use breaker::Breaker;
use bytes::Bytes;
use owed::{Owed, Turn};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::timeout};
use wh_types::{Mono, Stop};

/// Most versions that are written in one go.
const BATCH: usize = 1_000;
/// How often the same kind of trouble is logged as a warning.
const QUIET: Duration = Duration::from_secs(60);

/// The cache. Dropping it ends its tasks.
#[derive(Debug)]
pub(crate) struct Remote<S: Store>(Arc<Shared<S>>);

#[derive(Debug)]
struct Shared<S> {
    store: S,
    options: Options,
    state: Mutex<State>,
    /// Something is owed that nobody is delivering.
    deliver: Notify,
    /// The breaker opened.
    opened: Notify,
    stop: Stop,
    closed: AtomicBool,
}

#[derive(Debug)]
struct State {
    breaker: Breaker,
    owed: Owed,
    /// The last version that this process is known to have written, to see whether a store that comes back still has it.
    written: BTreeMap<Name, u64>,
    warned: Option<Mono>,
}

impl<S: Store> Drop for Remote<S> {
    fn drop(&mut self) {
        self.0.stop.give();
    }
}

impl<S: Store> Remote<S> {
    /// Over a store that is connected, or not yet: then the first connection is made in the background.
    pub(crate) fn new(store: S, options: Options, connected: bool) -> Self {
        let breaker = match connected {
            true => Breaker::closed(options.pause),
            false => Breaker::starting(options.pause, options.clock.now()),
        };
        metrics::breaker(S::BACKEND, breaker.is_open());
        let state = State { breaker, owed: Owed::default(), written: BTreeMap::new(), warned: None };
        let shared = Arc::new(Shared {
            store,
            state: Mutex::new(state),
            deliver: Notify::new(),
            opened: Notify::new(),
            stop: Stop::new(),
            closed: AtomicBool::new(false),
            options,
        });
        let tasks = &shared.options.tasks;
        drop(tasks.spawn("cache connection", life::connect(Arc::clone(&shared))));
        drop(tasks.spawn("cache invalidations", life::deliver(Arc::clone(&shared))));
        Self(shared)
    }
}

impl<S: Store> Shared<S> {
    fn now(&self) -> Mono {
        self.options.clock.now()
    }

    /// Milliseconds of Unix time.
    fn wall(&self) -> u64 {
        u64::try_from(self.options.clock.wall().as_nanos() / 1_000_000).unwrap_or(0)
    }

    fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether the store is not to be asked about a view.
    fn bypasses(&self, view: &View) -> bool {
        let state = self.state.lock();
        self.closed() || state.breaker.is_open() || state.owed.touches(view)
    }

    /// Does one operation within its time and keeps the books on the store's health.
    async fn attempt<T>(
        &self,
        op: &'static str,
        within: Duration,
        act: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let began = self.now();
        let outcome = timeout(within, act).await.unwrap_or_else(|_| Err(Error::new(op, Kind::TimedOut)));
        metrics::took(S::BACKEND, op, self.now().saturating_duration_since(began));
        match &outcome {
            Ok(_) => self.state.lock().breaker.worked(),
            Err(error) => self.failed(error),
        }
        outcome
    }

    fn failed(&self, error: &Error) {
        let now = self.now();
        let mut state = self.state.lock();
        let opened = state.breaker.failed(error, now);
        let loud = opened || matches!(error.kind(), Kind::Forbidden(_) | Kind::Corrupt(_));
        let warn = loud && state.warned.is_none_or(|at| now.saturating_duration_since(at) >= QUIET);
        if warn {
            state.warned = Some(now);
        }
        drop(state);
        let backend = S::BACKEND;
        if opened {
            metrics::breaker(backend, true);
            self.opened.notify_one();
        }
        match (warn, opened) {
            (true, true) => {
                tracing::warn!(backend, code = error.code(), "{error}; answers are not cached until it ends")
            }
            (true, false) => tracing::warn!(backend, code = error.code(), "{error}"),
            (false, _) => tracing::debug!(backend, code = error.code(), "{error}"),
        }
    }

    fn version_items(&self, names: &[Name]) -> Vec<Item> {
        let item = |name: &Name| {
            let ttl = self.options.version_ttl.mul_f64(0.9 + 0.2 * self.options.entropy.unit());
            let value = Bytes::copy_from_slice(&self.options.entropy.next_u64().to_be_bytes());
            Item { name: names::version(&self.options.prefix, name), value, ttl }
        };
        names.iter().map(item).collect()
    }

    fn answer(&self, view: &View, key: &Key) -> String {
        names::answer(&self.options.prefix, view.tenant(), &view.slot(key))
    }

    /// Reads a view's versions, makes those that are missing, and reads an answer along with them.
    async fn read(&self, view: &View, key: Option<&Key>) -> Result<(Snapshot, Option<Bytes>)> {
        let names = view.names();
        let versions: Vec<_> = names.iter().map(|name| names::version(&self.options.prefix, name)).collect();
        let answer = key.map(|key| self.answer(view, key));
        let (read, answer) = self.store.read(&versions, answer.as_deref()).await?;
        let known = |read: &[Option<Bytes>]| -> Option<Vec<u64>> {
            read.iter().map(|bytes| value::version(bytes.as_ref()?)).collect()
        };
        if let Some(known) = known(&read) {
            return Ok((Snapshot::new(view, known), answer));
        }
        let absent = |(name, bytes): (&Name, &Option<Bytes>)| bytes.is_none().then(|| name.clone());
        let absent: Vec<_> = names.iter().zip(&read).filter_map(absent).collect();
        let read = match absent.len() {
            0 => read,
            // those that are there are given back as they are
            _ => self.store.create(&self.version_items(&names)).await?,
        };
        if let Some(known) = known(&read) {
            return Ok((Snapshot::new(view, known), None));
        }
        let foreign = |(name, bytes): (&Name, &Option<Bytes>)| {
            bytes.as_ref().and_then(|bytes| value::version(bytes)).is_none().then(|| name.clone())
        };
        let foreign: Vec<_> = names.iter().zip(&read).filter_map(foreign).collect();
        tracing::warn!(
            backend = S::BACKEND,
            count = foreign.len(),
            "replaced versions that are none: is the prefix shared?"
        );
        self.store.write(&self.version_items(&foreign)).await.into_iter().collect::<Result<Vec<_>>>()?;
        Ok((Snapshot::blind(view), None))
    }

    fn judge(&self, at: &Snapshot, stored: Option<Bytes>) -> Outcome {
        let (Some(versions), Some(bytes)) = (at.versions(), stored) else { return Outcome::Miss };
        let now = self.wall();
        let served = value::decode(&bytes).and_then(|stored| {
            if stored.versions[..] != versions[..] || now >= stored.until {
                return Ok(Outcome::Stale);
            }
            let age = Duration::from_millis(now.saturating_sub(stored.put));
            let value = stored.value(self.options.max_value_bytes)?;
            Ok(Outcome::Hit(Hit { value, age }))
        });
        served.unwrap_or_else(|error| {
            self.failed(&error);
            Outcome::Fault(error)
        })
    }

    /// Writes versions; those that landed are owed no more.
    async fn bump(&self, names: &[Name], turn: Turn, within: Duration) -> Result<()> {
        let items = self.version_items(names);
        let act = async { Ok(self.store.write(&items).await) };
        let outcomes = match timeout(within, act).await {
            Ok(outcomes) => outcomes?,
            Err(_) => vec![Err(Error::new("invalidate", Kind::TimedOut))],
        };
        let mut state = self.state.lock();
        for ((name, item), outcome) in names.iter().zip(&items).zip(&outcomes) {
            if outcome.is_ok() {
                state.owed.paid(name, turn);
                state.written.insert(name.clone(), value::version(&item.value).unwrap_or_default());
            }
        }
        while state.written.len() > owed::MOST {
            state.written.pop_first();
        }
        metrics::pending(S::BACKEND, state.owed.len());
        drop(state);
        match outcomes.into_iter().find_map(Result::err) {
            None => {
                self.state.lock().breaker.worked();
                Ok(())
            }
            Some(error) => {
                self.failed(&error);
                Err(error)
            }
        }
    }
}

/// Wakes the task that delivers what is owed, unless all was delivered.
struct Deliver<'a>(Option<&'a Notify>);

impl Drop for Deliver<'_> {
    fn drop(&mut self) {
        if let Some(deliver) = self.0 {
            deliver.notify_one();
        }
    }
}

#[async_trait]
impl<S: Store> crate::Cache for Remote<S> {
    async fn snapshot(&self, view: &View) -> Snapshot {
        let shared = &*self.0;
        if shared.bypasses(view) {
            return Snapshot::blind(view);
        }
        let read = shared.attempt("snapshot", shared.options.timeout, shared.read(view, None)).await;
        read.map_or_else(|_| Snapshot::blind(view), |(at, _)| at)
    }

    async fn get(&self, at: &Snapshot, key: &Key) -> Outcome {
        let shared = &*self.0;
        let outcome = if at.is_blind() || shared.bypasses(at.view()) {
            Outcome::Bypass
        } else {
            let name = shared.answer(at.view(), key);
            match shared.attempt("lookup", shared.options.timeout, shared.store.read(&[], Some(&name))).await {
                Ok((_, stored)) => shared.judge(at, stored),
                Err(error) => Outcome::Fault(error),
            }
        };
        metrics::looked_up(S::BACKEND, &outcome);
        outcome
    }

    async fn lookup(&self, view: &View, key: &Key) -> Found {
        let shared = &*self.0;
        let found = if shared.bypasses(view) {
            Found { at: Snapshot::blind(view), outcome: Outcome::Bypass }
        } else {
            match shared.attempt("lookup", shared.options.timeout, shared.read(view, Some(key))).await {
                Ok((at, stored)) => Found { outcome: shared.judge(&at, stored), at },
                Err(error) => Found { at: Snapshot::blind(view), outcome: Outcome::Fault(error) },
            }
        };
        metrics::looked_up(S::BACKEND, &found.outcome);
        found
    }

    async fn put(&self, at: &Snapshot, key: &Key, value: Bytes, ttl: Duration) -> Result<Filled> {
        let shared = &*self.0;
        if shared.closed() {
            return Err(Error::new("put", Kind::Stopping));
        }
        if value.len() > shared.options.max_value_bytes {
            metrics::oversize(S::BACKEND);
        }
        port::check(&value, shared.options.max_value_bytes, ttl)?;
        let Some(versions) = at.versions() else { return Ok(Filled::Skipped(Skipped::Blind)) };
        if shared.bypasses(at.view()) {
            return Ok(Filled::Skipped(Skipped::Bypassed));
        }
        let name = shared.answer(at.view(), key);
        let stored = value::encode(versions, shared.wall(), ttl, &value, shared.options.pack_from);
        let items = [Item { name, value: stored, ttl }];
        let write = async { shared.store.write(&items).await.pop().unwrap_or(Ok(())) };
        match shared.attempt("set", shared.options.timeout, write).await {
            Ok(()) => {
                metrics::kept(S::BACKEND, value.len());
                Ok(Filled::Kept)
            }
            Err(error) => {
                metrics::set_failed(S::BACKEND, error.kind());
                Err(error)
            }
        }
    }

    async fn invalidate(&self, changes: &[Change]) -> Vec<Result<Landing>> {
        let shared = &*self.0;
        if shared.closed() {
            return changes.iter().map(|_| Err(Error::new("invalidate", Kind::Stopping))).collect();
        }
        let mut names: Vec<_> = changes.iter().flat_map(Change::names).collect();
        names.sort_unstable();
        names.dedup();
        let turn = shared.state.lock().owed.owe(names.iter().cloned());
        let mut deliver = Deliver(Some(&shared.deliver));
        let began = shared.now();
        let mut all = true;
        for names in names.chunks(BATCH) {
            let open = shared.state.lock().breaker.is_open();
            all &= !open && shared.bump(names, turn, shared.options.timeout).await.is_ok();
        }
        metrics::took(S::BACKEND, "invalidate", shared.now().saturating_duration_since(began));
        if all {
            deliver.0 = None;
        }
        let state = shared.state.lock();
        let outcome = |change: &Change| {
            let landed = !change.names().iter().any(|name| state.owed.owes(name, turn));
            metrics::invalidated(S::BACKEND, landed);
            Ok(if landed { Landing::Landed } else { Landing::Owed })
        };
        changes.iter().map(outcome).collect()
    }

    fn status(&self) -> Status {
        let state = self.0.state.lock();
        let away = if self.0.closed() { Some("closed") } else { state.breaker.why() };
        Status { away: away.map(str::to_owned), owed: state.owed.len() }
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
