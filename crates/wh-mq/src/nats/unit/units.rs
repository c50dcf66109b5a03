//! Which units this process holds, and what outlives a term: deliveries counted, bytes in memory.

use super::{desk::Settled, settler::Acks, term::Term};
use crate::Unit;
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Notify;
use wh_nats::{AckSubject, PinId};

/// Settled blocks without a confirmation that are remembered beyond their terms, over all units.
const KEPT: usize = 65_536;

/// What this process knows of a unit.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// Being taken, or made due.
    Busy,
    /// A feed has it.
    Owned(Arc<Term>),
    /// Its feed was dropped without release.
    Orphan(Arc<Term>),
    /// Given up by us, with this as the last consumer sequence delivered: what was done there until then was ours.
    Released(u64),
}

/// Which units this process holds.
#[derive(Debug, Default)]
pub(crate) struct Units {
    slots: Mutex<HashMap<Unit, Slot>>,
    past: Mutex<HashMap<Unit, Past>>,
    /// Acks were left over by a term.
    pub(super) left_over: Notify,
    bytes: AtomicUsize,
    stalled: Mutex<BTreeSet<Unit>>,
}

/// What earlier terms of a unit left.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// How often blocks were delivered that are not settled.
    pub(super) attempts: HashMap<u64, u32>,
    /// The number of the last delivery.
    pub(super) last: u64,
    /// When the durable was made that the rest is about. A stream takes its durables with it, so that nothing is kept
    /// over another stream of the name.
    created: String,
    /// Blocks that were settled without a confirmation.
    settled: Settled<AckSubject>,
    /// The last sequence delivered before a reset of this process: the server does not know it any more.
    pub(super) delivered_to: u64,
}

impl Past {
    /// What was settled on this very durable.
    pub(super) fn settled_on(self, created: &str) -> Settled<AckSubject> {
        if self.created == created { self.settled } else { Settled::default() }
    }
}

/// Acks of a unit that nobody has, to be sent again.
#[derive(Debug)]
pub(super) struct LeftOver {
    pub(super) unit: Unit,
    pub(super) created: String,
    pub(super) acks: Acks,
}

/// A slot that is being changed: it goes back to what it was, unless [`Self::set`] says otherwise.
#[derive(Debug)]
pub(super) struct Claimed<'a> {
    units: &'a Units,
    unit: Unit,
    before: Option<Slot>,
}

impl Units {
    /// Units that have blocks and do not move (decision D11).
    pub(crate) fn stalled(&self) -> BTreeSet<Unit> {
        self.stalled.lock().clone()
    }

    pub(super) fn set_stalled(&self, unit: Unit, stalled: bool) {
        let mut all = self.stalled.lock();
        if stalled {
            all.insert(unit)
        } else {
            all.remove(&unit)
        };
    }

    pub(super) fn get(&self, unit: Unit) -> Option<Slot> {
        self.slots.lock().get(&unit).cloned()
    }

    pub(super) fn all(&self) -> Vec<(Unit, Slot)> {
        self.slots.lock().iter().map(|(unit, slot)| (*unit, slot.clone())).collect()
    }

    /// Takes a slot to change it; `None` while a feed has the unit, or somebody else changes it.
    pub(super) fn claim(&self, unit: Unit) -> Option<Claimed<'_>> {
        let mut slots = self.slots.lock();
        match slots.get(&unit) {
            Some(Slot::Busy | Slot::Owned(_)) => None,
            None | Some(Slot::Orphan(_) | Slot::Released(_)) => {
                let before = slots.insert(unit, Slot::Busy);
                Some(Claimed { units: self, unit, before })
            }
        }
    }

    /// The feed of a term was dropped.
    pub(super) fn orphan(&self, term: &Arc<Term>) {
        let mut slots = self.slots.lock();
        if matches!(slots.get(&term.unit), Some(Slot::Owned(owner)) if Arc::ptr_eq(owner, term)) {
            slots.insert(term.unit, Slot::Orphan(term.clone()));
        }
    }

    /// A term gave its unit up.
    pub(super) fn released(&self, term: &Arc<Term>, delivered: Option<u64>) {
        let mut slots = self.slots.lock();
        if matches!(slots.get(&term.unit), Some(Slot::Owned(owner) | Slot::Orphan(owner)) if Arc::ptr_eq(owner, term)) {
            match delivered {
                Some(delivered) => slots.insert(term.unit, Slot::Released(delivered)),
                None => slots.remove(&term.unit),
            };
        }
    }

    pub(super) fn remember(&self, unit: Unit, attempts: HashMap<u64, u32>, last: u64) {
        let mut all = self.past.lock();
        let past = all.entry(unit).or_default();
        // a term may be ended twice; the second time it knows of no attempts
        if last > past.last || !attempts.is_empty() {
            (past.attempts, past.last) = (attempts, last);
        }
    }

    /// Remembers how far a unit was delivered that is about to be reset.
    pub(super) fn note_delivered(&self, unit: Unit, sequence: u64) {
        let mut all = self.past.lock();
        let past = all.entry(unit).or_default();
        past.delivered_to = past.delivered_to.max(sequence);
    }

    /// Remembers what a term settled and nobody confirmed, until the unit is taken here again.
    pub(super) fn keep(&self, unit: Unit, created: &str, settled: Settled<AckSubject>) {
        let mut all = self.past.lock();
        let others: usize = all.iter().filter(|(of, _)| **of != unit).map(|(_, past)| past.settled.len()).sum();
        let settled = settled.kept(KEPT.saturating_sub(others));
        if settled.len() > 0 {
            let past = all.entry(unit).or_default();
            (past.settled, past.created) = (settled, created.to_owned());
            drop(all);
            self.left_over.notify_one();
        }
    }

    /// The acks that are left over and that the server may not have heard of.
    pub(super) fn all_left_over(&self) -> Vec<LeftOver> {
        let all = self.past.lock();
        let left = all.iter().map(|(unit, past)| LeftOver {
            unit: *unit,
            created: past.created.clone(),
            acks: past.settled.to_tell(),
        });
        left.filter(|left| !left.acks.is_empty()).collect()
    }

    /// The server heard them. They are remembered all the same: their blocks may be on their way, or its leader may die.
    pub(super) fn heard(&self, unit: Unit, created: &str, sequences: &[u64]) {
        if let Some(past) = self.past.lock().get_mut(&unit).filter(|past| past.created == created) {
            past.settled.hear(sequences);
        }
    }

    /// The durable that they were about is gone.
    pub(super) fn forget(&self, unit: Unit, created: &str) {
        if let Some(past) = self.past.lock().get_mut(&unit).filter(|past| past.created == created) {
            past.settled = Settled::default();
        }
    }

    pub(super) fn past(&self, unit: Unit) -> Past {
        self.past.lock().remove(&unit).unwrap_or_default()
    }

    /// Bytes of blocks in memory, and asked for, over all units.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// One part of them changed.
    pub(super) fn count(&self, before: usize, after: usize) {
        if after > before {
            self.bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

impl Claimed<'_> {
    /// What it was before.
    pub(super) fn before(&self) -> Option<&Slot> {
        self.before.as_ref()
    }

    /// Ends the change with another state.
    pub(super) fn set(mut self, slot: Option<Slot>) {
        self.before = slot;
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let mut slots = self.units.slots.lock();
        match self.before.take() {
            Some(slot) => slots.insert(self.unit, slot),
            None => slots.remove(&self.unit),
        };
    }
}

/// The term that a pin can be known of.
pub(super) fn pin(slot: Option<&Slot>) -> Option<PinId> {
    match slot {
        Some(Slot::Orphan(term)) => term.lock().pin.clone(),
        _ => None,
    }
}
