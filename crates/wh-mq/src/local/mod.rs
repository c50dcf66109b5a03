//! The broker in one process: the state machine behind a lock, with a store for the bodies. `sim` and `embedded` are
//! this with two stores; neither has behaviour of its own that the port speaks of.

mod broker;
mod feed;
mod history;
mod letters;
mod marks;
mod pending;
mod publish;
mod store;

pub(crate) use broker::{Local, local_broker};
pub(crate) use letters::charge as letter_charge;
pub(crate) use pending::{Pending, Woken};
pub(crate) use store::{Change, Finished, Store};

use crate::{
    core::{Core, TableIndex, Tick},
    progress::Board,
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::sync::Notify;
use wh_types::{Clock, Mono, Stop, Tenant, Throttle};

/// How often the calls that pass look for history to drop.
const SWEEP_EVERY: Duration = Duration::from_millis(500);
/// How many blocks one such look drops at most.
const SWEEP_AT_MOST: usize = 2_000;

/// What is behind the lock.
#[derive(Debug)]
pub(crate) struct State<B> {
    pub(crate) core: Core<B>,
    pub(crate) closing: bool,
    /// Who waits for a table's next block. Entries of readers that are gone stay until the table's next block.
    watchers: HashMap<TableIndex, Weak<Notify>>,
    next_sweep: Tick,
    /// Dead letters that were dropped, by tenant, as far as they are to be told of.
    dropped: HashMap<Tenant, Throttle>,
}

/// One local broker.
#[derive(Debug)]
pub(crate) struct Shared<S: Store> {
    state: Mutex<State<S::Body>>,
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock>,
    origin: Mono,
    /// Given when the broker closes: waiting feeds and histories hear it.
    pub(crate) closed: Stop,
    /// One for each shard: its feed has something to look at.
    units: Vec<Notify>,
    /// How far tables are.
    board: Board,
}

impl<S: Store> Shared<S> {
    /// `origin` is when the core's time began.
    pub(crate) fn new(core: Core<S::Body>, store: S, clock: Arc<dyn Clock>, origin: Mono) -> Arc<Self> {
        crate::metrics::describe();
        let units = core.units().iter().map(|_| Notify::new()).collect();
        let (watchers, dropped) = (HashMap::new(), HashMap::new());
        let state = State { core, closing: false, watchers, next_sweep: Tick(0), dropped };
        Arc::new(Self {
            state: Mutex::new(state),
            store,
            clock,
            origin,
            closed: Stop::new(),
            units,
            board: Board::default(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<S::Body>> {
        self.state.lock()
    }

    pub(crate) fn origin(&self) -> Mono {
        self.origin
    }

    pub(crate) fn now(&self) -> Tick {
        let since = self.clock.now().saturating_duration_since(self.origin);
        Tick(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    fn moment(&self, tick: Tick) -> Mono {
        self.origin + Duration::from_nanos(u64::try_from(tick.0).unwrap_or(0))
    }

    /// Drops some old history, if it is time, and tells the store what is free.
    pub(crate) fn sweep(&self, state: &mut State<S::Body>, now: Tick) {
        if now >= state.next_sweep {
            let more = state.core.sweep(now, SWEEP_AT_MOST);
            state.next_sweep = if more { now } else { now.after(SWEEP_EVERY) };
        }
        let freed = state.core.take_freed();
        if !freed.is_empty() {
            self.store.freed(freed);
        }
    }

    /// Submits a change and, where it ends at once, finishes it under the same lock.
    fn submit<'a>(
        self: &'a Arc<Self>,
        room: S::Room<'a>,
        state: &mut State<S::Body>,
        change: Change,
        pending: Pending,
    ) -> Option<Woken> {
        let (pending, outcome) = S::submit(self, room, &mut state.core, change, pending)?;
        Some(pending.finish(self, state, outcome))
    }

    /// Finishes submitted changes. Called in the order of submission.
    pub(crate) fn finish(self: &Arc<Self>, finished: Vec<Finished<S::Body>>) {
        let woken: Vec<Woken> = {
            let mut state = self.lock();
            finished.into_iter().map(|(pending, outcome)| pending.finish(self, &mut state, outcome)).collect()
        };
        woken.into_iter().for_each(|woken| woken.wake(self));
    }

    fn wake_unit(&self, shard: u32) {
        if let Some(unit) = self.units.get(shard as usize) {
            unit.notify_one();
        }
    }
}
