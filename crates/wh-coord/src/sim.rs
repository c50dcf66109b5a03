//! A lease store in memory whose links are slow, lose answers and are cut, as a script or a seed says. The leases over
//! it are the same code as over a real store.
//!
//! It reads no clock and draws nothing but from the entropy it is given, so a seeded run replays.

use crate::{
    Error, Key, Kind, Options, Result,
    kv::{Entry, Kv, Store},
};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::{collections::BTreeMap, future, sync::Arc, time::Duration};
use tokio::sync::broadcast;
use wh_types::Entropy;

/// The store that coordinators join. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct Cluster(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    changes: broadcast::Sender<(Key, Option<Bytes>)>,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<Key, Entry>,
    revision: u64,
}

impl Default for Cluster {
    fn default() -> Self {
        let changes = broadcast::Sender::new(4_096);
        Self(Arc::new(Inner { state: Mutex::default(), changes }))
    }
}

impl Cluster {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A coordinator that reaches the store over a link of its own.
    #[must_use]
    pub fn join(&self, options: Options) -> Leases {
        let link = Link::new(Arc::clone(&options.entropy));
        let far = Far {
            inner: Arc::clone(&self.0),
            link: link.clone(),
            heard: tokio::sync::Mutex::new(self.0.changes.subscribe()),
        };
        Leases { kv: Kv::new(far, options), link }
    }

    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.state.lock().entries.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes over a value, as an operator would: whoever holds the key loses it.
    pub fn overwrite(&self, key: &Key, value: impl Into<Bytes>) {
        let mut state = self.0.state.lock();
        let entry = state.put(key, value.into());
        self.0.tell(key, Some(entry.value));
    }

    /// Removes a value, as an operator would.
    pub fn remove(&self, key: &Key) {
        let mut state = self.0.state.lock();
        state.revision += 1;
        state.entries.remove(key);
        self.0.tell(key, None);
    }
}

impl State {
    fn put(&mut self, key: &Key, value: Bytes) -> Entry {
        self.revision += 1;
        let entry = Entry { value, revision: self.revision };
        self.entries.insert(key.clone(), entry.clone());
        entry
    }
}

impl Inner {
    fn tell(&self, key: &Key, value: Option<Bytes>) {
        // nobody listening is fine
        let _listeners = self.changes.send((key.clone(), value));
    }
}

/// What the way to the store is like now.
#[derive(Clone, Debug)]
pub struct Link(Arc<LinkInner>);

#[derive(Debug)]
struct LinkInner {
    ways: Mutex<Ways>,
    entropy: Arc<dyn Entropy>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    cut: bool,
    deaf: bool,
    /// Of one way; uniform between the two.
    slow: (Duration, Duration),
    /// So many of the next writes are stored and their answers lost.
    lose: u32,
    /// Of each answer.
    loses: f64,
}

impl Link {
    fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self(Arc::new(LinkInner { ways: Mutex::default(), entropy }))
    }

    /// Cuts it or heals it. What is under way while it is cut never arrives.
    pub fn cut(&self, cut: bool) {
        self.0.ways.lock().cut = cut;
    }

    /// Keeps what is told of changes from arriving, or not.
    pub fn deafen(&self, deaf: bool) {
        self.0.ways.lock().deaf = deaf;
    }

    /// How long each way takes: uniform between the two.
    pub fn slow(&self, least: Duration, most: Duration) {
        self.0.ways.lock().slow = (least, most);
    }

    /// Loses the answers of so many of the next writes, which are stored.
    pub fn lose_answers(&self, writes: u32) {
        self.0.ways.lock().lose = writes;
    }

    /// Loses each answer with this probability.
    pub fn lose_randomly(&self, probability: f64) {
        self.0.ways.lock().loses = probability;
    }

    /// One way over it; for ever when it is cut.
    async fn way(&self) {
        let (least, most) = self.0.ways.lock().slow;
        if most > Duration::ZERO {
            let wait = least + most.saturating_sub(least).mul_f64(self.0.entropy.unit());
            tokio::time::sleep(wait).await;
        }
        if self.0.ways.lock().cut {
            future::pending::<()>().await;
        }
    }

    /// Whether this answer is lost.
    fn loses(&self, write: bool) -> bool {
        let mut ways = self.0.ways.lock();
        if write && ways.lose > 0 {
            ways.lose -= 1;
            return true;
        }
        ways.loses > 0.0 && self.0.entropy.unit() < ways.loses
    }
}

/// The store from one coordinator's side.
#[derive(Debug)]
struct Far {
    inner: Arc<Inner>,
    link: Link,
    heard: tokio::sync::Mutex<broadcast::Receiver<(Key, Option<Bytes>)>>,
}

impl Far {
    /// There, what is done there, and back.
    async fn ask<T>(&self, write: bool, act: impl FnOnce(&mut State) -> T + Send) -> T {
        self.link.way().await;
        let answer = act(&mut self.inner.state.lock());
        self.link.way().await;
        if self.link.loses(write) {
            future::pending::<()>().await;
        }
        answer
    }
}

#[async_trait]
impl Store for Far {
    async fn read(&self, key: &Key) -> Result<Option<Entry>> {
        Ok(self.ask(false, |state| state.entries.get(key).cloned()).await)
    }

    async fn write(&self, key: &Key, value: Bytes, expected: Option<u64>) -> Result<u64> {
        let write = |state: &mut State| {
            if state.entries.get(key).map(|entry| entry.revision) != expected {
                return Err(Error::new("write", Kind::Conflict));
            }
            let entry = state.put(key, value);
            let revision = entry.revision;
            self.inner.tell(key, Some(entry.value));
            Ok(revision)
        };
        self.ask(true, write).await
    }

    async fn delete(&self, key: &Key, expected: u64) -> Result<()> {
        let delete = |state: &mut State| {
            if state.entries.get(key).map(|entry| entry.revision) != Some(expected) {
                return Err(Error::new("delete", Kind::Conflict));
            }
            state.revision += 1;
            state.entries.remove(key);
            self.inner.tell(key, None);
            Ok(())
        };
        self.ask(true, delete).await
    }

    async fn list(&self, prefix: &Key) -> Result<BTreeMap<Key, Entry>> {
        let list = |state: &mut State| {
            let below = state.entries.iter().filter(|(key, _)| key.below(prefix).is_some());
            below.map(|(key, entry)| (key.clone(), entry.clone())).collect()
        };
        Ok(self.ask(false, list).await)
    }

    async fn heard(&self) -> Option<(Key, Option<Bytes>)> {
        let mut heard = self.heard.lock().await;
        loop {
            let change = match heard.recv().await {
                Ok(change) => change,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return None,
            };
            let ways = *self.link.0.ways.lock();
            if !ways.cut && !ways.deaf {
                tokio::time::sleep(ways.slow.0).await;
                return Some(change);
            }
        }
    }
}

/// One coordinator of a [`Cluster`].
#[derive(Debug)]
pub struct Leases {
    kv: Kv<Far>,
    link: Link,
}

impl Leases {
    /// Its way to the store.
    #[must_use]
    pub fn link(&self) -> Link {
        self.link.clone()
    }
}

crate::kv::over_kv!(Leases);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claim, Leases as _};
    use wh_types::{Clock as _, SeededEntropy, SystemClock, Tasks};

    const MS: Duration = Duration::from_millis(1);

    fn join(cluster: &Cluster, seed: u64) -> Leases {
        cluster.join(Options {
            holder: format!("h{seed}"),
            duration: Duration::from_secs(3),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SeededEntropy::new(seed)),
            tasks: Tasks::new(),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_was_under_way_does_not_bring_a_cleared_lease_back_to_life() {
        let (cluster, key, prefix) = (Cluster::new(), Key::new("a.k").unwrap(), Key::new("a").unwrap());
        let (dead, us) = (join(&cluster, 1), join(&cluster, 2));
        let Ok(Claim::Won { lease, .. }) = dead.claim(&key, "").await else { panic!("not won") };
        dead.link().cut(true);
        us.observe(&prefix).await.unwrap();
        tokio::time::sleep(4_000 * MS).await;
        drop(lease);

        let link = us.link();
        let ways = |most: u32| link.slow(most * MS, most * MS);
        ways(100);
        // `clear` reads until 200 and deletes from 300 to 400; the read sees the lease at 250 and is back at 550
        let clear = us.clear(&key);
        let read = async {
            tokio::time::sleep(150 * MS).await;
            us.observe(&prefix).await
        };
        let slow = async {
            tokio::time::sleep(210 * MS).await;
            ways(300);
            tokio::time::sleep(50 * MS).await;
            ways(100);
        };
        let (cleared, read, ()) = tokio::join!(clear, read, slow);
        assert!(cleared.unwrap() && cluster.is_empty());
        let read = read.unwrap();
        assert!(!read[&key].is_live(SystemClock.now()), "{read:?}");
        assert!(us.observe(&prefix).await.unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_pause_the_own_lost_key_is_claimed_again() {
        let (cluster, key) = (Cluster::new(), Key::new("a.k").unwrap());
        let (tasks, freezer) = Tasks::freezable();
        let us = cluster.join(Options {
            holder: "h".to_owned(),
            duration: Duration::from_secs(3),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SeededEntropy::new(1)),
            tasks,
        });
        let Ok(Claim::Won { lease, .. }) = us.claim(&key, "").await else { panic!("not won") };
        freezer.freeze();
        tokio::time::sleep(4_000 * MS).await;
        freezer.thaw();
        // its renewals have not seen yet that its time is over
        assert!(!lease.term().is_live(SystemClock.now()));
        assert!(matches!(us.claim(&key, "").await, Ok(Claim::Won { .. })));
    }
}
