//! Steps of many processes over one store, in any order, with crashes, lost terms, joins and stops.

use super::{
    note::Note,
    state::{Claims, Freed},
    step::{Command, step},
    view::{Member, Members, View},
};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};
use wh_coord::Session;
use wh_mq::Unit;
use wh_types::{Clock, Mono, SystemClock};

const LEASE: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Process {
    name: usize,
    session: Session,
    claims: Claims,
    alive: bool,
    stopping: bool,
    slot: Option<u32>,
    renewed: Mono,
    todo: VecDeque<Command>,
}

#[derive(Debug)]
struct Stored {
    session: Session,
    note: Note,
    renewed: Mono,
    over: Option<Session>,
}

/// The store, the units' real holders, and the processes.
#[derive(Debug)]
struct World {
    now: Mono,
    units: Vec<Unit>,
    store: BTreeMap<u32, Stored>,
    holders: BTreeMap<Unit, usize>,
    /// Units whose holder died and whose blocks nobody has made due yet.
    dirty: BTreeSet<Unit>,
    processes: Vec<Process>,
    wrong: Vec<String>,
    handovers: usize,
}

impl World {
    fn new(partitions: u32, shards: u32) -> Self {
        let units = (0..partitions).flat_map(|partition| (0..shards).map(move |shard| Unit { partition, shard }));
        Self {
            now: SystemClock.now(),
            units: units.collect(),
            store: BTreeMap::new(),
            holders: BTreeMap::new(),
            dirty: BTreeSet::new(),
            processes: Vec::new(),
            wrong: Vec::new(),
            handovers: 0,
        }
    }

    fn start(&mut self) {
        let name = self.processes.len();
        let session = Session::from(&*format!("s{name}"));
        // a process that waits for ever: nothing is taken from a living owner here
        let claims = Claims::new(session.clone(), self.units.clone(), Duration::from_hours(1));
        let todo = VecDeque::new();
        let (alive, stopping, slot, renewed) = (true, false, None, self.now);
        self.processes.push(Process { name, session, claims, alive, stopping, slot, renewed, todo });
    }

    fn running(&self) -> Vec<usize> {
        self.processes.iter().filter(|process| process.alive).map(|process| process.name).collect()
    }

    fn term(&self, name: usize) -> Option<u32> {
        let process = &self.processes[name];
        let slot = process.slot.filter(|_| process.alive && self.now < process.renewed + DEADLINE)?;
        self.store.get(&slot).filter(|stored| stored.session == process.session).map(|_| slot)
    }

    fn members(&self) -> Members {
        let member = |stored: &Stored| Member {
            session: stored.session.clone(),
            note: stored.note.clone(),
            lapses: Some(stored.renewed + LEASE),
            over: stored.over.clone(),
        };
        self.store.iter().map(|(slot, stored)| (*slot, member(stored))).collect()
    }

    fn step(&mut self, name: usize, read: bool) -> usize {
        let members = self.members();
        let slot = self.term(name);
        let now = self.now;
        let process = &mut self.processes[name];
        if slot.is_none() {
            process.slot = None;
        }
        let view = View { members: read.then_some(&members), slot, stopping: process.stopping };
        let commands = step(&mut process.claims, now, &view);
        let count = commands.len();
        process.todo.extend(commands);
        count
    }

    fn act(&mut self, name: usize) {
        let Some(command) = self.processes[name].todo.pop_front() else { return };
        match command {
            Command::Join(slots) => self.join(name, slots),
            Command::Tell(note) => {
                if let Some(slot) = self.term(name) {
                    if let Some(stored) = self.store.get_mut(&slot) {
                        stored.note = note.clone();
                    }
                    self.processes[name].claims.stored(note);
                }
            }
            Command::FreeOrphan(unit) => {
                let freed = match self.holders.get(&unit).map(|holder| self.processes[*holder].alive) {
                    Some(true) => Freed::Held,
                    Some(false) | None => {
                        self.holders.remove(&unit);
                        self.dirty.remove(&unit);
                        Freed::Due
                    }
                };
                let now = self.now;
                self.processes[name].claims.freed(unit, freed, now);
            }
            Command::Take { unit, orphan } => self.take(name, unit, orphan),
            Command::HandOver(unit) | Command::GiveUp(unit) | Command::Stop(unit) => {
                let now = self.now;
                self.handovers += 1;
                if self.holders.get(&unit) == Some(&name) {
                    self.holders.remove(&unit);
                }
                self.processes[name].claims.ended(unit, true, now);
            }
            Command::Clear(slot) => {
                if self.store.get(&slot).is_some_and(|stored| self.now >= stored.renewed + LEASE) {
                    self.store.remove(&slot);
                }
                self.processes[name].claims.was_read();
            }
        }
    }

    fn join(&mut self, name: usize, slots: Vec<(u32, Note)>) {
        let (now, session) = (self.now, self.processes[name].session.clone());
        let mut won = None;
        for (slot, note) in slots {
            let over = match self.store.get(&slot) {
                Some(stored) if stored.session == session => None,
                Some(stored) if now < stored.renewed + LEASE => continue,
                // it was renewed since it was read: a real store refuses the write
                Some(stored) if !stored.note.units().all(|unit| note.orphans.contains(&unit)) => continue,
                Some(stored) => Some(stored.session.clone()),
                None => None,
            };
            self.store.insert(slot, Stored { session, note: note.clone(), renewed: now, over });
            won = Some((slot, note));
            break;
        }
        let process = &mut self.processes[name];
        if let Some((slot, _)) = &won {
            process.slot = Some(*slot);
            process.renewed = now;
        }
        process.claims.joined(won, now);
    }

    fn take(&mut self, name: usize, unit: Unit, orphan: bool) {
        if let Some(other) = self.holders.get(&unit).copied().filter(|other| *other != name)
            && self.term(other).is_some()
        {
            self.wrong.push(format!("{name} took {unit} from {other}, whose term is live"));
        }
        if self.dirty.contains(&unit) && !orphan {
            self.wrong.push(format!("{name} took the orphan {unit} as if nothing had happened"));
        }
        if self.term(name).is_some() {
            self.holders.insert(unit, name);
        } else {
            let now = self.now;
            self.processes[name].claims.ended(unit, true, now);
        }
    }

    fn crash(&mut self, name: usize) {
        self.processes[name].alive = false;
        self.processes[name].todo.clear();
        let lost = self.holders.iter().filter(|(_, holder)| **holder == name).map(|(unit, _)| *unit);
        self.dirty.extend(lost.collect::<Vec<_>>());
    }

    fn renew(&mut self, name: usize) {
        if let Some(slot) = self.term(name) {
            self.processes[name].renewed = self.now;
            if let Some(stored) = self.store.get_mut(&slot) {
                stored.renewed = self.now;
            }
        }
    }

    /// A stopped process that released everything resigns and ends.
    fn end_stopped(&mut self, name: usize) {
        let process = &self.processes[name];
        if process.stopping && process.alive && process.todo.is_empty() && process.claims.held() == 0 {
            if let Some(slot) = self.term(name).filter(|_| self.processes[name].claims.may_resign()) {
                self.store.remove(&slot);
            }
            self.processes[name].alive = false;
        }
    }

    /// Everybody reads, acts and renews until nothing is left to do. Gives how many rounds it took.
    fn settle(&mut self) -> Option<usize> {
        for round in 0..400 {
            let mut busy = false;
            for name in self.running() {
                self.renew(name);
                busy |= self.step(name, true) > 0;
                while !self.processes[name].todo.is_empty() {
                    self.act(name);
                    busy = true;
                }
                self.end_stopped(name);
            }
            let silent =
                |(slot, stored): (&u32, &Stored)| self.now < stored.renewed + LEASE && !self.speaks(*slot, stored);
            let waiting = self.store.iter().any(silent);
            if !busy && !waiting {
                return Some(round);
            }
            self.now += Duration::from_millis(500);
        }
        None
    }

    fn speaks(&self, slot: u32, stored: &Stored) -> bool {
        let speaks =
            |process: &Process| process.alive && process.slot == Some(slot) && process.session == stored.session;
        self.processes.iter().any(speaks)
    }

    fn loads(&self) -> Vec<usize> {
        let mine = |name| self.holders.values().filter(|holder| **holder == name).count();
        self.running().into_iter().map(mine).collect()
    }

    /// What must be true once it has settled.
    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert!(self.wrong.is_empty(), "{:?}", self.wrong);
        let running = self.running();
        if running.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(self.holders.keys().copied().collect::<Vec<_>>(), self.units.clone());
        prop_assert!(self.holders.values().all(|holder| running.contains(holder)), "the dead own");
        prop_assert!(self.dirty.is_empty(), "orphans nobody reset: {:?}", self.dirty);
        let loads = self.loads();
        let members = running.len().min(self.units.len());
        let busy: Vec<_> = loads.iter().filter(|load| **load > 0).collect();
        prop_assert!(busy.len() == members, "{loads:?} {:#?}", self);
        prop_assert!(*busy.iter().max().unwrap() - *busy.iter().min().unwrap() <= 1, "{loads:?}");
        prop_assert_eq!(self.store.len(), running.len().min(self.units.len().min(64)), "dead slots are cleared");
        for stored in self.store.values() {
            prop_assert!(
                stored.note.wanted.is_empty() && stored.note.leaving.is_empty() && stored.note.orphans.is_empty(),
                "{:?}",
                stored.note
            );
        }
        Ok(())
    }
}

fn settled(world: &mut World) -> usize {
    let rounds = world.settle().expect("it settles");
    world.check().unwrap();
    rounds
}

#[test]
fn one_process_takes_everything_and_a_second_half_of_it() {
    let mut world = World::new(4, 8);
    world.start();
    settled(&mut world);
    assert_eq!(world.loads(), [32]);
    world.start();
    settled(&mut world);
    assert_eq!((world.loads(), world.handovers), (vec![16, 16], 16));
    world.start();
    settled(&mut world);
    assert_eq!(world.handovers, 26, "ten more move, and no other");
}

#[test]
fn a_stopped_process_hands_on_at_once_and_nothing_is_an_orphan() {
    let mut world = World::new(4, 8);
    (0..3).for_each(|_| world.start());
    settled(&mut world);
    world.processes[1].stopping = true;
    let began = world.now;
    assert!(world.settle().is_some());
    world.check().unwrap();
    assert!(world.now - began < Duration::from_secs(3), "nobody waits for a lease: {:?}", world.now - began);
    assert_eq!(world.loads(), [16, 16]);
}

#[test]
fn a_crash_is_seen_after_a_lease_and_its_units_are_reset_first() {
    let mut world = World::new(4, 8);
    (0..3).for_each(|_| world.start());
    settled(&mut world);
    world.crash(0);
    let (began, before) = (world.now, world.handovers);
    settled(&mut world);
    assert_eq!(world.loads(), [16, 16]);
    assert_eq!(world.handovers, before, "those that live keep what they have");
    assert!(world.now - began < LEASE + Duration::from_secs(3));
}

#[test]
fn a_lone_process_that_crashed_is_followed_by_a_new_one() {
    for shards in [1, 8] {
        let mut world = World::new(1, shards);
        world.start();
        settled(&mut world);
        world.crash(0);
        world.start();
        settled(&mut world);
        assert_eq!(world.loads(), [shards as usize]);
    }
}

#[test]
fn more_processes_than_units_stand_by() {
    let mut world = World::new(1, 3);
    (0..5).for_each(|_| world.start());
    settled(&mut world);
    assert_eq!(world.loads().iter().sum::<usize>(), 3);
    world.crash(0);
    world.crash(1);
    settled(&mut world);
    assert_eq!(world.loads(), [1, 1, 1]);
}

#[test]
fn without_a_fresh_read_nothing_moves_and_a_lost_term_gives_everything_up() {
    let mut world = World::new(1, 4);
    world.start();
    settled(&mut world);
    assert_eq!(world.step(0, false), 0);
    world.now += DEADLINE;
    assert_eq!(world.step(0, false), 4);
    assert!(world.processes[0].todo.iter().all(|command| matches!(command, Command::GiveUp(_))));
    // no unit is taken again before it was given up
    assert!(!world.processes[0].todo.iter().any(|command| matches!(command, Command::Take { .. })));
    settled(&mut world);
    assert_eq!(world.loads(), [4]);
}

#[test]
fn a_session_that_lost_a_slot_and_died_in_another_left_orphans_in_both() {
    let (now, unit) = (SystemClock.now(), |shard| Unit { partition: 0, shard });
    let (earlier, later) = (now + LEASE, now + 2 * LEASE);
    let dead = |shard, lapses| Member {
        session: Session::from("dead"),
        note: Note { own: [unit(shard)].into(), ..Note::default() },
        lapses: Some(lapses),
        over: None,
    };
    let members: Members = [(0, dead(0, earlier)), (1, dead(1, later))].into();
    let mut claims = Claims::new(Session::from("we"), (0..4).map(unit).collect(), LEASE);
    claims.joined(Some((2, Note::default())), now);
    let view = View { members: Some(&members), slot: Some(2), stopping: false };
    step(&mut claims, earlier, &view);
    assert_eq!(claims.orphans.keys().copied().collect::<Vec<_>>(), [unit(0)]);
    step(&mut claims, later, &view);
    assert_eq!(claims.orphans.keys().copied().collect::<Vec<_>>(), [unit(0), unit(1)]);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Start,
    Crash(usize),
    Stop(usize),
    Step(usize),
    Act(usize),
    Settle,
    Pass { seconds: u64, renewing: u8 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::Start),
        1 => (0_usize..8).prop_map(Event::Crash),
        1 => (0_usize..8).prop_map(Event::Stop),
        12 => (0_usize..8).prop_map(Event::Step),
        24 => (0_usize..8).prop_map(Event::Act),
        2 => Just(Event::Settle),
        4 => (1_u64..12, any::<u8>()).prop_map(|(seconds, renewing)| Event::Pass { seconds, renewing }),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_every_unit_ends_with_one_live_owner_and_loads_are_even(
        partitions in 1_u32..3, shards in 1_u32..7, events in proptest::collection::vec(event(), 1..160),
    ) {
        let mut world = World::new(partitions, shards);
        world.start();
        for event in events {
            let running = world.running();
            let of = |n: usize| (!running.is_empty()).then(|| running[n % running.len()]);
            match event {
                Event::Start if running.len() < 6 => world.start(),
                Event::Start => {}
                Event::Crash(n) => of(n).into_iter().for_each(|name| world.crash(name)),
                Event::Stop(n) => of(n).into_iter().for_each(|name| world.processes[name].stopping = true),
                Event::Step(n) => of(n).into_iter().for_each(|name| { world.step(name, true); }),
                Event::Act(n) => of(n).into_iter().for_each(|name| world.act(name)),
                Event::Settle => {
                    prop_assert!(world.settle().is_some(), "it does not settle: {:#?}", world);
                }
                Event::Pass { seconds, renewing } => {
                    for _ in 0..seconds {
                        world.now += Duration::from_secs(1);
                        running.iter().filter(|name| renewing >> (*name % 8) & 1 == 1).for_each(|name| world.renew(*name));
                    }
                }
            }
            running.into_iter().for_each(|name| world.end_stopped(name));
            prop_assert!(world.wrong.is_empty(), "{:?}", world.wrong);
        }
        if world.running().is_empty() || world.running().iter().all(|name| world.processes[*name].stopping) {
            world.start();
        }
        prop_assert!(world.settle().is_some(), "it does not settle: {:#?}", world);
        world.check()?;
        // and nothing moves any more
        let (handovers, holders) = (world.handovers, world.holders.clone());
        for _ in 0..8 {
            world.now += Duration::from_secs(2);
            prop_assert_eq!(world.settle(), Some(0));
        }
        prop_assert_eq!((world.handovers, &world.holders), (handovers, &holders));
    }
}
