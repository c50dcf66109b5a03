//! Handing blocks on within the budget, and their time with the handler.

use super::{Desk, State};
use crate::{AckToken, Budget};
use wh_types::{Block, Mono};

/// A block on its way to the handler.
#[derive(Debug)]
pub(in super::super) struct Handed<R> {
    pub(in super::super) token: AckToken,
    pub(in super::super) attempt: u32,
    pub(in super::super) block: Block,
    /// It waited so long that its time at the server has to begin anew.
    pub(in super::super) keep_alive: Option<R>,
}

impl<R: Clone> Desk<R> {
    /// The next block, if it fits the budget (mq24).
    pub(in super::super) fn hand(&mut self, now: Mono) -> Option<Handed<R>> {
        loop {
            let (sequence, delivery) = *self.queue.front()?;
            let Some(entry) = self.entries.get_mut(&sequence).filter(|entry| entry.delivery == delivery) else {
                self.queue.pop_front();
                continue;
            };
            if !matches!(entry.state, State::Queued(..)) {
                self.queue.pop_front();
                continue;
            }
            let Budget { rows, bytes } = self.budget;
            let over = self.held.rows + entry.rows as usize > rows || self.held.bytes + entry.bytes as usize > bytes;
            if over && self.held.blocks > 0 {
                return None;
            }
            self.queue.pop_front();
            let until = now + self.ack_wait;
            let State::Queued(block, since) = std::mem::replace(&mut entry.state, State::Held(until)) else { continue };
            self.queued.sub(entry.rows, entry.bytes);
            self.held.add(entry.rows, entry.bytes);
            self.lapses.push_back((until, sequence));
            let token = AckToken { delivery, sequence };
            let late = now.saturating_duration_since(since) > self.ack_wait / 16;
            return Some(Handed {
                token,
                attempt: entry.attempt,
                block,
                keep_alive: late.then(|| entry.reply.clone()),
            });
        }
    }

    /// When the next block may lapse.
    pub(in super::super) fn next_lapse(&self) -> Option<Mono> {
        self.lapses.front().map(|(at, _)| *at)
    }

    /// Lets lapse what was neither settled nor kept alive; gives how many blocks.
    pub(in super::super) fn lapse(&mut self, now: Mono) -> u64 {
        let mut lapsed = 0;
        while let Some((at, sequence)) = self.lapses.front().copied()
            && at <= now
        {
            self.lapses.pop_front();
            let Some(entry) = self.entries.get_mut(&sequence) else { continue };
            if matches!(entry.state, State::Held(until) if until <= now) {
                entry.state = State::Lapsed;
                self.held.sub(entry.rows, entry.bytes);
                lapsed += 1;
            }
        }
        lapsed
    }

    /// The replies of what waits here for long: it has to be kept alive by us, the handler does not know it yet.
    pub(in super::super) fn waiting_long(&mut self, now: Mono) -> Vec<(u64, R)> {
        let long = self.ack_wait / 3;
        let mut replies = Vec::new();
        for (sequence, entry) in &mut self.entries {
            match &mut entry.state {
                State::Queued(_, since) | State::Parking(since) if now.saturating_duration_since(*since) >= long => {
                    *since = now;
                    replies.push((*sequence, entry.reply.clone()));
                }
                State::Queued(..) | State::Parking(_) | State::Held(_) | State::Lapsed | State::Delayed(_) => {}
            }
        }
        replies
    }
}
