//! The blocks that are settled here while the server may not know it, and the last ones it confirmed: an answer may come
//! from a leader that never heard the acks it seems to confirm. Bounded: what is forgotten may come twice.

use std::collections::VecDeque;
use wh_nats::ByOrdinal;
use wh_types::BlockId;

/// Most that are remembered unconfirmed. More than this can be only where acks are lost for long.
const KEPT: usize = 65_536;
/// Confirmed ones that are remembered.
const CONFIRMED: usize = 4_096;

#[derive(Debug)]
struct Done<R> {
    id: Option<BlockId>,
    /// Where it is settled; none once that is confirmed.
    reply: Option<R>,
    /// The resets before its reply came.
    era: u64,
    /// The server heard the ack. It may still forget it with its leader.
    heard: bool,
}

/// `R` is where a delivery is settled.
#[derive(Debug)]
pub(in super::super) struct Settled<R> {
    all: ByOrdinal<Done<R>>,
    /// In the order they were settled. Stale where it was confirmed.
    order: VecDeque<u64>,
    /// In the order they were confirmed. Stale where it came again.
    confirmed: VecDeque<u64>,
    unheard: usize,
}

impl<R> Default for Settled<R> {
    fn default() -> Self {
        Self { all: ByOrdinal::default(), order: VecDeque::new(), confirmed: VecDeque::new(), unheard: 0 }
    }
}

impl<R: Clone> Settled<R> {
    pub(super) fn add(&mut self, sequence: u64, id: Option<BlockId>, (reply, era): (R, u64)) {
        let before = self.all.insert(sequence, Done { id, reply: Some(reply), era, heard: false });
        self.unheard += usize::from(before.is_none_or(|before| before.heard));
        self.order.push_back(sequence);
        while self.order.len() > 2 * KEPT || self.unheard > KEPT {
            let Some(oldest) = self.order.pop_front() else { break };
            if self.all.get(&oldest).is_some_and(|done| done.reply.is_some()) {
                self.forget(oldest);
            }
        }
    }

    /// The server knows them.
    pub(super) fn confirm(&mut self, sequences: &[u64]) {
        for sequence in sequences {
            let Some(done) = self.all.get_mut(sequence) else { continue };
            self.unheard -= usize::from(!std::mem::replace(&mut done.heard, true));
            if done.reply.take().is_some() {
                self.confirmed.push_back(*sequence);
            }
        }
        while self.confirmed.len() > CONFIRMED {
            let Some(oldest) = self.confirmed.pop_front() else { break };
            if self.all.get(&oldest).is_some_and(|done| done.reply.is_none()) {
                self.forget(oldest);
            }
        }
        while let Some(oldest) = self.order.front()
            && self.all.get(oldest).is_none_or(|done| done.reply.is_none())
        {
            self.order.pop_front();
        }
    }

    fn forget(&mut self, sequence: u64) {
        self.unheard -= usize::from(self.all.remove(&sequence).is_some_and(|done| !done.heard));
    }

    /// The server heard these acks.
    pub(in super::super) fn hear(&mut self, sequences: &[u64]) {
        for sequence in sequences {
            if let Some(done) = self.all.get_mut(sequence) {
                self.unheard -= usize::from(!std::mem::replace(&mut done.heard, true));
            }
        }
    }

    /// A block came under its sequence: whether it is a copy of it. It is settled by the new reply from now on.
    pub(super) fn renew(&mut self, sequence: u64, id: Option<BlockId>, (reply, era): (&R, u64)) -> Option<bool> {
        if self.all.is_empty() {
            return None;
        }
        let done = self.all.get_mut(&sequence)?;
        if done.reply.replace(reply.clone()).is_none() {
            self.order.push_back(sequence);
        }
        done.era = era;
        self.unheard += usize::from(std::mem::replace(&mut done.heard, false));
        Some(done.id == id)
    }

    /// Where it is settled, while that is not confirmed.
    pub(super) fn reply(&self, sequence: u64) -> Option<&R> {
        self.all.get(&sequence)?.reply.as_ref()
    }

    /// Those whose replies came in this era and that the server may not have heard of.
    pub(super) fn of(&self, era: u64) -> Vec<(u64, R)> {
        let current = self.all.iter().filter(|(_, done)| done.era == era && !done.heard);
        current.filter_map(|(sequence, done)| Some((*sequence, done.reply.clone()?))).collect()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// What is worth keeping beyond the term, as if it had been settled before any reset of the next: those that nobody
    /// confirmed and that can be told from other blocks, the newest `most` of them.
    pub(in super::super) fn kept(mut self, most: usize) -> Self {
        let mut kept = Self::default();
        let mut left = most;
        for sequence in self.order.into_iter().rev() {
            let Some(mut done) = self.all.remove(&sequence).filter(|done| done.id.is_some() && done.reply.is_some())
            else {
                continue;
            };
            if left == 0 {
                break;
            }
            left -= 1;
            done.era = 0;
            kept.unheard += usize::from(!done.heard);
            kept.all.insert(sequence, done);
            kept.order.push_front(sequence);
        }
        kept
    }

    pub(in super::super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Kept ones that the server may not have heard of.
    pub(in super::super) fn to_tell(&self) -> Vec<(u64, R)> {
        self.of(0)
    }

    /// How many the server may count as unsettled.
    pub(super) fn unheard(&self) -> usize {
        self.unheard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_confirmed_outlives_its_term_if_it_can_be_told_from_other_blocks() {
        let (mut settled, id) = (Settled::default(), |n: u64| Some(BlockId([u8::try_from(n).unwrap(); 16])));
        (0..10).for_each(|n| settled.add(n, id(n), (n, 3)));
        settled.add(10, None, (10, 3));
        settled.confirm(&[0, 1]);
        settled.hear(&[9]);
        // one that came again is as good as new
        settled.renew(2, id(2), (&22, 4));
        let mut kept = settled.kept(5);
        assert_eq!((kept.len(), kept.unheard()), (5, 4), "the newest");
        let mut told = kept.to_tell();
        told.sort_unstable();
        assert_eq!(told, [(5, 5), (6, 6), (7, 7), (8, 8)]);
        assert_eq!(kept.renew(9, id(9), (&99, 0)), Some(true));
        assert_eq!(kept.renew(8, id(1), (&88, 0)), Some(false), "another block under its sequence");
        assert_eq!(kept.renew(4, id(4), (&44, 0)), None);
        kept.confirm(&[5, 6, 7, 8, 9]);
        assert_eq!((kept.unheard(), kept.kept(9).len()), (0, 0));
    }

    fn known(settled: &mut Settled<u64>, sequence: u64) -> bool {
        settled.all.contains_key(&sequence)
    }

    #[test]
    fn what_is_confirmed_is_not_counted_and_known_for_a_while() {
        let mut settled = Settled::default();
        (0..10).for_each(|n| settled.add(n, None, (n, 0)));
        settled.confirm(&[0, 1, 2, 7]);
        assert_eq!((settled.unheard(), settled.order.len()), (6, 7), "one in between goes with those before it");
        assert!((0..10).all(|n| known(&mut settled, n)));
        // one comes again all the same: its leader never heard the ack
        assert_eq!(settled.renew(1, None, (&11, 0)), Some(true));
        assert_eq!((settled.unheard(), settled.of(0).contains(&(1, 11))), (7, true));
        let many: Vec<u64> = (100..100 + CONFIRMED as u64).collect();
        many.iter().for_each(|n| settled.add(*n, None, (*n, 0)));
        settled.confirm(&many);
        assert!(!known(&mut settled, 0) && !known(&mut settled, 7) && known(&mut settled, 1) && known(&mut settled, 3));
        assert_eq!(settled.unheard(), 7);
    }

    #[test]
    fn it_is_bounded() {
        let mut settled = Settled::default();
        (0..200_000).for_each(|n| settled.add(n, None, (n, 0)));
        assert_eq!((settled.unheard(), settled.all.len()), (KEPT, KEPT));
        assert!(settled.order.len() <= 2 * KEPT && known(&mut settled, 199_999) && !known(&mut settled, 8));
        let all: Vec<u64> = (0..200_000).collect();
        settled.confirm(&all);
        assert_eq!((settled.unheard(), settled.order.len(), settled.all.len()), (0, 0, CONFIRMED));
        (0..200_000).for_each(|n| {
            settled.add(n, None, (n, 0));
            settled.confirm(&[n]);
        });
        assert_eq!((settled.unheard(), settled.order.len(), settled.confirmed.len()), (0, 0, CONFIRMED));
        settled.clear();
        assert_eq!((settled.all.len(), settled.confirmed.len()), (0, 0));
    }

    #[test]
    fn what_was_heard_again_is_known_and_not_counted() {
        let mut settled = Settled::default();
        (1..=3).for_each(|n| settled.add(n, None, (n, 0)));
        settled.hear(&[1, 2, 9]);
        assert_eq!((settled.unheard(), settled.of(0)), (1, vec![(3, 3)]));
        assert_eq!(settled.renew(1, None, (&7, 0)), Some(true), "it came again all the same");
        settled.hear(&[1]);
        settled.confirm(&[1, 3]);
        assert_eq!((settled.unheard(), settled.of(0)), (0, vec![]));
        assert_eq!(settled.renew(2, None, (&8, 0)), Some(true));
    }
}
