//! The blocks that are settled here while the server may not know it yet. Bounded: what is forgotten may come twice.

use std::collections::{HashSet, VecDeque};

/// Most that are remembered. More than this can be unconfirmed only where acks are lost for long.
const KEPT: usize = 65_536;

#[derive(Debug, Default)]
pub(super) struct Settled {
    all: HashSet<u64>,
    /// In the order they were settled. Stale where it was confirmed.
    order: VecDeque<u64>,
}

impl Settled {
    pub(super) fn add(&mut self, sequence: u64) {
        if self.all.insert(sequence) {
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
            && !self.all.contains(oldest)
        {
            self.order.pop_front();
        }
    }

    pub(super) fn contains(&self, sequence: u64) -> bool {
        !self.all.is_empty() && self.all.contains(&sequence)
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
        (0..10).for_each(|n| settled.add(n));
        settled.confirm(&[0, 1, 2, 7]);
        assert!((0..10).all(|n| settled.contains(n) == ![0, 1, 2, 7].contains(&n)));
        assert_eq!(settled.order.len(), 7, "a confirmed one in between goes with those before it");
        settled.confirm(&[3, 4, 5, 6]);
        assert_eq!((settled.len(), settled.order.len()), (2, 2));
        (10..200_000).for_each(|n| settled.add(n));
        assert_eq!(settled.len(), KEPT);
        assert!(settled.order.len() <= 2 * KEPT && settled.contains(199_999) && !settled.contains(8));
        let all: Vec<u64> = (0..200_000).collect();
        settled.confirm(&all);
        assert_eq!((settled.len(), settled.order.len()), (0, 0));
    }
}
