//! What waits for a change to be kept, and what the state learns at its end.

use super::{Shared, State, Store};
use crate::{
    Allowance, DeadLetterId, Error, Kind, Receipt, Result,
    core::{LetterNote, TableIndex, Ticket},
    metrics,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::{Notify, oneshot};
use wh_types::{BlockId, Tenant, Throttle};

/// How often dropped dead letters of one tenant are told of.
const TELL_DROPPED: Duration = Duration::from_secs(60);

/// One block of a publish.
#[derive(Debug)]
pub(crate) enum Slot {
    /// Answered without a write.
    Done(Result<Receipt>),
    /// Being written.
    Written(Ticket),
    /// Another publish is writing this id; it was submitted before ours, so its end is known at ours.
    Awaited(BlockId),
}

/// One dead letter of a call.
#[derive(Debug)]
pub(crate) enum LetterSlot {
    /// Kept already.
    Kept,
    /// Being written.
    Written { number: u64, tenant: Tenant, note: LetterNote },
}

/// What waits.
#[derive(Debug)]
pub(crate) enum Pending {
    /// A publish.
    Blocks { slots: Vec<Slot>, reply: oneshot::Sender<Vec<Result<Receipt>>> },
    /// Parking.
    Letters { slots: Vec<LetterSlot>, reply: oneshot::Sender<Vec<Result<()>>> },
    /// Purging.
    Purge { tenant: Tenant, ids: Vec<DeadLetterId>, reply: oneshot::Sender<Result<usize>> },
    /// An allowance.
    Allowance { tenant: Tenant, allowance: Allowance, revision: u64, reply: oneshot::Sender<Result<()>> },
}

enum Reply {
    Blocks(oneshot::Sender<Vec<Result<Receipt>>>, Vec<Result<Receipt>>),
    Letters(oneshot::Sender<Vec<Result<()>>>, Vec<Result<()>>),
    Count(oneshot::Sender<Result<usize>>, Result<usize>),
    Done(oneshot::Sender<Result<()>>, Result<()>),
}

/// Who is to be told, once the lock is given back.
#[must_use]
pub(crate) struct Woken {
    units: Vec<u32>,
    watchers: Vec<Arc<Notify>>,
    reply: Option<Reply>,
}

impl Woken {
    /// Tells them. A caller that went away is no fault: what it asked for is done.
    pub(crate) fn wake<S: Store>(self, shared: &Shared<S>) {
        for unit in self.units {
            shared.wake_unit(unit);
        }
        for watcher in self.watchers {
            watcher.notify_waiters();
        }
        match self.reply {
            Some(Reply::Blocks(to, outcome)) => drop(to.send(outcome)),
            Some(Reply::Letters(to, outcome)) => drop(to.send(outcome)),
            Some(Reply::Count(to, outcome)) => drop(to.send(outcome)),
            Some(Reply::Done(to, outcome)) => drop(to.send(outcome)),
            None => {}
        }
    }
}

impl Pending {
    /// Ends it: the state takes the bodies, or forgets what could not be kept.
    pub(super) fn finish<S: Store>(
        self,
        shared: &Arc<Shared<S>>,
        state: &mut State<S::Body>,
        outcome: std::result::Result<Vec<S::Body>, Kind>,
    ) -> Woken {
        let mut woken = Woken { units: Vec::new(), watchers: Vec::new(), reply: None };
        match self {
            Self::Blocks { slots, reply } => {
                let outcomes = finish_blocks(slots, state, outcome, &mut woken);
                woken.reply = Some(Reply::Blocks(reply, outcomes));
            }
            Self::Letters { slots, reply } => {
                let outcomes = finish_letters(slots, shared, state, outcome);
                woken.reply = Some(Reply::Letters(reply, outcomes));
            }
            Self::Purge { tenant, ids, reply } => {
                let outcome = outcome.map_err(|kind| Error::new("purge dead letters", kind)).map(|_| {
                    let letters = state.core.letters(&tenant);
                    let gone = ids.iter().filter_map(|id| letters.purge(*id));
                    let (notes, gone): (Vec<LetterNote>, Vec<S::Body>) = gone.unzip();
                    for note in &notes {
                        note.count(metrics::PURGED, &tenant);
                    }
                    shared.store.freed(gone);
                    notes.len()
                });
                woken.reply = Some(Reply::Count(reply, outcome));
            }
            Self::Allowance { tenant, allowance, revision, reply } => {
                let outcome = outcome.map_err(|kind| Error::new("set allowance", kind)).map(|_| {
                    state.core.set_allowance(&tenant, allowance, revision);
                });
                woken.reply = Some(Reply::Done(reply, outcome));
            }
        }
        woken
    }
}

fn finish_blocks<B: Clone>(
    slots: Vec<Slot>,
    state: &mut State<B>,
    outcome: std::result::Result<Vec<B>, Kind>,
    woken: &mut Woken,
) -> Vec<Result<Receipt>> {
    let mut bodies = outcome.map(Vec::into_iter);
    let mut last = None;
    let end = |slot| match slot {
        Slot::Done(outcome) => outcome,
        Slot::Written(ticket) => {
            let body = match &mut bodies {
                Ok(bodies) => bodies.next().ok_or(Kind::Bug("a block was kept without a place".into())),
                Err(kind) => Err(kind.clone()),
            };
            match body {
                Ok(body) => {
                    let unit = state.core.confirm(ticket, body);
                    woken.units.extend(unit.filter(|unit| !woken.units.contains(unit)));
                    if last != Some(ticket.table) {
                        last = Some(ticket.table);
                        woken.watchers.extend(state.watcher(ticket.table));
                    }
                    Ok(Receipt::Stored(state.core.cursor(ticket.sequence)))
                }
                Err(kind) => {
                    state.core.void(ticket);
                    Err(Error::new("publish", kind))
                }
            }
        }
        Slot::Awaited(id) => match state.core.known(id) {
            Some(known) => Ok(Receipt::Duplicate(state.core.cursor(known.sequence))),
            None => Err(Error::new("publish", Kind::Unknown)),
        },
    };
    slots.into_iter().map(end).collect()
}

fn finish_letters<S: Store>(
    slots: Vec<LetterSlot>,
    shared: &Arc<Shared<S>>,
    state: &mut State<S::Body>,
    outcome: std::result::Result<Vec<S::Body>, Kind>,
) -> Vec<Result<()>> {
    let mut bodies = outcome.map(Vec::into_iter);
    let mut tenants: Vec<Tenant> = Vec::new();
    let end = |slot| match slot {
        LetterSlot::Kept => Ok(()),
        LetterSlot::Written { number, tenant, note } => {
            let body = match &mut bodies {
                Ok(bodies) => bodies.next().ok_or(Kind::Bug("a dead letter was kept without a place".into())),
                Err(kind) => Err(kind.clone()),
            };
            let body = body.map_err(|kind| Error::new("park", kind))?;
            let letters = state.core.letters(&tenant);
            let counted = note.clone();
            if let Err(spare) = letters.park(number, note, body) {
                // parked by two at once: the second record must not come back when the first is purged
                shared.store.note_gone(&tenant, &[number], letters.dropped());
                shared.store.freed(vec![spare]);
            } else {
                counted.count(metrics::PARKED, &tenant);
            }
            if !tenants.contains(&tenant) {
                tenants.push(tenant);
            }
            Ok(())
        }
    };
    let outcomes = slots.into_iter().map(end).collect();
    for tenant in tenants {
        shed(shared, state, &tenant);
    }
    outcomes
}

/// Drops a tenant's oldest letters beyond its share and writes down which, without waiting for it.
fn shed<S: Store>(shared: &Arc<Shared<S>>, state: &mut State<S::Body>, tenant: &Tenant) {
    let share = state.core.letters_share(tenant);
    let letters = state.core.letters(tenant);
    let shed = letters.shed(share);
    if shed.is_empty() {
        return;
    }
    let dropped = letters.dropped();
    let (mut numbers, mut bodies) = (Vec::with_capacity(shed.len()), Vec::with_capacity(shed.len()));
    for (number, note, body) in shed {
        note.count(metrics::DROPPED, tenant);
        numbers.push(number);
        bodies.push(body);
    }
    let told = state.dropped.entry(tenant.clone()).or_insert(Throttle::new(TELL_DROPPED));
    if let Some(count) = told.note(numbers.len() as u64, shared.clock.now()) {
        tracing::warn!(%tenant, count, "the oldest {count} dead letters of tenant {tenant} were dropped: their share is full");
    }
    crate::metrics::letters_dropped(tenant, numbers.len() as u64);
    shared.store.freed(bodies);
    shared.store.note_gone(tenant, &numbers, dropped);
}

impl<B> State<B> {
    /// Who waits for this table, if anybody does.
    fn watcher(&mut self, table: TableIndex) -> Option<Arc<Notify>> {
        if self.watchers.is_empty() {
            return None;
        }
        let watcher = self.watchers.get(&table)?.upgrade();
        if watcher.is_none() {
            self.watchers.remove(&table);
        }
        watcher
    }

    /// Something to wait on for this table.
    pub(super) fn watch(&mut self, table: TableIndex) -> Arc<Notify> {
        if let Some(watcher) = self.watchers.get(&table).and_then(std::sync::Weak::upgrade) {
            return watcher;
        }
        let watcher = Arc::new(Notify::new());
        self.watchers.insert(table, Arc::downgrade(&watcher));
        watcher
    }
}
