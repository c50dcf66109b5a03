//! Leases among the parts of one process: a table in memory. A term ends when it is resigned or dropped, never by time.

use crate::{
    Claim, End, Error, Keeper, Key, Kind, Lease, Leases as Port, Options, Result, Seen, Session, Term, port::check,
};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{
    collections::{
        BTreeMap, HashMap,
        hash_map::{Entry, VacantEntry},
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;
use wh_types::Stop;

#[derive(Debug)]
struct Held {
    seen: Seen,
    fence: u64,
    keeper: Keeper,
}

#[derive(Debug)]
struct Table {
    held: Mutex<HashMap<Key, Held>>,
    /// Counts claims and notes; a fence is its value at the claim, so fences of every key grow.
    revision: Mutex<u64>,
    changes: watch::Sender<u64>,
}

impl Table {
    fn next(&self) -> u64 {
        let mut revision = self.revision.lock();
        *revision += 1;
        *revision
    }

    fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }

    /// Frees a key if this term still has it.
    fn free(&self, key: &Key, fence: u64, end: End) {
        let mut held = self.held.lock();
        if held.get(key).is_some_and(|own| own.fence == fence) {
            let own = held.remove(key);
            drop(held);
            if let Some(own) = own {
                own.keeper.end(end);
            }
            self.changed();
        }
    }
}

/// One coordinator of the process. [`Leases::peer`] makes another over the same table.
#[derive(Debug)]
pub struct Leases {
    table: Arc<Table>,
    options: Options,
    session: Session,
    closed: AtomicBool,
}

impl Leases {
    /// A coordinator over an empty table.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let table = Table { held: Mutex::default(), revision: Mutex::default(), changes: watch::Sender::new(0) };
        Self::over(Arc::new(table), options)
    }

    /// Another coordinator over the same table.
    #[must_use]
    pub fn peer(&self, options: Options) -> Self {
        Self::over(Arc::clone(&self.table), options)
    }

    fn over(table: Arc<Table>, options: Options) -> Self {
        let session = Session::draw(&*options.entropy);
        Self { table, options, session, closed: AtomicBool::new(false) }
    }

    fn open(&self, op: &'static str) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::new(op, Kind::Stopping)) } else { Ok(()) }
    }

    /// A lease in an empty place of the table.
    fn begin(&self, place: VacantEntry<'_, Key, Held>, note: &str) -> Lease {
        let (key, fence) = (place.key().clone(), self.table.next());
        let (keeper, term) = Keeper::begin(None);
        let seen = Seen {
            holder: self.options.holder.clone(),
            session: self.session.clone(),
            duration: self.options.duration,
            note: note.to_owned(),
            over: None,
            revision: fence,
            lapses: None,
        };
        place.insert(Held { seen, fence, keeper });
        let dropped = Stop::new();
        self.watch(key.clone(), fence, term.clone(), dropped.clone());
        Lease::new(key, fence, term, dropped)
    }

    /// Frees the key when the lease is dropped.
    fn watch(&self, key: Key, fence: u64, term: Term, dropped: Stop) {
        let table = Arc::clone(&self.table);
        self.options.tasks.spawn("coord/dropped", async move {
            tokio::select! {
                biased;
                _ = term.ended() => {}
                () = dropped.wait() => table.free(&key, fence, End::Lost),
            }
        });
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Port for Leases {
    async fn claim(&self, key: &Key, note: &str) -> Result<Claim> {
        self.open("claim")?;
        check(note)?;
        let lease = match self.table.held.lock().entry(key.clone()) {
            Entry::Occupied(place) => return Ok(Claim::Held(place.get().seen.clone())),
            Entry::Vacant(place) => self.begin(place, note),
        };
        self.table.changed();
        Ok(Claim::Won { lease, over: None })
    }

    async fn renew(&self, lease: &Lease, note: &str) -> Result<()> {
        self.open("renew")?;
        check(note)?;
        let revision = self.table.next();
        let mut held = self.table.held.lock();
        let own = held.get_mut(lease.key()).filter(|own| own.fence == lease.fence());
        let own = own.ok_or_else(|| Error::new("renew", Kind::Ended))?;
        note.clone_into(&mut own.seen.note);
        own.seen.revision = revision;
        drop(held);
        self.table.changed();
        Ok(())
    }

    async fn resign(&self, lease: Lease) -> Result<()> {
        self.table.free(lease.key(), lease.fence(), End::Resigned);
        Ok(())
    }

    async fn clear(&self, _: &Key) -> Result<bool> {
        // nothing lapses here
        self.open("clear").map(|()| false)
    }

    async fn observe(&self, prefix: &Key) -> Result<BTreeMap<Key, Seen>> {
        self.open("observe")?;
        let held = self.table.held.lock();
        let below = held.iter().filter(|(key, _)| key.below(prefix).is_some());
        Ok(below.map(|(key, own)| (key.clone(), own.seen.clone())).collect())
    }

    fn session(&self) -> Session {
        self.session.clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.table.changes.subscribe()
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mine = {
            let held = self.table.held.lock();
            let mine = held.iter().filter(|(_, own)| own.seen.session == self.session);
            mine.map(|(key, own)| (key.clone(), own.fence)).collect::<Vec<_>>()
        };
        for (key, fence) in mine {
            self.table.free(&key, fence, End::Resigned);
        }
    }
}
