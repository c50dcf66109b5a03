//! The log against a model: random operations, faults and power cuts at any point, all from one seed.

use crate::{
    Detail, Kind, Log, Opening, Options, Pending, Place, Places, Position, Record,
    disk::sim::{SimDisk, Survive},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use wh_types::{Entropy, SeededEntropy, Timestamp};

/// What is known of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It may be there or not.
    Open,
    /// It is there, until its segment is retired.
    There(Place),
    /// Its segment's retirement was cut short.
    MaybeRetired(Place),
    /// It must never be seen again.
    Gone,
}

struct Known {
    state: State,
    /// Which append it came with.
    append: u64,
    lazy: bool,
    /// A checkpoint was taken while it was not known to be there: it must come after it.
    after: Position,
}

struct Model {
    seed: u64,
    chance: SeededEntropy,
    disk: SimDisk,
    log: Option<Log>,
    records: BTreeMap<u64, Known>,
    waiting: Vec<(Vec<u64>, Pending)>,
    held: Vec<Places>,
    next: u64,
    appends: u64,
    checkpoint: Position,
    /// Checkpoints whose writing failed since.
    doubtful: Vec<Position>,
}

fn body(sequence: u64) -> Vec<u8> {
    let len = match sequence % 7 {
        0 => 0,
        6 => 5_000 + sequence % 3_000,
        n => n * 37 + sequence % 300,
    };
    // zeros are what a file that only grew has too
    (0..len).map(|i| if sequence.is_multiple_of(3) { 0 } else { (i ^ sequence) as u8 }).collect()
}

fn record<'a>(sequence: u64, lazy: bool, body: &'a [&'a [u8]]) -> Record<'a> {
    let time = Timestamp::from_millis(sequence as i64);
    Record { kind: u8::from(lazy), stream: sequence % 3, sequence, time, meta: b"model", body }
}

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            chance: SeededEntropy::new(!seed),
            disk: SimDisk::new(seed),
            log: None,
            records: BTreeMap::new(),
            waiting: Vec::new(),
            held: Vec::new(),
            next: 1,
            appends: 0,
            checkpoint: Position::START,
            doubtful: Vec::new(),
        }
    }

    fn below(&self, n: u64) -> u64 {
        self.chance.next_u64() % n
    }

    fn options(&self) -> Options {
        Options {
            disk: Arc::new(self.disk.clone()),
            entropy: Arc::new(SeededEntropy::new(self.seed)),
            segment_bytes: 64 * 1024,
            group_bytes: 16 * 1024,
            queue_bytes: 64 * 1024,
            pool_segments: 2,
            reserve_bytes: 2 * 1024,
            ..Options::new("/log")
        }
    }

    /// Opens the log, possibly through cuts while it opens, and compares what it shows with what is known.
    fn open(&mut self) {
        loop {
            if self.below(3) == 0 {
                self.disk.cut_power_in(1 + self.below(20));
            }
            let from_checkpoint = self.below(2) == 0;
            let detail = if self.below(2) == 0 { Detail::Full } else { Detail::Heads };
            let mut seen = Vec::new();
            let opened = Opening::begin(self.options()).and_then(|opening| {
                assert_eq!(opening.checkpoint_lost().map(ToString::to_string), None);
                let found = opening.checkpoint().map_or(Position::START, |c| c.position);
                let from = if from_checkpoint { found } else { Position::START };
                let (log, recovered) = opening.replay_stepped(from, detail, |record| {
                    let sequence = record.head.sequence;
                    assert_eq!(record.meta, b"model");
                    assert!(record.body.is_none_or(|found| found == body(sequence)), "body of {sequence}");
                    seen.push((sequence, record.place));
                })?;
                Ok((log, recovered, found, from))
            });
            match opened {
                Ok((log, recovered, found, from)) => {
                    assert_eq!(recovered.damages, []);
                    assert!(found == self.checkpoint || self.doubtful.contains(&found), "checkpoint {found:?}");
                    (self.checkpoint, self.doubtful) = (found, Vec::new());
                    self.disk.cut_power_in(u64::MAX);
                    for (sequence, place) in &seen {
                        let stored = log.read(*place).unwrap();
                        assert_eq!((stored.head.sequence, &stored.body[..]), (*sequence, &body(*sequence)[..]));
                    }
                    self.log = Some(log);
                    self.compare(&seen, from);
                    return;
                }
                Err(error) => {
                    assert!(error.to_string().contains("(simulated)"), "{error}");
                    self.disk.power_on();
                }
            }
        }
    }

    fn compare(&mut self, seen: &[(u64, Place)], from: Position) {
        let places: BTreeMap<u64, Place> = seen.iter().copied().collect();
        assert_eq!(places.len(), seen.len(), "a record was shown twice");
        assert!(seen.is_sorted_by_key(|(_, place)| *place));
        let waited: Vec<u64> = seen.iter().map(|(s, _)| *s).filter(|s| !self.records[s].lazy).collect();
        assert!(waited.is_sorted(), "not in the order of appends: {waited:?}");
        let mut appends: BTreeMap<u64, BTreeSet<bool>> = BTreeMap::new();
        for (sequence, known) in &mut self.records {
            let place = places.get(sequence).copied();
            match known.state {
                State::Gone => assert_eq!(place, None, "{sequence} is back"),
                State::There(at) if at.position() >= from => assert_eq!(place, Some(at), "{sequence} is lost"),
                State::MaybeRetired(at) if at.position() >= from => {
                    assert!(place.is_none_or(|place| place == at));
                    known.state = place.map_or(State::Gone, State::There);
                }
                State::There(_) | State::MaybeRetired(_) => assert_eq!(place, None),
                // it may be before the checkpoint
                State::Open if known.lazy && place.is_none() && from > Position::START => {}
                State::Open => {
                    appends.entry(known.append).or_default().insert(place.is_some());
                    assert!(
                        place.is_none_or(|place| place.position() >= known.after),
                        "{sequence} before a checkpoint"
                    );
                    known.state = place.map_or(State::Gone, State::There);
                }
            }
        }
        assert!(appends.values().all(|states| states.len() == 1), "part of an append is there");
        self.waiting.clear();
        self.held.clear();
    }

    fn submit(&mut self, lazy: bool) {
        let Some(log) = &self.log else { return };
        let count = 1 + self.below(4);
        let sequences: Vec<u64> = (self.next..self.next + count).collect();
        let bodies: Vec<Vec<u8>> = sequences.iter().map(|s| body(*s)).collect();
        let slices: Vec<[&[u8]; 1]> = bodies.iter().map(|b| [&b[..]]).collect();
        let records: Vec<Record<'_>> = sequences.iter().zip(&slices).map(|(s, b)| record(*s, lazy, b)).collect();
        let result = if lazy { log.append_lazy(&records).map(|()| None) } else { log.try_submit(&records).map(Some) };
        match result {
            Ok(pending) => {
                self.appends += 1;
                for sequence in &sequences {
                    let known = Known { state: State::Open, append: self.appends, lazy, after: Position::START };
                    self.records.insert(*sequence, known);
                }
                self.next += count;
                self.waiting.extend(pending.map(|pending| (sequences, pending)));
            }
            Err(error) => assert!(matches!(error.kind(), Kind::QueueFull | Kind::Closed), "{error}"),
        }
    }

    /// Hears of what was decided.
    fn listen(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut durable = false;
        for (sequences, mut pending) in std::mem::take(&mut self.waiting) {
            match Pin::new(&mut pending).poll(&mut cx) {
                Poll::Pending => self.waiting.push((sequences, pending)),
                Poll::Ready(Ok(places)) => {
                    durable = true;
                    for (sequence, place) in sequences.iter().zip(places.iter()) {
                        let known = self.records.get_mut(sequence).unwrap();
                        assert!(place.position() >= known.after, "{sequence} before a checkpoint");
                        known.state = State::There(place);
                    }
                    if self.below(4) == 0 {
                        self.held.push(places);
                    }
                }
                Poll::Ready(Err(error)) => {
                    // of an unknown outcome nothing is known, nor of one that came without power; the rest did not happen
                    if error.kind() != Kind::Sync && !error.to_string().contains("the power is off") {
                        let gone = |sequence| self.records.get_mut(sequence).unwrap().state = State::Gone;
                        sequences.iter().for_each(gone);
                    }
                }
            }
        }
        if durable {
            // what was unknown when a later group became durable never comes back
            let waiting: BTreeSet<u64> = self.waiting.iter().flat_map(|(sequences, _)| sequences.clone()).collect();
            let last =
                self.records.iter().filter(|(_, k)| matches!(k.state, State::There(_)) && !k.lazy).map(|(s, _)| *s);
            let last = last.max().unwrap_or(0);
            for (sequence, known) in self.records.range_mut(..last) {
                if known.state == State::Open && !known.lazy && !waiting.contains(sequence) {
                    known.state = State::Gone;
                }
            }
        }
    }

    fn retire(&mut self) {
        let Some(log) = &self.log else { return };
        let sealed: Vec<u64> = log.segments().iter().filter(|s| s.sealed).map(|s| s.number).collect();
        if sealed.is_empty() {
            return;
        }
        let number = sealed[self.below(sealed.len() as u64) as usize];
        let done = log.retire(&[number]).is_ok();
        for known in self.records.values_mut() {
            match known.state {
                State::There(place) | State::MaybeRetired(place) if place.segment == number => {
                    known.state = if done { State::Gone } else { State::MaybeRetired(place) };
                }
                State::There(_) | State::MaybeRetired(_) | State::Gone | State::Open => {}
            }
        }
    }

    fn write_checkpoint(&mut self) {
        let Some(log) = &self.log else { return };
        let position = log.applied();
        assert!(position <= log.position());
        for known in self.records.values_mut().filter(|known| known.state == State::Open && !known.lazy) {
            known.after = position;
        }
        match log.write_checkpoint(position, &[b"state"]) {
            Ok(()) => (self.checkpoint, self.doubtful) = (position, Vec::new()),
            Err(_) => self.doubtful.push(position),
        }
    }

    /// The end of a life, by cut, by kill or by closing.
    fn end(&mut self) {
        match self.below(4) {
            0 => {
                let log = self.log.take().unwrap();
                self.disk.cut_power_in(u64::MAX);
                let mut close = Box::pin(log.close());
                let mut cx = Context::from_waker(Waker::noop());
                assert!(close.as_mut().poll(&mut cx).is_ready());
                drop(close);
                self.listen();
                // every lazy record was written, or its group failed
                drop(log);
            }
            1 => self.disk.kill_process(),
            _ => self.disk.cut_power(),
        }
        self.listen();
        self.log = None;
        self.disk.power_on();
    }

    fn run(&mut self, steps: u64) {
        self.open();
        for _ in 0..steps {
            match self.below(100) {
                0..30 => self.submit(false),
                30..40 => self.submit(true),
                40..65 => {
                    let stepped = self.log.as_ref().is_some_and(Log::step);
                    self.listen();
                    assert!(stepped || self.waiting.is_empty());
                }
                65..73 => self.retire(),
                73..78 => self.write_checkpoint(),
                78..80 => self.held.clear(),
                80..82 => {
                    if let Some(log) = &self.log {
                        let mut seal = Box::pin(log.seal());
                        assert!(seal.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
                        // lazy records of a group that failed are tried for ever
                        while seal.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                            assert!(log.step());
                        }
                    }
                    self.listen();
                }
                82..84 => self.disk.fail_syncs(1),
                84..86 => self.disk.fail_writes(1),
                86 => self.disk.fail_dir_syncs(1),
                87..89 => self.disk.short_writes(self.below(2) == 0),
                89..91 => self.disk.set_capacity(Some(self.disk.used() + self.below(40_000))),
                91..93 => self.disk.set_capacity(None),
                93..97 => self.disk.cut_power_in(1 + self.below(12)),
                _ => {
                    self.disk.survive(match self.below(4) {
                        0 => Survive::Nothing,
                        1 => Survive::Everything,
                        _ => Survive::Chance,
                    });
                    self.disk.set_capacity(None);
                    self.disk.fail_syncs(0);
                    self.disk.fail_writes(0);
                    self.disk.fail_dir_syncs(0);
                    self.end();
                    self.open();
                }
            }
        }
        self.disk.set_capacity(None);
        self.end();
        self.open();
    }
}

#[test]
fn whatever_happens_what_was_acknowledged_is_there_and_nothing_else_comes_back() {
    for seed in 0..150 {
        let run = std::panic::catch_unwind(|| Model::new(seed).run(400));
        assert!(run.is_ok(), "seed {seed}");
    }
}
