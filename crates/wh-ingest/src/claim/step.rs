//! What follows from what is known. Pure: it decides, `run.rs` acts.

use super::{
    assign::{Listed, assign},
    note::Note,
    state::{Claims, Phase},
    view::{Member, Members, View},
};
use std::collections::BTreeSet;
use wh_mq::Unit;
use wh_types::Mono;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Claim the first of these slots that can be had, each with what is said with it.
    Join(Vec<(u32, Note)>),
    /// Say this with our lease.
    Tell(Note),
    /// Make the blocks of a dead owner's unit due.
    FreeOrphan(Unit),
    /// Bind a unit. Its first batches are flushed at once where its owner died.
    Take {
        /// Which.
        unit: Unit,
        /// Whether its owner died.
        orphan: bool,
    },
    /// Hand a unit to its next owner: halt, settle, release.
    HandOver(Unit),
    /// The term that a unit was worked on under is over: begin nothing more, give back, release.
    GiveUp(Unit),
    /// Flush a unit and release it within the stop's time.
    Stop(Unit),
    /// Remove a lapsed lease.
    Clear(u32),
}

/// Decides. Called after everything that happened, and when [`Claims::wake`] or a member's lapse is due.
pub(crate) fn step(state: &mut Claims, now: Mono, view: &View<'_>) -> Vec<Command> {
    let mut commands = Vec::new();
    if state.slot.is_some() && view.slot != state.slot {
        lose(state, &mut commands);
    }
    if view.stopping {
        stop(state, &mut commands);
    }
    match view.members {
        Some(members) => act(state, now, members, view.stopping, &mut commands),
        // nobody is judged by an old read; what we have stays ours while our term is live
        None => tell(state, view.stopping, &mut commands),
    }
    commands
}

/// The term is over: whatever was done under it ends.
fn lose(state: &mut Claims, commands: &mut Vec<Command>) {
    state.slot = None;
    state.targets.clear();
    state.waiting.clear();
    state.told = Note::default();
    state.stored = Note::default();
    state.lowest = false;
    for (unit, phase) in &mut state.held {
        *phase = if *phase == Phase::Working { Phase::Leaving } else { *phase };
        commands.push(Command::GiveUp(*unit));
    }
}

fn stop(state: &mut Claims, commands: &mut Vec<Command>) {
    state.targets.clear();
    state.waiting.clear();
    for (unit, phase) in state.held.iter_mut().filter(|(_, phase)| **phase != Phase::Stopping) {
        *phase = Phase::Stopping;
        commands.push(Command::Stop(*unit));
    }
}

/// The other members, as they count now.
struct Others<'a> {
    live: Vec<(u32, &'a Member)>,
    lapsed: Vec<(u32, &'a Member)>,
}

impl<'a> Others<'a> {
    fn of(state: &Claims, now: Mono, members: &'a Members) -> Self {
        let mine = |slot: &u32, member: &Member| Some(*slot) == state.slot || member.session == state.session;
        let others = members.iter().filter(|(slot, member)| !mine(slot, member)).map(|(slot, member)| (*slot, member));
        let (live, lapsed) = others.partition(|(_, member)| member.is_live(now));
        Self { live, lapsed }
    }

    /// Members that take part in the sharing.
    fn taking_part(&self) -> impl Iterator<Item = (u32, &'a Member)> + '_ {
        self.live.iter().copied().filter(|(_, member)| !member.note.parting)
    }

    /// Whether another has a unit, or is about to.
    fn have(&self, unit: Unit) -> bool {
        self.live.iter().any(|(_, member)| member.note.claims(unit))
    }

    /// What others work on.
    fn own(&self) -> BTreeSet<Unit> {
        self.live.iter().flat_map(|(_, member)| member.note.own.iter().copied()).collect()
    }
}

fn act(state: &mut Claims, now: Mono, members: &Members, stopping: bool, commands: &mut Vec<Command>) {
    let others = Others::of(state, now, members);
    mourn(state, now, members, &others);
    let own = others.own();
    let lowest = others.taking_part().map(|(slot, _)| slot).min();
    state.lowest = !stopping && state.slot.is_some_and(|slot| lowest.is_none_or(|other| slot < other));
    state.live = others.taking_part().count() + usize::from(state.slot.is_some() && !stopping);
    if !stopping {
        match state.slot {
            Some(slot) => share_out(state, slot, &others, commands),
            None => join(state, members, &others, commands),
        }
    }
    for (unit, orphan) in &mut state.orphans {
        orphan.told |= state.lowest || state.targets.contains(unit);
    }
    // who works on it has made its blocks due; who only wants it may still die, or leave, before
    let exists = |unit: &Unit| state.units.contains(unit) || state.extras.contains(unit);
    let held = &state.held;
    state.orphans.retain(|unit, _| !held.contains_key(unit) && !own.contains(unit) && exists(unit));
    tell(state, stopping, commands);
    if state.slot.is_some() && !stopping {
        take(state, now, &others, commands);
        tell(state, stopping, commands);
        clear(state, &others, &own, commands);
    }
}

/// Marks the units of members that died: whose lease lapsed, or was taken over after it had lapsed for another. A member
/// that resigned gave up its units itself.
fn mourn(state: &mut Claims, now: Mono, members: &Members, others: &Others<'_>) {
    let lapsed: BTreeSet<_> = others.lapsed.iter().map(|(slot, member)| (*slot, member.session.clone())).collect();
    let mut mourned = std::mem::take(&mut state.mourned);
    mourned.retain(|who| lapsed.contains(who));
    for (slot, member) in &others.lapsed {
        if mourned.insert((*slot, member.session.clone())) {
            member.note.units().for_each(|unit| state.mark(unit, now, false));
        }
    }
    state.mourned = mourned;
    for (slot, (session, note)) in std::mem::take(&mut state.known) {
        let over = members.get(&slot).and_then(|member| member.over.as_ref());
        if over == Some(&session) {
            note.units().for_each(|unit| state.mark(unit, now, false));
        }
    }
    for (slot, member) in &others.live {
        state.known.insert(*slot, (member.session.clone(), member.note.clone()));
        member.note.orphans.iter().for_each(|unit| state.mark(*unit, now, false));
    }
}

/// The first free slot. One whose holder is gone only where there is no other; what it had is said with the claim, so
/// that it is never nowhere.
fn join(state: &mut Claims, members: &Members, others: &Others<'_>, commands: &mut Vec<Command>) {
    if state.joining {
        return;
    }
    let note = state.first_note();
    // the one that we lost is still written as ours: taken again, it counts for nobody any more
    let ours = members.iter().filter(|(_, member)| member.session == state.session).map(|(slot, _)| *slot);
    let free = (0..state.slots()).filter(|slot| !members.contains_key(slot));
    let mut slots: Vec<(u32, Note)> = ours.chain(free).map(|slot| (slot, note.clone())).collect();
    let lapsed = others.lapsed.iter().filter(|(slot, _)| *slot < state.slots());
    slots.extend(lapsed.map(|(slot, member)| {
        let left = member.note.units().filter(|unit| !note.leaving.contains(unit));
        (*slot, Note { orphans: note.orphans.iter().copied().chain(left).collect(), ..note.clone() })
    }));
    if !slots.is_empty() {
        state.joining = true;
        commands.push(Command::Join(slots));
    }
}

/// Who should own what, and what of ours is not ours any more.
fn share_out(state: &mut Claims, slot: u32, others: &Others<'_>, commands: &mut Vec<Command>) {
    let mut listed: Listed =
        others.taking_part().map(|(slot, member)| (slot, member.note.assigned().collect())).collect();
    listed.insert(slot, state.targets.clone());
    let assigned = assign(&state.units, &listed).into_iter().chain(assign(&state.extras, &listed));
    state.targets = assigned.filter(|(_, owner)| *owner == slot).map(|(unit, _)| unit).collect();
    for (unit, phase) in &mut state.held {
        if *phase == Phase::Working && !state.targets.contains(unit) {
            *phase = Phase::Leaving;
            commands.push(Command::HandOver(*unit));
        }
    }
}

/// Says what changed.
fn tell(state: &mut Claims, stopping: bool, commands: &mut Vec<Command>) {
    if state.slot.is_none() {
        return;
    }
    let working = |unit: &Unit| state.held.get(unit) == Some(&Phase::Working);
    let (own, leaving) = state.held.keys().partition(|unit| working(unit));
    let note = Note {
        own,
        wanted: state.targets.iter().filter(|unit| !working(unit)).copied().collect(),
        leaving,
        orphans: state.told_orphans(),
        parting: stopping,
    };
    if note != state.told {
        state.told = note.clone();
        commands.push(Command::Tell(note));
    }
}

/// Takes what is ours, is said to be ours in the store, and nobody else has.
fn take(state: &mut Claims, now: Mono, others: &Others<'_>, commands: &mut Vec<Command>) {
    let wanted = |unit: &Unit| !state.held.contains_key(unit) && state.stored.claims(*unit);
    let wanted: Vec<Unit> = state.targets.iter().copied().filter(wanted).collect();
    let targets = &state.targets;
    state.waiting.retain(|unit, _| targets.contains(unit));
    state.reset.retain(|unit| targets.contains(unit));
    for unit in wanted {
        let since = *state.waiting.entry(unit).or_insert(now);
        if others.have(unit) && now.saturating_duration_since(since) < state.wait {
            continue;
        }
        if let Some(orphan) = state.orphans.get_mut(&unit) {
            if !orphan.asking && orphan.again.is_none_or(|again| now >= again) {
                orphan.asking = true;
                orphan.again = None;
                commands.push(Command::FreeOrphan(unit));
            }
            continue;
        }
        state.waiting.remove(&unit);
        state.held.insert(unit, Phase::Working);
        commands.push(Command::Take { unit, orphan: state.reset.remove(&unit) });
    }
}

/// The lowest member removes lapsed leases, once what their holders had is told or worked on.
fn clear(state: &mut Claims, others: &Others<'_>, own: &BTreeSet<Unit>, commands: &mut Vec<Command>) {
    let lapsed: BTreeSet<u32> = others.lapsed.iter().map(|(slot, _)| *slot).collect();
    state.clearing.retain(|slot| lapsed.contains(slot));
    if !state.lowest {
        return;
    }
    for (slot, member) in &others.lapsed {
        let kept = |unit: Unit| {
            let exists = state.units.contains(&unit) || state.extras.contains(&unit);
            !exists || own.contains(&unit) || state.stored.own.contains(&unit) || state.stored.orphans.contains(&unit)
        };
        if member.note.units().all(kept) && state.clearing.insert(*slot) {
            commands.push(Command::Clear(*slot));
        }
    }
}
