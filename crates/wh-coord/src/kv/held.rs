//! The terms of one coordinator, and how its methods reach the task that renews each.

use crate::{End, Error, Keeper, Key, Kind, Lease, Result, Term};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::watch;
use wh_types::Mono;

/// What the renewing task is asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    /// Counts notes.
    pub(super) version: u64,
    pub(super) note: Option<String>,
    pub(super) leave: Option<End>,
}

/// What it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// The note of this version, or a later one, is stored.
    Stored(u64),
    /// The term is over, and what can be done about the stored value is done.
    Over {
        /// It is removed, or somebody else's.
        removed: bool,
    },
}

/// One term of ours.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) key: Key,
    pub(super) fence: u64,
    pub(super) keeper: Keeper,
    pub(super) term: Term,
    pub(super) wish: watch::Sender<Wish>,
    pub(super) done: watch::Sender<Done>,
}

impl Own {
    /// Ends the term, and waits until its task did what can be done about the stored value.
    pub(super) async fn resign(&self, end: End) -> Result<()> {
        self.keeper.end(end);
        self.wish.send_modify(|wish| {
            wish.leave.get_or_insert(end);
        });
        let mut done = self.done.subscribe();
        let over = done.wait_for(|done| matches!(done, Done::Over { .. })).await;
        match over.as_deref() {
            Ok(Done::Over { removed: true }) => Ok(()),
            Ok(_) | Err(_) => Err(Error::new("resign", Kind::Unknown)),
        }
    }
}

#[derive(Clone, Debug)]
enum Place {
    Claiming,
    Own(Arc<Own>),
}

#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<Key, Place>>);

impl Held {
    /// Begins a claim, unless one is under way or the term lives.
    pub(super) fn claiming(&self, key: &Key) -> Option<Claiming<'_>> {
        let mut all = self.0.lock();
        if all.contains_key(key) {
            return None;
        }
        all.insert(key.clone(), Place::Claiming);
        Some(Claiming { held: self, key: key.clone(), won: false })
    }

    /// Waits until a term that is over by time is over for its task, too, which a pause may have kept from seeing it. Gives
    /// whether there was one.
    pub(super) async fn saw_the_end(&self, key: &Key, now: Mono) -> bool {
        let mut done = match self.0.lock().get(key) {
            Some(Place::Own(own)) if !own.term.is_live(now) => own.done.subscribe(),
            _ => return false,
        };
        done.wait_for(|done| matches!(done, Done::Over { .. })).await.is_ok()
    }

    pub(super) fn all(&self) -> Vec<Arc<Own>> {
        let own = |place: &Place| match place {
            Place::Own(own) => Some(Arc::clone(own)),
            Place::Claiming => None,
        };
        self.0.lock().values().filter_map(own).collect()
    }

    /// Until when our own term of a key is live.
    pub(super) fn until(&self, key: &Key) -> Option<Mono> {
        match self.0.lock().get(key) {
            Some(Place::Own(own)) if own.term.end().is_none() => own.term.until(),
            _ => None,
        }
    }

    fn own(&self, lease: &Lease) -> Option<Arc<Own>> {
        match self.0.lock().get(lease.key()) {
            Some(Place::Own(own)) if own.fence == lease.fence() => Some(Arc::clone(own)),
            _ => None,
        }
    }

    pub(super) fn forget(&self, own: &Own) {
        let mut all = self.0.lock();
        if matches!(all.get(&own.key), Some(Place::Own(other)) if other.fence == own.fence) {
            all.remove(&own.key);
        }
    }

    /// Gives the term's task a note and waits until it, or a later one, is stored.
    pub(super) async fn note(&self, lease: &Lease, note: &str) -> Result<()> {
        let own = self.own(lease).ok_or_else(|| Error::new("renew", Kind::Ended))?;
        let mut version = 0;
        own.wish.send_modify(|wish| {
            wish.version += 1;
            version = wish.version;
            wish.note = Some(note.to_owned());
        });
        let mut done = own.done.subscribe();
        let stored = done.wait_for(|done| match done {
            Done::Stored(stored) => *stored >= version,
            Done::Over { .. } => true,
        });
        match stored.await.as_deref() {
            Ok(Done::Stored(_)) => Ok(()),
            Ok(Done::Over { .. }) | Err(_) => Err(Error::new("renew", Kind::Ended)),
        }
    }

    pub(super) async fn resign(&self, lease: &Lease) -> Result<()> {
        match self.own(lease) {
            Some(own) => own.resign(End::Resigned).await,
            None => Ok(()),
        }
    }
}

/// A claim under way. Dropped without a win it leaves the key as it was.
#[derive(Debug)]
pub(super) struct Claiming<'a> {
    held: &'a Held,
    key: Key,
    won: bool,
}

impl Claiming<'_> {
    pub(super) fn won(mut self, fence: u64, until: Mono) -> Arc<Own> {
        let (keeper, term) = Keeper::begin(Some(until));
        let (wish, done) = (watch::Sender::new(Wish::default()), watch::Sender::new(Done::Stored(0)));
        let own = Arc::new(Own { key: self.key.clone(), fence, keeper, term, wish, done });
        self.held.0.lock().insert(self.key.clone(), Place::Own(Arc::clone(&own)));
        self.won = true;
        own
    }
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        if !self.won {
            self.held.0.lock().remove(&self.key);
        }
    }
}
