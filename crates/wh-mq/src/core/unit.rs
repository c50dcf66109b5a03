//! Who owns a unit and what its feed holds. Not which block comes next.

use super::{Core, held::Held, table::TableIndex, tick::Tick};
use crate::{Budget, Kind, Unit};
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque},
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Owner {
    #[default]
    Nobody,
    Feed,
    /// A feed that takes nothing more.
    Halted,
    /// The feed was dropped without release.
    Orphan,
}

#[derive(Debug)]
pub(super) struct UnitState {
    /// Tables with something to deliver, each once: they take turns, a block each.
    pub(super) ring: VecDeque<TableIndex>,
    pub(super) held: Held,
    /// Nak'd with a delay: when, sequence, table. An item counts only while its block is in that state.
    pub(super) delayed: BinaryHeap<Reverse<(Tick, u64, TableIndex)>>,
    pub(super) owner: Owner,
    /// Counts owners; a handle of an earlier one is fenced.
    pub(super) term: u64,
    pub(super) budget: Budget,
    pub(super) unsettled: u64,
}

impl Default for UnitState {
    fn default() -> Self {
        Self {
            ring: VecDeque::new(),
            held: Held::default(),
            delayed: BinaryHeap::new(),
            owner: Owner::Nobody,
            term: 0,
            budget: Budget { rows: 0, bytes: 0 },
            unsettled: 0,
        }
    }
}

impl UnitState {
    pub(super) fn may_settle(&self, term: u64) -> bool {
        self.term == term && self.owner != Owner::Nobody
    }

    /// When something falls due by itself.
    pub(super) fn next_timer(&self) -> Option<Tick> {
        let held = self.held.first().map(|holding| holding.deadline);
        let delayed = self.delayed.peek().map(|Reverse((at, _, _))| *at);
        match (held, delayed) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

impl<B: Clone> Core<B> {
    fn unit_index(&self, unit: Unit) -> Result<usize, Kind> {
        if unit.partition == 0 && unit.shard < self.settings.shards {
            Ok(unit.shard as usize)
        } else {
            Err(Kind::NotFound(format!("unit {unit}").into()))
        }
    }

    /// Gives a unit to a new feed; what an orphan left is due at once. The term is the feed's fence.
    pub(crate) fn take_unit(&mut self, unit: Unit, budget: Budget) -> Result<u64, Kind> {
        let at = self.unit_index(unit)?;
        match self.units[at].owner {
            Owner::Feed | Owner::Halted => return Err(Kind::UnitHeld(unit)),
            Owner::Orphan => self.make_due(at),
            Owner::Nobody => {}
        }
        let state = &mut self.units[at];
        state.term += 1;
        state.owner = Owner::Feed;
        state.budget = budget;
        Ok(state.term)
    }

    pub(crate) fn set_budget(&mut self, shard: u32, term: u64, budget: Budget) {
        let state = &mut self.units[shard as usize];
        if state.term == term {
            state.budget = budget;
        }
    }

    pub(crate) fn halt(&mut self, shard: u32, term: u64) {
        let state = &mut self.units[shard as usize];
        if state.term == term && state.owner == Owner::Feed {
            state.owner = Owner::Halted;
        }
    }

    /// Ends a term; everything unsettled is due at once, in order.
    pub(crate) fn release(&mut self, shard: u32, term: u64) {
        let at = shard as usize;
        if self.units[at].may_settle(term) {
            self.units[at].owner = Owner::Nobody;
            self.make_due(at);
        }
    }

    /// Notes that a feed was dropped. Its handles settle until somebody takes the unit.
    pub(crate) fn orphan(&mut self, shard: u32, term: u64) {
        let state = &mut self.units[shard as usize];
        if state.term == term && matches!(state.owner, Owner::Feed | Owner::Halted) {
            state.owner = Owner::Orphan;
        }
    }

    pub(crate) fn release_orphan(&mut self, unit: Unit) -> Result<(), Kind> {
        let at = self.unit_index(unit)?;
        match self.units[at].owner {
            Owner::Feed | Owner::Halted => Err(Kind::UnitHeld(unit)),
            Owner::Orphan => {
                self.units[at].owner = Owner::Nobody;
                self.make_due(at);
                Ok(())
            }
            Owner::Nobody => Ok(()),
        }
    }

    /// The process ended, however it did, and another took over: nobody owns anything, deliveries count anew.
    pub(crate) fn forget_owners(&mut self) {
        for at in 0..self.units.len() {
            self.units[at].owner = Owner::Nobody;
            self.units[at].term += 1;
            self.make_due(at);
        }
        for entry in self.tables.iter_mut().flat_map(|table| &mut table.entries) {
            entry.attempts = 0;
        }
    }

    pub(crate) fn unowned(&self) -> BTreeSet<Unit> {
        (0_u32..)
            .zip(&self.units)
            .filter(|(_, unit)| unit.unsettled > 0 && matches!(unit.owner, Owner::Nobody | Owner::Orphan))
            .map(|(shard, _)| Unit { partition: 0, shard })
            .collect()
    }

    /// Makes every unsettled block of a unit fresh again, so that the next owner gets all of them in order.
    fn make_due(&mut self, at: usize) {
        let unit = &mut self.units[at];
        unit.held = Held::default();
        unit.delayed.clear();
        for (number, table) in (0_u32..).zip(&mut self.tables) {
            if table.unit as usize != at || table.unsettled_blocks == 0 {
                continue;
            }
            table.rewind();
            if !table.queued {
                table.queued = true;
                unit.ring.push_back(TableIndex(number));
            }
        }
    }
}
