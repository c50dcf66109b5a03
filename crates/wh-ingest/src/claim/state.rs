//! What a process knows of its membership and its units between two steps. How it changes by what happened; what follows
//! from it is for `step.rs`.

use super::{note::Note, view::MOST_SLOTS};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use wh_coord::Session;
use wh_mq::Unit;
use wh_types::Mono;

/// How long an orphan that counts as held is asked for before it is taken all the same: the pin decides then.
pub(super) const ORPHAN_WAIT: Duration = Duration::from_secs(30);
/// How soon it is asked for again.
const ORPHAN_AGAIN: Duration = Duration::from_millis(100);
/// … and when the queue did not answer.
const ORPHAN_FAILED: Duration = Duration::from_secs(1);

/// A unit that this process has a task for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is bound, or being bound.
    Working,
    /// It is handed over or given up.
    Leaving,
    /// The process is stopping.
    Stopping,
}

/// A unit whose owner died with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) since: Mono,
    /// We are asking the queue to make its blocks due.
    pub(super) asking: bool,
    /// Not before then again.
    pub(super) again: Option<Mono>,
    /// Others must learn of it from us.
    pub(super) told: bool,
}

/// How an orphan was answered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// Its blocks are due.
    Due,
    /// Somebody was active on it of late.
    Held,
    /// The queue did not answer.
    Failed,
}

/// The state.
#[derive(Clone, Debug)]
pub(crate) struct Claims {
    pub(super) session: Session,
    pub(super) units: Vec<Unit>,
    /// Units outside of what is configured. They are shared out apart, so that processes that see different ones agree
    /// on the others.
    pub(super) extras: Vec<Unit>,
    /// How long after it is wanted a unit is taken although another still says to have it.
    pub(super) wait: Duration,
    pub(super) slot: Option<u32>,
    pub(super) joining: bool,
    pub(super) targets: BTreeSet<Unit>,
    pub(super) held: BTreeMap<Unit, Phase>,
    pub(super) orphans: BTreeMap<Unit, Orphan>,
    /// Units to be taken whose blocks were made due just now.
    pub(super) reset: BTreeSet<Unit>,
    /// Since when a unit is wanted that another still says to have.
    pub(super) waiting: BTreeMap<Unit, Mono>,
    /// Who lived in each slot when we last looked, and what it said.
    pub(super) known: BTreeMap<u32, (Session, Note)>,
    /// Lapsed members whose units were marked. By slot too: one that lost a slot and took another is in both.
    pub(super) mourned: BTreeSet<(u32, Session)>,
    /// What was last said, and what of it is stored.
    pub(super) told: Note,
    pub(super) stored: Note,
    pub(super) clearing: BTreeSet<u32>,
    pub(super) live: usize,
    pub(super) lowest: bool,
}

impl Claims {
    /// A process that is no member yet.
    pub(crate) fn new(session: Session, units: Vec<Unit>, wait: Duration) -> Self {
        Self {
            session,
            units,
            extras: Vec::new(),
            wait,
            slot: None,
            joining: false,
            targets: BTreeSet::new(),
            held: BTreeMap::new(),
            orphans: BTreeMap::new(),
            reset: BTreeSet::new(),
            waiting: BTreeMap::new(),
            known: BTreeMap::new(),
            mourned: BTreeSet::new(),
            told: Note::default(),
            stored: Note::default(),
            clearing: BTreeSet::new(),
            live: 0,
            lowest: false,
        }
    }

    /// How many membership slots there are: more members than units would have nothing to do.
    pub(super) fn slots(&self) -> u32 {
        u32::try_from(self.units.len()).unwrap_or(MOST_SLOTS).clamp(1, MOST_SLOTS)
    }

    /// The units beyond the configured ones that exist now.
    pub(crate) fn set_extras(&mut self, extras: impl IntoIterator<Item = Unit>) {
        let configured: BTreeSet<Unit> = self.units.iter().copied().collect();
        self.extras = extras.into_iter().filter(|unit| !configured.contains(unit)).collect();
    }

    /// Whether a unit is one of the configured.
    pub(crate) fn is_configured(&self, unit: Unit) -> bool {
        self.units.contains(&unit)
    }

    /// A claim ended: with a slot and what was said with it, or with nothing.
    pub(crate) fn joined(&mut self, won: Option<(u32, Note)>, now: Mono) {
        self.joining = false;
        let Some((slot, note)) = won else { return };
        self.slot = Some(slot);
        note.orphans.iter().for_each(|unit| self.mark(*unit, now, true));
        self.told = note.clone();
        self.stored = note;
    }

    /// What is said with a claim of a free slot.
    pub(super) fn first_note(&self) -> Note {
        let orphans = self.told_orphans();
        Note { leaving: self.held.keys().copied().collect(), orphans, ..Note::default() }
    }

    /// What was said is stored.
    pub(crate) fn stored(&mut self, note: Note) {
        if self.slot.is_some() {
            self.stored = note;
        }
    }

    /// The members were read anew: what is still there may be cleared again.
    pub(crate) fn was_read(&mut self) {
        self.clearing.clear();
    }

    /// The queue answered for an orphan.
    pub(crate) fn freed(&mut self, unit: Unit, freed: Freed, now: Mono) {
        let Some(orphan) = self.orphans.get_mut(&unit) else { return };
        orphan.asking = false;
        let overdue = now.saturating_duration_since(orphan.since) >= ORPHAN_WAIT;
        match freed {
            Freed::Held if !overdue => orphan.again = Some(now + ORPHAN_AGAIN),
            Freed::Failed if !overdue => orphan.again = Some(now + ORPHAN_FAILED),
            Freed::Due | Freed::Held | Freed::Failed => {
                self.orphans.remove(&unit);
                self.reset.insert(unit);
            }
        }
    }

    /// The task of a unit ended. Where it was not left in order it is an orphan of ours.
    pub(crate) fn ended(&mut self, unit: Unit, in_order: bool, now: Mono) {
        self.held.remove(&unit);
        self.reset.remove(&unit);
        if !in_order {
            self.mark(unit, now, true);
        }
    }

    /// The unit's owner died with it.
    pub(super) fn mark(&mut self, unit: Unit, now: Mono, told: bool) {
        if self.reset.contains(&unit) {
            return;
        }
        let fresh = Orphan { since: now, asking: false, again: None, told: false };
        self.orphans.entry(unit).or_insert(fresh).told |= told;
    }

    /// Orphans that others must learn of from us.
    pub(super) fn told_orphans(&self) -> BTreeSet<Unit> {
        self.orphans.iter().filter(|(_, orphan)| orphan.told).map(|(unit, _)| *unit).collect()
    }

    /// Units that this process has a task for.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Units that it works on.
    pub(crate) fn owned(&self) -> usize {
        self.held.values().filter(|phase| **phase == Phase::Working).count()
    }

    /// Live members, this one included.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Whether what only one member does is for this one.
    pub(crate) fn is_lowest(&self) -> bool {
        self.lowest
    }

    /// Whether a stop ends with a resignation. What died with others and is told of by us alone must not go with us:
    /// our lease lapses then.
    pub(crate) fn may_resign(&self) -> bool {
        self.told_orphans().is_empty()
    }

    /// Among how many units what a process may hold is shared.
    pub(crate) fn shares(&self) -> usize {
        self.targets.iter().chain(self.held.keys()).collect::<BTreeSet<_>>().len()
    }

    /// When a step is due by time alone, read anew or not.
    pub(crate) fn wake(&self) -> Option<Mono> {
        let orphans = self.orphans.iter().filter(|(unit, orphan)| self.targets.contains(unit) && !orphan.asking);
        let waiting = self.waiting.values().map(|since| *since + self.wait);
        orphans.filter_map(|(_, orphan)| orphan.again).chain(waiting).min()
    }
}
