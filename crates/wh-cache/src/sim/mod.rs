//! A store in memory that members share and whose ways are slow, are cut and refuse as a script says. The cache over it
//! is the same code as over a real store.
//!
//! It draws nothing but from the entropy it is given and reads the clock it is given, so a seeded run replays.

mod link;
#[cfg(test)]
mod tests;

pub use link::Link;

use crate::{
    Options, Result,
    remote::{Item, Remote, Store, over_remote},
};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use wh_types::{Clock, Mono};

/// The store that members join. Cloning gives another handle to the same one.
#[derive(Clone, Debug, Default)]
pub struct Cluster(Arc<Mutex<Entries>>);

type Entries = BTreeMap<String, (Bytes, Mono)>;

/// What a store held at some time.
#[derive(Clone, Debug)]
pub struct Image(Entries);

/// One member of a [`Cluster`].
#[derive(Debug)]
pub struct Cache {
    cache: Remote<Far>,
    link: Link,
}

over_remote!(Cache);

impl Cluster {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A member that reaches the store over a link of its own.
    #[must_use]
    pub fn join(&self, options: Options) -> Cache {
        let link = Link::new(Arc::clone(&options.entropy));
        self.join_over(options, link, true)
    }

    /// A member whose link is what it is, and that is not connected yet.
    #[must_use]
    pub fn join_later(&self, options: Options, link: Link) -> Cache {
        self.join_over(options, link, false)
    }

    fn join_over(&self, options: Options, link: Link, connected: bool) -> Cache {
        let far = Far { entries: Arc::clone(&self.0), link: link.clone(), clock: Arc::clone(&options.clock) };
        Cache { cache: Remote::new(far, options, connected), link }
    }

    /// Forgets everything, as a store that was emptied or evicts.
    pub fn wipe(&self) {
        self.0.lock().clear();
    }

    /// What it holds.
    #[must_use]
    pub fn image(&self) -> Image {
        Image(self.0.lock().clone())
    }

    /// Makes it hold what it held then.
    pub fn restore(&self, image: Image) {
        *self.0.lock() = image.0;
    }

    /// Writes something under every version's name that is none.
    pub fn spoil_versions(&self) {
        for (name, (value, _)) in &mut *self.0.lock() {
            if name.contains('{') {
                *value = Bytes::from_static(b"not a version");
            }
        }
    }
}

impl Cache {
    /// Its way to the store.
    #[must_use]
    pub fn link(&self) -> Link {
        self.link.clone()
    }
}

/// The store from one member's side.
#[derive(Debug)]
struct Far {
    entries: Arc<Mutex<Entries>>,
    link: Link,
    clock: Arc<dyn Clock>,
}

impl Far {
    /// There, what is done there, and back.
    async fn ask<T>(&self, write: bool, act: impl FnOnce(&mut Entries, Mono) -> T + Send) -> Result<T> {
        let over = self.link.connection();
        self.link.way(over).await?;
        self.link.takes(write)?;
        let answer = act(&mut self.entries.lock(), self.clock.now());
        self.link.back(over, write).await?;
        Ok(answer)
    }
}

fn alive(entries: &Entries, name: &str, now: Mono) -> Option<Bytes> {
    entries.get(name).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
}

fn put(entries: &mut Entries, item: &Item, now: Mono) {
    entries.insert(item.name.clone(), (item.value.clone(), now + item.ttl));
}

#[async_trait]
impl Store for Far {
    const BACKEND: &'static str = "sim";

    async fn read(&self, versions: &[String], value: Option<&str>) -> Result<(Vec<Option<Bytes>>, Option<Bytes>)> {
        let read = |entries: &mut Entries, now| {
            let versions = versions.iter().map(|name| alive(entries, name, now)).collect();
            (versions, value.and_then(|name| alive(entries, name, now)))
        };
        self.ask(false, read).await
    }

    async fn create(&self, versions: &[Item]) -> Result<Vec<Option<Bytes>>> {
        let create = |entries: &mut Entries, now| {
            for item in versions {
                if alive(entries, &item.name, now).is_none() {
                    put(entries, item, now);
                }
            }
            versions.iter().map(|item| alive(entries, &item.name, now)).collect()
        };
        self.ask(true, create).await
    }

    async fn write(&self, items: &[Item]) -> Vec<Result<()>> {
        let write = |entries: &mut Entries, now| items.iter().for_each(|item| put(entries, item, now));
        match self.ask(true, write).await {
            Ok(()) => items.iter().map(|_| Ok(())).collect(),
            Err(error) => vec![Err(error)],
        }
    }

    async fn peek(&self, names: &[String]) -> Result<Vec<Option<Bytes>>> {
        let peek = |entries: &mut Entries, now| names.iter().map(|name| alive(entries, name, now)).collect::<Vec<_>>();
        self.ask(false, peek).await
    }

    async fn renew(&self) -> Result<()> {
        self.link.connect();
        self.ask(true, |_, _| ()).await
    }

    async fn end(&self) {}
}
