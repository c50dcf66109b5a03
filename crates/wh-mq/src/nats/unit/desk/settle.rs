//! What settling changes here, and which acks it sends.

use super::{Desk, Entry, State};
use crate::{AckToken, Verdict};
use wh_types::Mono;

/// What to send for one token.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Outcome<R> {
    /// Nothing: it is settled, or was delivered anew since.
    Nothing,
    /// The verdict, to this reply.
    Send(u64, R),
}

impl<R: Clone> Desk<R> {
    /// Settles one delivery (mq21–mq23, mq32).
    pub(in super::super) fn settle(&mut self, now: Mono, token: AckToken, verdict: Verdict) -> Outcome<R> {
        let sequence = token.sequence;
        let Some(entry) = self.entries.get_mut(&sequence) else { return Outcome::Nothing };
        let latest = entry.delivery == token.delivery;
        match (verdict, &entry.state) {
            // an insert that took longer than ack_wait is done all the same, whichever delivery it came by
            (Verdict::Ack, _) => self.acked(sequence),
            (Verdict::Nak { delay }, State::Held(_)) if latest => {
                self.held.sub(entry.rows, entry.bytes);
                entry.state = State::Delayed(now + delay);
                Outcome::Send(sequence, entry.reply.clone())
            }
            (Verdict::InProgress, State::Held(_) | State::Lapsed) if latest => {
                // kept alive too late, but before anybody else got it
                if matches!(entry.state, State::Lapsed) {
                    self.held.add(entry.rows, entry.bytes);
                }
                let until = now + self.ack_wait;
                entry.state = State::Held(until);
                self.lapses.push_back((until, sequence));
                Outcome::Send(sequence, entry.reply.clone())
            }
            (Verdict::Nak { .. } | Verdict::InProgress, _) => Outcome::Nothing,
        }
    }

    /// A block is done with: inserted, parked, or a probe.
    pub(in super::super) fn acked(&mut self, sequence: u64) -> Outcome<R> {
        let Some(Entry { state, id, reply, era, rows, bytes, .. }) = self.entries.remove(&sequence) else {
            return Outcome::Nothing;
        };
        match state {
            State::Queued(..) => self.queued.sub(rows, bytes),
            State::Held(_) => self.held.sub(rows, bytes),
            State::Lapsed | State::Delayed(_) | State::Parking(_) => {}
        }
        self.settled.add(sequence, id, (reply.clone(), era));
        Outcome::Send(sequence, reply)
    }

    /// The server confirmed these acks.
    pub(in super::super) fn confirmed(&mut self, sequences: &[u64]) {
        self.settled.confirm(sequences);
    }

    /// The server heard these acks again, which another leader may not know.
    pub(in super::super) fn heard(&mut self, sequences: &[u64]) {
        self.settled.hear(sequences);
    }

    /// Everything that is not settled, in order, for giving it back one by one.
    pub(in super::super) fn give_back(&mut self) -> Vec<R> {
        let mut all: Vec<(u64, R)> =
            self.entries.iter().map(|(sequence, entry)| (*sequence, entry.reply.clone())).collect();
        all.sort_unstable_by_key(|(sequence, _)| *sequence);
        all.into_iter().map(|(_, reply)| reply).collect()
    }
}
