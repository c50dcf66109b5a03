//! A term: what its holder owns, and what others may watch of it.

use crate::Key;
use tokio::sync::watch;
use wh_types::{Mono, Stop};

/// How a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was given up.
    Resigned,
    /// It was not renewed in time, was taken by another, or its lease was dropped.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    /// Not live from here on, whoever says what. `None`: it does not end by time.
    until: Option<Mono>,
    end: Option<End>,
}

/// Watches a term. Cloning watches the same.
#[derive(Clone, Debug)]
pub struct Term(watch::Receiver<Life>);

impl Term {
    /// Whether it is live at a moment. Also false when its time is over and its timer was kept from saying so.
    #[must_use]
    pub fn is_live(&self, now: Mono) -> bool {
        let life = *self.0.borrow();
        life.end.is_none() && life.until.is_none_or(|until| now < until) && self.0.has_changed().is_ok()
    }

    /// Until when it is live if nothing more is heard. `None`: not bounded by time.
    #[must_use]
    pub fn until(&self) -> Option<Mono> {
        self.0.borrow().until
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        let end = self.0.borrow().end;
        end.or_else(|| self.0.has_changed().is_err().then_some(End::Lost))
    }

    /// Returns once it has ended.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn ended(&self) -> End {
        let mut life = self.0.clone();
        match life.wait_for(|life| life.end.is_some()).await {
            Ok(life) => life.end.unwrap_or(End::Lost),
            // its keeper is gone
            Err(_) => End::Lost,
        }
    }
}

/// The side of a term that a backend keeps. The term is lost when it is dropped.
#[derive(Debug)]
pub struct Keeper(watch::Sender<Life>);

impl Keeper {
    /// Begins a term.
    #[must_use]
    pub fn begin(until: Option<Mono>) -> (Self, Term) {
        let (keeper, term) = watch::channel(Life { until, end: None });
        (Self(keeper), Term(term))
    }

    /// It was renewed.
    pub fn extend(&self, until: Mono) {
        self.0.send_modify(|life| life.until = Some(until));
    }

    /// It ended. The first end counts.
    pub fn end(&self, end: End) {
        self.0.send_if_modified(|life| {
            let first = life.end.is_none();
            life.end.get_or_insert(end);
            first
        });
    }
}

/// A term that is held. Give it to [`crate::Leases::resign`]; dropped, it ends as lost and lapses in the store.
#[derive(Debug)]
pub struct Lease {
    key: Key,
    fence: u64,
    term: Term,
    dropped: Stop,
}

impl Lease {
    /// A lease for a backend to give out; `dropped` is given when its owner lets go of it.
    #[must_use]
    pub fn new(key: Key, fence: u64, term: Term, dropped: Stop) -> Self {
        Self { key, fence, term, dropped }
    }

    /// What is held.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Grows with every claim of this key: of two writers the one with the greater fence is the newer.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// How it goes.
    #[must_use]
    pub fn term(&self) -> Term {
        self.term.clone()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.dropped.give();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wh_types::{Clock, SystemClock};

    #[tokio::test(start_paused = true)]
    async fn a_term_is_over_by_time_although_nobody_said_so() {
        let (now, second) = (SystemClock.now(), Duration::from_secs(1));
        let (keeper, term) = Keeper::begin(Some(now + second));
        assert!(term.is_live(now) && !term.is_live(now + second));
        keeper.extend(now + 2 * second);
        assert!(term.is_live(now + second));
        keeper.end(End::Resigned);
        keeper.end(End::Lost);
        assert_eq!((term.end(), term.ended().await), (Some(End::Resigned), End::Resigned));
        assert!(!term.is_live(now));
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_without_a_keeper_is_lost() {
        let (keeper, term) = Keeper::begin(None);
        let now = SystemClock.now();
        assert!(term.is_live(now));
        drop(keeper);
        assert!(!term.is_live(now));
        assert_eq!((term.end(), term.ended().await), (Some(End::Lost), End::Lost));
    }
}
