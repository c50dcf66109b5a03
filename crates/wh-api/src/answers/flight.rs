//! Computations that several requests wait for. One is driven by whoever waits; it ends when nobody does.

use super::kept::Produced;
use crate::error::ApiError;
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use wh_cache::{Key, Snapshot};

/// A computation, for any number of waiters.
pub(super) type Running = Shared<BoxFuture<'static, Result<Arc<Produced>, ApiError>>>;
type Weak = WeakShared<BoxFuture<'static, Result<Arc<Produced>, ApiError>>>;
type Which = (Key, u64);

/// The computations under way.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    all: HashMap<Which, Vec<Flight>>,
}

#[derive(Debug)]
struct Flight {
    id: u64,
    /// What it reads, as it was before it began.
    at: Snapshot,
    running: Weak,
}

impl Flights {
    /// The computation of this answer as things stand, begun if there is none; and whether there was one. One that began
    /// before something it reads was written is not joined.
    pub(super) fn join(
        self: &Arc<Self>,
        which: Which,
        at: &Snapshot,
        begin: impl FnOnce() -> BoxFuture<'static, Result<Arc<Produced>, ApiError>>,
    ) -> (Running, bool) {
        let mut state = self.0.lock();
        let same = state.all.get(&which).and_then(|flights| flights.iter().find(|flight| flight.at == *at));
        if let Some(running) = same.and_then(|flight| flight.running.upgrade()) {
            return (running, true);
        }
        let id = state.next;
        state.next += 1;
        let (leaving, inner) = (Leaving { flights: Arc::clone(self), which, id }, begin());
        let whole = async move {
            let _leaving = leaving;
            inner.await
        };
        let running = whole.boxed().shared();
        if let Some(weak) = running.downgrade() {
            state.all.entry(which).or_default().push(Flight { id, at: at.clone(), running: weak });
        }
        (running, false)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().all.values().map(Vec::len).sum()
    }
}

/// Takes a computation off the list once it has ended or was given up.
struct Leaving {
    flights: Arc<Flights>,
    which: Which,
    id: u64,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut state = self.flights.0.lock();
        if let Some(flights) = state.all.get_mut(&self.which) {
            flights.retain(|flight| flight.id != self.id);
            if flights.is_empty() {
                state.all.remove(&self.which);
            }
        }
    }
}
