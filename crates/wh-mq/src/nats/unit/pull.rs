//! Which request a unit sends next: pulls, renewals of its pin, readings, resets. Pure: no time of its own, no client.
//!
//! It never sees a block, only its consumer sequence, and never waits for the handler: a unit whose handler is busy, or
//! that is at its share, draining or stopping, keeps its pin all the same. What the loop tells it is an [`Input`], what
//! it wants done a [`Command`]. The facts it relies on are in `docs/operations/nats.md`.

mod answer;
mod cuts;
mod input;

use cuts::Cuts;
use input::Asked;
pub(super) use input::{Command, End, Event, Input, Reading, Times};
use wh_nats::PinId;
use wh_types::Mono;

/// A gap is believed once the missing blocks had this long to come: an answer may overtake them.
const OVERTAKEN: std::time::Duration = std::time::Duration::from_millis(500);
/// How often the end of the last pull is asked for before a unit counts as halted.
const DRAIN_READS: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Knows nothing of the durable, or no longer: reads it before it pulls.
    Syncing,
    Flowing,
    /// Deliveries were lost: reads the durable, then resets it.
    Gap,
    /// As [`Phase::Gap`]; the reset is on its way. Whether blocks of the new count came already.
    Resetting {
        restarted: bool,
    },
    /// Takes nothing new: the inbox is given up, and the last pull is waited for.
    Draining {
        reads: u32,
    },
    Halted,
    Ended,
}

/// The state of one unit's pulling, for one term.
#[derive(Debug)]
pub(super) struct Pull {
    times: Times,
    phase: Phase,
    connected: bool,
    /// Blocks that may be asked for.
    room: u32,
    pin: Option<PinId>,
    /// When a request with the pin last went out.
    renewed: Mono,
    /// The last such request before a pause that was long enough for the pin to lapse.
    lapse: Option<Mono>,
    asked: Option<Asked>,
    /// Blocks that pulls may have brought of which nothing was heard any more, since the last reading.
    owed: u64,
    /// The last consumer sequence seen.
    seen: u64,
    /// Whether every delivery after `seen` was to us: then a jump is a gap, and not somebody else's term.
    sole: bool,
    /// Nothing is asked before.
    not_before: Mono,
    /// Pulls in a row that nobody answered for.
    refused: u32,
    /// Readings in a row that say there is no such durable.
    missing: u32,
    reading: bool,
    read_at: Mono,
    /// Delivered by the server and not seen, and when that is believed to be lost.
    suspect: Option<(u64, Mono)>,
    /// More was unsettled at the server than here, twice in a row.
    surplus: bool,
    /// Unsettled blocks that an earlier owner left.
    inherited: u64,
    /// Since when something could have been delivered and was not.
    waiting: Option<Mono>,
    stalled: bool,
    cuts: Cuts,
}

impl Pull {
    /// Begins a term with what the durable says.
    pub(super) fn new(times: Times, now: Mono, reading: &Reading) -> Self {
        Self {
            times,
            phase: Phase::Flowing,
            connected: true,
            room: 0,
            pin: None,
            renewed: now,
            lapse: None,
            asked: None,
            owed: 0,
            seen: reading.delivered,
            sole: false,
            not_before: now,
            refused: 0,
            missing: 0,
            reading: false,
            read_at: now,
            suspect: None,
            surplus: false,
            inherited: reading.unsettled,
            waiting: None,
            stalled: false,
            cuts: Cuts::default(),
        }
    }

    /// The pin as far as we know.
    pub(super) fn pin(&self) -> Option<&PinId> {
        self.pin.as_ref()
    }

    /// The last consumer sequence seen.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether a pull is out.
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Takes what happened and says what to do about it. `commands` is appended to.
    pub(super) fn step(&mut self, now: Mono, input: Input, commands: &mut Vec<Command>) {
        match input {
            Input::Room(room) => self.room = room,
            Input::Sent(number) => {
                if let Some(asked) = &mut self.asked {
                    asked.number = Some(number);
                }
            }
            Input::NotSent => {
                self.asked = None;
                self.back_off(now, self.times.retry);
            }
            Input::Block { sequence, pin } => {
                let taken = self.block(now, sequence, pin, commands);
                commands.push(if taken { Command::Take } else { Command::Drop });
            }
            Input::Status { number, status } => self.status(now, number, &status, commands),
            Input::Renewed(status) => self.renewed(now, &status, commands),
            Input::Link(connected) => self.link(now, connected),
            Input::Read { reading, ours } => self.read(now, &reading, ours, commands),
            Input::Missing => self.not_found(now, commands),
            Input::Replaced => self.end(End::Gone, commands),
            Input::Unread => self.unread(now, commands),
            Input::Reset(done) => self.reset(now, done),
            Input::Halt => self.halt(now, commands),
        }
        self.consider(now, commands);
    }

    /// When to step again if nothing happens.
    pub(super) fn next_timer(&self, now: Mono) -> Mono {
        let mut at = now + self.times.silence;
        let mut sooner = |other: Mono| at = at.min(other.max(now));
        if self.phase == Phase::Ended {
            return at;
        }
        if self.pin.is_some() && self.connected {
            sooner(self.renewed + self.times.renew);
        }
        if self.not_before > now {
            sooner(self.not_before);
        }
        if let Some(asked) = &self.asked {
            sooner(asked.heard + self.times.watchdog);
        }
        if let Some((_, until)) = self.suspect {
            sooner(until);
        }
        if let Some(since) = self.waiting {
            sooner(since.max(self.read_at) + self.times.silence);
        }
        at
    }

    fn block(&mut self, now: Mono, sequence: u64, pin: Option<PinId>, commands: &mut Vec<Command>) -> bool {
        if self.phase == Phase::Ended {
            return false;
        }
        if let Some(asked) = &mut self.asked {
            asked.heard = now;
            asked.left = asked.left.saturating_sub(1);
            if asked.left == 0 {
                self.asked = None;
            }
        }
        // whatever becomes of the block, its pin is ours
        if pin.is_some() && pin != self.pin {
            self.pin = pin;
            (self.renewed, self.lapse) = (now, None);
            commands.push(Command::Note(Event::Pinned));
        }
        let taken = match &mut self.phase {
            Phase::Flowing | Phase::Draining { .. } | Phase::Syncing => self.in_order(now, sequence, commands),
            // counts begin at 1 again: it is from after the reset, whose answer it overtook
            Phase::Resetting { restarted } if *restarted || sequence == 1 => {
                let next = if *restarted { self.seen + 1 } else { 1 };
                *restarted = sequence == next;
                *restarted
            }
            Phase::Resetting { .. } | Phase::Gap | Phase::Halted | Phase::Ended => false,
        };
        if taken {
            self.seen = sequence;
            self.room = self.room.saturating_sub(1);
            self.waiting = self.asked.map(|_| now);
            self.refused = 0;
            self.cuts.taken();
            // what comes in order may yet reach it
            self.suspect = self.suspect.filter(|(last, _)| sequence < *last).map(|(last, _)| (last, now + OVERTAKEN));
            self.sole = self.pin.is_some();
            self.progress(true, commands);
        }
        taken
    }

    fn in_order(&mut self, now: Mono, sequence: u64, commands: &mut Vec<Command>) -> bool {
        if sequence == self.seen + 1 || !self.sole {
            return true;
        }
        if self.phase == Phase::Flowing {
            self.gap(now, commands);
        }
        false
    }

    fn gap(&mut self, now: Mono, commands: &mut Vec<Command>) {
        self.phase = Phase::Gap;
        self.asked = None;
        self.suspect = None;
        self.surplus = false;
        self.waiting = None;
        self.not_before = now;
        commands.push(Command::Note(Event::Gap { seen: self.seen }));
    }

    /// Nothing more will be heard of the pull.
    fn lose_pull(&mut self) {
        self.owed += self.asked.take().map_or(0, |asked| u64::from(asked.left));
    }

    fn link(&mut self, now: Mono, connected: bool) {
        self.connected = connected;
        self.cuts.broke(self.asked.is_some());
        self.lose_pull();
        self.suspect = None;
        self.reading = false;
        self.not_before = now;
        match self.phase {
            Phase::Flowing => self.phase = Phase::Syncing,
            Phase::Resetting { .. } => self.phase = Phase::Gap,
            Phase::Syncing | Phase::Gap | Phase::Draining { .. } | Phase::Halted | Phase::Ended => {}
        }
    }

    fn halt(&mut self, now: Mono, commands: &mut Vec<Command>) {
        match self.phase {
            Phase::Syncing | Phase::Flowing | Phase::Gap | Phase::Resetting { .. } => {
                self.phase = Phase::Draining { reads: 0 };
                self.asked = None;
                self.suspect = None;
                self.waiting = None;
                // one that is out was asked for before the inbox was given up
                (self.reading, self.not_before) = (false, now);
                self.progress(true, commands);
                commands.push(Command::Drain);
            }
            Phase::Draining { .. } | Phase::Halted | Phase::Ended => {}
        }
    }

    fn reset(&mut self, now: Mono, done: bool) {
        let Phase::Resetting { restarted } = self.phase else { return };
        if done {
            if !restarted {
                self.seen = 0;
            }
            self.sole = true;
            self.inherited = 0;
            self.phase = Phase::Flowing;
            self.not_before = now + self.cuts.pause();
        } else {
            self.phase = Phase::Gap;
            self.back_off(now, self.times.retry);
        }
    }

    /// What there is to do by the state alone.
    fn consider(&mut self, now: Mono, commands: &mut Vec<Command>) {
        if self.phase == Phase::Ended {
            return;
        }
        if !self.connected {
            if let Phase::Draining { .. } = self.phase {
                // the server's side of the inbox went with the connection
                self.halted(commands);
            }
            return;
        }
        self.watch(now, commands);
        if now >= self.not_before {
            self.ask(now, commands);
        }
        if now >= self.renewed + self.times.renew
            && let Some(pin) = self.pin.clone()
        {
            self.renews(now);
            commands.push(Command::Renew(pin));
        }
    }

    /// A request with the pin goes out.
    fn renews(&mut self, now: Mono) {
        if now >= self.renewed + self.times.pinned_ttl {
            self.lapse.get_or_insert(self.renewed);
        }
        self.renewed = now;
    }

    fn ask(&mut self, now: Mono, commands: &mut Vec<Command>) {
        match self.phase {
            Phase::Syncing | Phase::Gap | Phase::Draining { .. } => self.look(now, commands),
            Phase::Flowing if self.asked.is_none() && self.suspect.is_none() && self.room > 0 => {
                let blocks = self.room.min(self.times.most);
                self.asked = Some(Asked { number: None, left: blocks, heard: now });
                self.waiting.get_or_insert(now);
                self.renews(now);
                commands.push(Command::Pull { blocks, pin: self.pin.clone() });
            }
            Phase::Flowing if self.asked.is_none() && self.room == 0 => {
                self.waiting = None;
                self.progress(true, commands);
            }
            Phase::Flowing | Phase::Resetting { .. } | Phase::Halted | Phase::Ended => {}
        }
    }

    /// Silence: a pull nobody answers, missing blocks that do not come, nothing delivered for long.
    fn watch(&mut self, now: Mono, commands: &mut Vec<Command>) {
        if self.asked.as_ref().is_some_and(|asked| now >= asked.heard + self.times.watchdog) {
            self.lose_pull();
            self.phase = if self.phase == Phase::Flowing { Phase::Syncing } else { self.phase };
            commands.push(Command::Note(Event::Silent));
        }
        if let Some((_, until)) = self.suspect
            && now >= until
            && self.phase == Phase::Flowing
        {
            self.gap(now, commands);
        }
        let Some(since) = self.waiting else { return };
        let silent = now >= since + self.times.silence && now >= self.read_at + self.times.silence;
        if self.phase == Phase::Flowing && silent {
            self.look(now, commands);
        }
    }

    fn look(&mut self, now: Mono, commands: &mut Vec<Command>) {
        if !self.reading {
            self.reading = true;
            self.read_at = now;
            commands.push(Command::Read);
        }
    }

    fn halted(&mut self, commands: &mut Vec<Command>) {
        self.phase = Phase::Halted;
        commands.push(Command::Halted);
    }

    fn end(&mut self, end: End, commands: &mut Vec<Command>) {
        if self.phase == Phase::Ended {
            return;
        }
        self.phase = Phase::Ended;
        self.asked = None;
        self.pin = None;
        commands.push(Command::End(end));
    }

    fn back_off(&mut self, now: Mono, wait: std::time::Duration) {
        self.not_before = now + wait;
    }

    fn progress(&mut self, moves: bool, commands: &mut Vec<Command>) {
        if self.stalled == moves {
            self.stalled = !moves;
            commands.push(Command::Progress(moves));
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
