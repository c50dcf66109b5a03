//! What each answer of the server means: statuses of pulls and renewals, readings of the durable.

use super::{Command, DRAIN_READS, End, Event, OVERTAKEN, Phase, Pull, Reading};
use std::time::Duration;
use wh_nats::Status;
use wh_types::Mono;

/// Before a durable that is said to be missing is looked for once more.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Before a limit of the durable, or a feature the server lacks, is tried again.
const LIMITED: Duration = Duration::from_secs(1);

impl Pull {
    pub(super) fn status(&mut self, now: Mono, number: u64, status: &Status, commands: &mut Vec<Command>) {
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.number == Some(number)) else { return };
        asked.heard = now;
        if let Status::Heartbeat { last_consumer, .. } = status {
            // the pull waits, so nothing is on its way to it
            return self.judge(now, last_consumer.unwrap_or(0));
        }
        // a pull that ended by itself brought all it could; what ends it otherwise may have swallowed the rest
        if matches!(status, Status::NoMessages | Status::Expired(_) | Status::MaxBytes(_)) {
            self.asked = None;
        } else {
            self.lose_pull();
        }
        if *status != Status::NoResponders {
            self.refused = 0;
        }
        match status {
            Status::Heartbeat { .. }
            | Status::NoMessages
            | Status::Expired(_)
            | Status::InterestExpired
            | Status::RequestsPending
            | Status::MaxBytes(_)
            | Status::BatchCompleted => {}
            Status::LeadershipChange => {
                commands.push(Command::Note(Event::LeaderChanged));
                self.sync(now);
            }
            Status::ServerShutdown => {
                self.sync(now);
                self.back_off(now, self.times.retry);
            }
            Status::PinMismatch | Status::WrongPin(_) => self.pin_lost(now, commands),
            // two witnesses: the durable is looked for, and once is enough
            Status::ConsumerDeleted => {
                self.missing = 1;
                self.sync(now);
            }
            Status::NoResponders => self.no_responders(now),
            Status::BadRequest(text) => self.end(End::Refused(text.clone()), commands),
            Status::PushBased => self.end(End::Refused("the durable pushes".to_owned()), commands),
            Status::Exceeded(text) => self.limited(now, text.clone(), commands),
            other @ (Status::ApiLevel | Status::Other(..) | _) => self.limited(now, format!("{other:?}"), commands),
        }
    }

    /// A renewal is answered by whatever became of its null pull; only some of these mean that the pin is not renewed.
    pub(super) fn renewed(&mut self, now: Mono, status: &Status, commands: &mut Vec<Command>) {
        match status {
            Status::PinMismatch | Status::WrongPin(_) => self.pin_lost(now, commands),
            Status::LeadershipChange | Status::ServerShutdown | Status::NoResponders => self.sync(now),
            Status::ConsumerDeleted => {
                self.missing = 1;
                self.sync(now);
            }
            Status::BadRequest(text) => self.end(End::Refused(text.clone()), commands),
            Status::PushBased => self.end(End::Refused("the durable pushes".to_owned()), commands),
            Status::Exceeded(text) => commands.push(Command::Note(Event::Limited(text.clone()))),
            Status::Heartbeat { .. }
            | Status::NoMessages
            | Status::Expired(_)
            | Status::InterestExpired
            | Status::RequestsPending
            | Status::MaxBytes(_)
            | Status::BatchCompleted
            | Status::ApiLevel
            | Status::Other(..)
            | _ => {}
        }
    }

    fn pin_lost(&mut self, now: Mono, commands: &mut Vec<Command>) {
        commands.push(Command::Note(Event::PinLost));
        self.sync(now);
    }

    /// Reads the durable before the next pull.
    fn sync(&mut self, now: Mono) {
        self.lose_pull();
        if self.phase == Phase::Flowing {
            self.phase = Phase::Syncing;
            self.back_off(now, Duration::ZERO);
        }
    }

    /// A leader is elected, or the durable is gone: only a reading tells.
    fn no_responders(&mut self, now: Mono) {
        self.refused += 1;
        if self.refused > 1 {
            self.sync(now);
        }
        self.back_off(now, self.times.retry);
    }

    fn limited(&mut self, now: Mono, text: String, commands: &mut Vec<Command>) {
        commands.push(Command::Note(Event::Limited(text)));
        self.back_off(now, LIMITED);
    }

    pub(super) fn not_found(&mut self, now: Mono, commands: &mut Vec<Command>) {
        self.reading = false;
        self.missing += 1;
        if self.missing > 1 {
            return self.end(End::Gone, commands);
        }
        if self.phase == Phase::Flowing {
            self.phase = Phase::Syncing;
        }
        self.back_off(now, LOOK_AGAIN);
    }

    pub(super) fn unread(&mut self, now: Mono, commands: &mut Vec<Command>) {
        self.reading = false;
        self.back_off(now, self.times.retry);
        if let Phase::Draining { reads } = &mut self.phase {
            // who does not answer does not deliver either, and a halt must end
            *reads += DRAIN_READS / 2;
        }
        self.drained(now, false, commands);
        self.stalled_since(now, true, commands);
    }

    pub(super) fn read(&mut self, now: Mono, reading: &Reading, ours: u64, commands: &mut Vec<Command>) {
        self.reading = false;
        self.missing = 0;
        self.believe_pin(now, reading);
        match self.phase {
            Phase::Syncing => {
                self.phase = Phase::Flowing;
                self.refused = 0;
                if self.sole && reading.delivered < self.seen {
                    // the server forgot deliveries: they come again, and are known by their sequences in the stream
                    self.seen = reading.delivered;
                    if reading.unsettled > 0 {
                        // what it remembers waits for replies that are void now: it must come again before `ack_wait`,
                        // or whoever has the unit by then inserts it a second time
                        return self.gap(now, commands);
                    }
                }
                self.judge(now, reading.delivered);
                if let Some(times) = self.cuts.found(self.sole && reading.delivered > self.seen) {
                    commands.push(Command::Note(Event::Cut { times }));
                    self.progress(false, commands);
                }
            }
            Phase::Flowing => {
                self.judge(now, reading.delivered);
                self.count(now, reading, ours, commands);
                let can_move = reading.pending > 0 && reading.unsettled < self.times.max_unsettled;
                self.stalled_since(now, can_move, commands);
            }
            // somebody else has the unit: what was lost is theirs to find
            Phase::Gap if !self.sole => self.phase = Phase::Flowing,
            Phase::Gap => {
                self.phase = Phase::Resetting { restarted: false };
                commands.push(Command::Reset);
            }
            Phase::Draining { .. } => self.drained(now, reading.waiting == 0, commands),
            Phase::Resetting { .. } | Phase::Halted | Phase::Ended => {}
        }
    }

    /// A pin lives in its leader's memory: what the durable says of it is all there is to know.
    fn believe_pin(&mut self, now: Mono, reading: &Reading) {
        match &reading.pinned {
            Some(pin) if self.pin.as_ref() == Some(pin) => self.lapse = None,
            Some(_) => {
                self.pin = None;
                self.sole = false;
            }
            None => {
                // nobody else can have had the unit, unless more was delivered than our pulls account for, and that after
                // our pin could lapse; late acks may look like deliveries
                let since = now.saturating_duration_since(self.lapse.take().unwrap_or(self.renewed));
                let lapsed = since.saturating_sub(self.times.pinned_ttl);
                let after = reading.undelivered.is_some_and(|ago| ago < lapsed);
                let more = reading.delivered > self.seen + self.owed;
                if self.pin.is_some() && after && more {
                    self.sole = false;
                }
                self.pin = None;
            }
        }
        self.owed = 0;
        if !self.sole {
            self.seen = reading.delivered;
        }
    }

    /// Whether everything delivered was seen. What was delivered just now may still be on its way.
    fn judge(&mut self, now: Mono, delivered: u64) {
        if self.sole && delivered > self.seen && self.suspect.is_none() {
            self.suspect = Some((delivered, now + OVERTAKEN));
        }
    }

    /// More unsettled at the server than here, and than an earlier owner left: seen twice, some of it was lost. Where
    /// nobody is pinned and all is quiet, what an earlier owner left is nobody's, too (decision D14).
    fn count(&mut self, now: Mono, reading: &Reading, ours: u64, commands: &mut Vec<Command>) {
        let quiet = reading.quiet.is_none_or(|quiet| quiet >= self.times.pinned_ttl);
        let orphaned = reading.pinned.is_none() && quiet && reading.unsettled > ours;
        let surplus = orphaned || self.sole && reading.unsettled > ours + self.inherited;
        if surplus && self.surplus {
            self.sole = true;
            return self.gap(now, commands);
        }
        self.surplus = surplus;
    }

    fn stalled_since(&mut self, now: Mono, could_move: bool, commands: &mut Vec<Command>) {
        let long = self.waiting.is_some_and(|since| now >= since + self.times.stall);
        if !could_move {
            self.progress(true, commands);
        } else if long {
            self.progress(false, commands);
        }
    }

    /// The last pull is over once none waits at the server. Other members' pulls are counted there too: the wait is
    /// bounded, and what such a pull may still bring is found by the release.
    fn drained(&mut self, now: Mono, none_waits: bool, commands: &mut Vec<Command>) {
        let Phase::Draining { reads } = &mut self.phase else { return };
        *reads += 1;
        if none_waits || *reads >= DRAIN_READS {
            self.halted(commands);
        } else {
            self.back_off(now, Duration::from_millis(50));
        }
    }
}
