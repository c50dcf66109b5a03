//! The blocks that are settled here while the server may not know it yet. Bounded: what is forgotten may come twice.

use std::collections::{HashMap, VecDeque};
use wh_types::BlockId;

/// Most that are remembered. More than this can be unconfirmed only where acks are lost for long.
const KEPT: usize = 65_536;

#[derive(Debug)]
struct Done<R> {
    id: Option<BlockId>,
    reply: R,
    /// The resets before its reply came.
    era: u64,
    /// The server heard the ack again. It may still forget it with its leader.
    heard: bool,
}

/// `R` is where a delivery is settled.
#[derive(Debug)]
pub(super) struct Settled<R> {
    all: HashMap<u64, Done<R>>,
    /// In the order they were settled. Stale where it was confirmed.
    order: VecDeque<u64>,
    unheard: usize,
}

impl<R> Default for Settled<R> {
    fn default() -> Self {
        Self { all: HashMap::new(), order: VecDeque::new(), unheard: 0 }
    }
}

impl<R: Clone> Settled<R> {
    pub(super) fn add(&mut self, sequence: u64, id: Option<BlockId>, (reply, era): (R, u64)) {
        if self.all.insert(sequence, Done { id, reply, era, heard: false }).is_none() {
            self.order.push_back(sequence);
            self.unheard += 1;
        }
        while self.order.len() > 2 * KEPT || self.all.len() > KEPT {
            let Some(oldest) = self.order.pop_front() else { break };
            self.forget(oldest);
        }
    }

    /// The server knows it for good.
    pub(super) fn confirm(&mut self, sequences: &[u64]) {
        for sequence in sequences {
            self.forget(*sequence);
        }
        while let Some(oldest) = self.order.front()
            && !self.all.contains_key(oldest)
        {
            self.order.pop_front();
        }
    }

    fn forget(&mut self, sequence: u64) {
        self.unheard -= usize::from(self.all.remove(&sequence).is_some_and(|done| !done.heard));
    }

    /// The server heard the acks again.
    pub(super) fn hear(&mut self, sequences: &[u64]) {
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
        (done.reply, done.era) = (reply.clone(), era);
        self.unheard += usize::from(std::mem::replace(&mut done.heard, false));
        Some(done.id == id)
    }

    /// Those whose replies came in this era and that the server may not have heard of.
    pub(super) fn of(&self, era: u64) -> Vec<(u64, R)> {
        let current = self.all.iter().filter(|(_, done)| done.era == era && !done.heard);
        current.map(|(sequence, done)| (*sequence, done.reply.clone())).collect()
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.order.clear();
        self.unheard = 0;
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
    fn what_is_confirmed_is_forgotten_and_the_rest_is_bounded() {
        let mut settled = Settled::default();
        (0..10).for_each(|n| settled.add(n, None, ((), 0)));
        settled.confirm(&[0, 1, 2, 7]);
        assert!((0..10).all(|n| settled.renew(n, None, (&(), 0)).is_some() != [0, 1, 2, 7].contains(&n)));
        assert_eq!(settled.order.len(), 7, "a confirmed one in between goes with those before it");
        settled.confirm(&[3, 4, 5, 6]);
        assert_eq!((settled.unheard(), settled.order.len()), (2, 2));
        (10..200_000).for_each(|n| settled.add(n, None, ((), 0)));
        assert_eq!(settled.unheard(), KEPT);
        assert!(
            settled.order.len() <= 2 * KEPT
                && settled.renew(199_999, None, (&(), 0)).is_some()
                && settled.renew(8, None, (&(), 0)).is_none()
        );
        let all: Vec<u64> = (0..200_000).collect();
        settled.confirm(&all);
        assert_eq!((settled.unheard(), settled.order.len()), (0, 0));
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
