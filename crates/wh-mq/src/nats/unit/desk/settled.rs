//! The blocks that are settled here while the server may not know it yet. Bounded: what is forgotten may come twice.

use std::collections::{HashMap, VecDeque};
use wh_types::BlockId;

/// Most that are remembered. More than this can be unconfirmed only where acks are lost for long.
const KEPT: usize = 65_536;

/// `R` is where a delivery is settled.
#[derive(Debug)]
pub(super) struct Settled<R> {
    all: HashMap<u64, (Option<BlockId>, R)>,
    /// In the order they were settled. Stale where it was confirmed.
    order: VecDeque<u64>,
}

impl<R> Default for Settled<R> {
    fn default() -> Self {
        Self { all: HashMap::new(), order: VecDeque::new() }
    }
}

impl<R: Clone> Settled<R> {
    pub(super) fn add(&mut self, sequence: u64, id: Option<BlockId>, reply: R) {
        if self.all.insert(sequence, (id, reply)).is_none() {
            self.order.push_back(sequence);
        }
        while self.order.len() > 2 * KEPT || self.all.len() > KEPT {
            let Some(oldest) = self.order.pop_front() else { break };
            self.all.remove(&oldest);
        }
    }

    /// The server knows it.
    pub(super) fn confirm(&mut self, sequences: &[u64]) {
        for sequence in sequences {
            self.all.remove(sequence);
        }
        while let Some(oldest) = self.order.front()
            && !self.all.contains_key(oldest)
        {
            self.order.pop_front();
        }
    }

    /// A block came under its sequence: whether it is a copy of it. It is settled by the new reply from now on.
    pub(super) fn renew(&mut self, sequence: u64, id: Option<BlockId>, reply: &R) -> Option<bool> {
        if self.all.is_empty() {
            return None;
        }
        let (known, last) = self.all.get_mut(&sequence)?;
        *last = reply.clone();
        Some(*known == id)
    }

    pub(super) fn all(&self) -> Vec<(u64, R)> {
        self.all.iter().map(|(sequence, (_, reply))| (*sequence, reply.clone())).collect()
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.order.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_confirmed_is_forgotten_and_the_rest_is_bounded() {
        let mut settled = Settled::default();
        (0..10).for_each(|n| settled.add(n, None, ()));
        settled.confirm(&[0, 1, 2, 7]);
        assert!((0..10).all(|n| settled.renew(n, None, &()).is_some() != [0, 1, 2, 7].contains(&n)));
        assert_eq!(settled.order.len(), 7, "a confirmed one in between goes with those before it");
        settled.confirm(&[3, 4, 5, 6]);
        assert_eq!((settled.len(), settled.order.len()), (2, 2));
        (10..200_000).for_each(|n| settled.add(n, None, ()));
        assert_eq!(settled.len(), KEPT);
        assert!(
            settled.order.len() <= 2 * KEPT
                && settled.renew(199_999, None, &()).is_some()
                && settled.renew(8, None, &()).is_none()
        );
        let all: Vec<u64> = (0..200_000).collect();
        settled.confirm(&all);
        assert_eq!((settled.len(), settled.order.len()), (0, 0));
    }
}
