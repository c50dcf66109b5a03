//! One partition as it is heard: its order, its incarnation, from where on everything was heard.

use crate::nats::history::{
    message::Message,
    tracker::{Heard, Hole, Tracker},
};
use std::sync::Arc;
use tokio::sync::Notify;
use wh_types::{Epoch, Mono, Timestamp};

/// A partition's stream.
#[derive(Debug)]
pub(in crate::nats::history) struct Partition {
    stream: Arc<str>,
    /// When it was made. `None`: it was never asked.
    created: Option<Timestamp>,
    epoch: Epoch,
    /// Grows when what its sequences count is another thing than before.
    turn: u32,
    tracker: Tracker<Message>,
    /// Bytes of what waits behind a hole.
    waiting: usize,
    /// Where this turn began.
    begin: u64,
    /// Not everything up to here is kept, whatever the table.
    lost_through: u64,
    lost_since: Mono,
    /// When the last that was handed out was stored.
    stored: Option<Timestamp>,
    /// Something was heard that does not fit: the stream should be asked.
    odd: bool,
    /// How often in a row the stream was behind what was heard of it.
    behind: u32,
    pub(super) bell: Arc<Notify>,
}

/// What a stream answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::nats::history) struct Seen {
    /// When it was made.
    pub(in crate::nats::history) created: Timestamp,
    /// Its last sequence.
    pub(in crate::nats::history) last: u64,
    /// What the partition's position was before it was asked.
    pub(in crate::nats::history) position: u64,
}

/// What that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saw {
    /// It goes on, or was asked for the first time.
    Same,
    /// Its sequences count anew.
    Anew,
}

/// How often a stream must say that it ends before what was heard of it: a new leader may not have applied everything.
const BEHIND: u32 = 3;

impl Partition {
    pub(super) fn new(stream: &str, now: Mono) -> Self {
        Self {
            stream: Arc::from(stream),
            created: None,
            epoch: Epoch(0),
            turn: 0,
            tracker: Tracker::after(0),
            waiting: 0,
            begin: 0,
            lost_through: 0,
            lost_since: now,
            stored: None,
            odd: false,
            behind: 0,
            bell: Arc::default(),
        }
    }

    /// Its stream's name.
    pub(in crate::nats::history) fn stream(&self) -> &Arc<str> {
        &self.stream
    }

    /// Everything up to here was heard, found or given up.
    pub(in crate::nats::history) fn position(&self) -> u64 {
        self.tracker.position()
    }

    /// The highest sequence that is known to be stored.
    pub(in crate::nats::history) fn stored(&self) -> u64 {
        self.tracker.stored()
    }

    /// How many sequences are known to be stored and are not handed out.
    pub(in crate::nats::history) fn lag(&self) -> u64 {
        self.tracker.stored() - self.tracker.position()
    }

    /// The first hole.
    pub(in crate::nats::history) fn hole(&self) -> Option<Hole> {
        // before it was asked it is not known what is missing
        self.tracker.hole().filter(|_| self.created.is_some())
    }

    /// Whether something waits behind a hole.
    pub(in crate::nats::history) fn waits(&self) -> bool {
        self.tracker.waiting() > 0
    }

    /// Whether a sequence is missing.
    pub(in crate::nats::history) fn misses(&self, sequence: u64) -> bool {
        self.created.is_some() && self.tracker.misses(sequence)
    }

    /// Whether something was heard that only asking the stream explains. Says so once.
    pub(super) fn take_odd(&mut self) -> bool {
        std::mem::take(&mut self.odd)
    }

    /// What its sequences count in.
    pub(in crate::nats::history) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn turn(&self) -> u32 {
        self.turn
    }

    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    pub(super) fn lost_through(&self) -> u64 {
        self.lost_through
    }

    pub(super) fn lost_since(&self) -> Mono {
        self.lost_since
    }

    pub(super) fn stored_at(&self) -> Option<Timestamp> {
        self.stored
    }

    /// The stream was asked.
    pub(super) fn saw(&mut self, seen: Seen, epoch: Epoch, now: Mono) -> Saw {
        let Seen { created, last, position } = seen;
        let Some(known) = self.created else {
            (self.created, self.epoch, self.tracker) = (Some(created), epoch, Tracker::after(last));
            (self.begin, self.lost_through, self.lost_since) = (last, last, now);
            return Saw::Same;
        };
        // an older time is an answer that was long on its way
        if created > known {
            (self.created, self.epoch) = (Some(created), epoch);
            self.anew(0, now);
            self.tracker.saw_end(last);
            return Saw::Anew;
        }
        if created == known && last < position {
            self.behind += 1;
            if self.behind >= BEHIND {
                self.anew(last, now);
                return Saw::Anew;
            }
            return Saw::Same;
        }
        self.behind = 0;
        self.tracker.saw_end(last);
        Saw::Same
    }

    fn anew(&mut self, begin: u64, now: Mono) {
        self.turn += 1;
        (self.tracker, self.waiting) = (Tracker::after(begin), 0);
        (self.begin, self.lost_through, self.lost_since) = (begin, begin, now);
        (self.stored, self.behind) = (None, 0);
    }

    /// Whether it is new, and waits for its turn.
    pub(super) fn hear(&mut self, message: Message) -> bool {
        if self.created.is_none() {
            return false;
        }
        let (sequence, stored, cost) = (message.sequence, message.stored, message.cost());
        let new = self.tracker.hear(sequence, message) == Heard::New;
        // a sequence that was long handed out, but stored later than that: of a stream made anew
        self.odd |= !new && sequence <= self.position() && self.stored.is_some_and(|last| stored > last);
        self.waiting += if new { cost } else { 0 };
        new
    }

    /// The next in order.
    pub(super) fn take(&mut self) -> Option<(u64, Message)> {
        let (sequence, message) = self.tracker.take()?;
        self.stored = Some(message.stored);
        self.waiting -= message.cost();
        Some((sequence, message))
    }

    /// Gives the first hole up, as far as `through`.
    pub(super) fn give_up(&mut self, through: u64, now: Mono) -> Option<Hole> {
        let hole = self.tracker.give_up(through)?;
        (self.lost_through, self.lost_since) = (hole.last, now);
        Some(hole)
    }

    /// An entry of it was dropped for room.
    pub(super) fn evicted(&mut self, sequence: u64, heard: Mono) {
        if sequence > self.lost_through {
            (self.lost_through, self.lost_since) = (sequence, heard);
        }
    }
}
