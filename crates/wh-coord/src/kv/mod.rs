//! Leases over any store that keeps a value under a key and writes it only where its revision is the expected one. What
//! is decided here is the same for every such store; a store only reads, writes, deletes, lists and tells of changes.

mod claim;
mod held;
mod renew;
mod sightings;
mod store;
mod value;

pub(crate) use store::{Entry, Store};

use crate::{Claim, End, Error, Key, Kind, Lease, Leases, Options, Result, Seen, Session, port::check};
use async_trait::async_trait;
use held::Held;
use sightings::Sightings;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::watch;
use value::Value;
use wh_types::{Mono, Stop};

/// One coordinator.
#[derive(Debug)]
pub(crate) struct Kv<S: Store>(Arc<Shared<S>>);

/// What its methods and its renewals share.
#[derive(Debug)]
pub(crate) struct Shared<S> {
    store: S,
    options: Options,
    session: Session,
    sightings: Sightings,
    held: Held,
    changes: watch::Sender<u64>,
    closed: Stop,
}

impl<S: Store> Kv<S> {
    /// A coordinator over a store.
    pub(crate) fn new(store: S, options: Options) -> Self {
        let shared = Arc::new(Shared {
            session: Session::draw(&*options.entropy),
            sightings: Sightings::default(),
            held: Held::default(),
            changes: watch::Sender::new(0),
            closed: Stop::new(),
            store,
            options,
        });
        let listener = Arc::clone(&shared);
        shared.options.tasks.spawn("coord/changes", async move { listener.listen().await });
        Self(shared)
    }
}

impl<S: Store> Drop for Kv<S> {
    fn drop(&mut self) {
        // renewals end with their leases; nobody listens any more
        self.0.closed.give();
    }
}

impl<S: Store> Shared<S> {
    fn now(&self) -> Mono {
        self.options.clock.now()
    }

    fn open(&self, op: &'static str) -> Result<()> {
        if self.closed.given() { Err(Error::new(op, Kind::Stopping)) } else { Ok(()) }
    }

    fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }

    /// Hears of changes as they happen. A renewal that says nothing new wakes nobody, so that many members do not wake
    /// each other all the time.
    async fn listen(&self) {
        loop {
            let heard = tokio::select! {
                biased;
                () = self.closed.wait() => return,
                heard = self.store.heard() => heard,
            };
            let Some((key, value)) = heard else { return };
            let value = value.map(|value| Value::read(&value, self.options.duration));
            if value.is_none_or(|value| self.sightings.is_news(&key, &value)) {
                self.changed();
            }
        }
    }

    /// How a value looks from here: our own terms as they are, others by when they were last seen to change.
    fn seen(&self, key: &Key, entry: &Entry) -> Seen {
        let now = self.now();
        let value = Value::read(&entry.value, self.options.duration);
        let lapses = match self.held.until(key) {
            Some(until) if value.session == self.session.as_str() => until,
            _ => return self.sightings.see(key, entry, value, now),
        };
        value.seen(entry.revision, lapses)
    }

    /// Reads within the time a request has.
    async fn read(&self, op: &'static str, key: &Key) -> Result<Option<Entry>> {
        let read = tokio::time::timeout(self.options.request(), self.store.read(key)).await;
        read.unwrap_or_else(|_| Err(Error::new(op, Kind::Unavailable)))
    }

    /// Writes within the time a request has. `expected`: the revision that is overwritten; `None`: nothing is.
    async fn write(&self, op: &'static str, key: &Key, value: &Value, expected: Option<u64>) -> Result<u64> {
        let bytes = value.bytes()?;
        let write = tokio::time::timeout(self.options.request(), self.store.write(key, bytes, expected)).await;
        write.unwrap_or_else(|_| Err(Error::new(op, Kind::Unknown)))
    }

    async fn delete(&self, op: &'static str, key: &Key, expected: u64) -> Result<()> {
        let delete = tokio::time::timeout(self.options.request(), self.store.delete(key, expected)).await;
        delete.unwrap_or_else(|_| Err(Error::new(op, Kind::Unknown)))
    }

    fn value(&self, note: &str, over: Option<&Session>) -> Value {
        Value {
            holder: self.options.holder.chars().take(200).collect(),
            session: self.session.as_str().to_owned(),
            duration_ms: u64::try_from(self.options.duration.as_millis()).unwrap_or(u64::MAX),
            note: note.to_owned(),
            over: over.map(|session| session.as_str().to_owned()),
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: Store> Leases for Kv<S> {
    async fn claim(&self, key: &Key, note: &str) -> Result<Claim> {
        self.0.open("claim")?;
        check(note)?;
        claim::claim(&self.0, key, note).await
    }

    async fn renew(&self, lease: &Lease, note: &str) -> Result<()> {
        self.0.open("renew")?;
        check(note)?;
        self.0.held.note(lease, note).await
    }

    async fn resign(&self, lease: Lease) -> Result<()> {
        self.0.held.resign(&lease).await
    }

    async fn clear(&self, key: &Key) -> Result<bool> {
        self.0.open("clear")?;
        let Some(entry) = self.0.read("clear", key).await? else { return Ok(false) };
        if self.0.seen(key, &entry).is_live(self.0.now()) {
            return Ok(false);
        }
        match self.0.delete("clear", key, entry.revision).await {
            Ok(()) => {
                // its sighting stays: a read that was under way would see the old value for the first time, as a live one
                self.0.changed();
                Ok(true)
            }
            Err(error) if *error.kind() == Kind::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn observe(&self, prefix: &Key) -> Result<BTreeMap<Key, Seen>> {
        self.0.open("observe")?;
        let list = tokio::time::timeout(self.0.options.request(), self.0.store.list(prefix)).await;
        let entries = list.unwrap_or_else(|_| Err(Error::new("observe", Kind::Unavailable)))?;
        self.0.sightings.keep_only(prefix, &entries);
        Ok(entries.iter().map(|(key, entry)| (key.clone(), self.0.seen(key, entry))).collect())
    }

    fn session(&self) -> Session {
        self.0.session.clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    async fn close(&self) {
        self.0.closed.give();
        futures::future::join_all(self.0.held.all().into_iter().map(|own| async move {
            // what cannot be deleted lapses
            let _resigned = own.resign(End::Resigned).await;
        }))
        .await;
    }
}

/// Implements the port for a type by its field `kv`.
macro_rules! over_kv {
    ($backend:ty) => {
        #[async_trait::async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl crate::Leases for $backend {
            async fn claim(&self, key: &crate::Key, note: &str) -> crate::Result<crate::Claim> {
                self.kv.claim(key, note).await
            }

            async fn renew(&self, lease: &crate::Lease, note: &str) -> crate::Result<()> {
                self.kv.renew(lease, note).await
            }

            async fn resign(&self, lease: crate::Lease) -> crate::Result<()> {
                self.kv.resign(lease).await
            }

            async fn clear(&self, key: &crate::Key) -> crate::Result<bool> {
                self.kv.clear(key).await
            }

            async fn observe(
                &self,
                prefix: &crate::Key,
            ) -> crate::Result<std::collections::BTreeMap<crate::Key, crate::Seen>> {
                self.kv.observe(prefix).await
            }

            fn session(&self) -> crate::Session {
                self.kv.session()
            }

            fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
                self.kv.changes()
            }

            async fn close(&self) {
                self.kv.close().await;
            }
        }
    };
}
pub(crate) use over_kv;
