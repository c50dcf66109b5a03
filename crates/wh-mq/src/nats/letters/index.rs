//! Where letters stand that were listed or parked lately: the queue's users name a letter by its row, the stream by a
//! sequence. A hint, checked against the stream where it decides.

use crate::DeadLetterId;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// Most letters remembered; some 100 bytes each.
const MOST: usize = 20_000;

/// The sequences of letters. The oldest are forgotten.
#[derive(Debug, Default)]
pub(super) struct Index(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    at: HashMap<DeadLetterId, u64>,
    order: VecDeque<DeadLetterId>,
}

impl Index {
    pub(super) fn get(&self, id: DeadLetterId) -> Option<u64> {
        self.0.lock().at.get(&id).copied()
    }

    pub(super) fn put(&self, id: DeadLetterId, sequence: u64) {
        let mut kept = self.0.lock();
        if kept.at.insert(id, sequence).is_none() {
            kept.order.push_back(id);
            if kept.order.len() > MOST
                && let Some(oldest) = kept.order.pop_front()
            {
                kept.at.remove(&oldest);
            }
        }
    }

    /// The stream contradicts what is remembered: it was made anew.
    pub(super) fn clear(&self) {
        *self.0.lock() = Kept::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Cursor, Epoch, RowCursor};

    #[test]
    fn it_is_bounded_and_forgets_the_oldest() {
        let index = Index::default();
        let id = |n: u64| DeadLetterId(RowCursor { block: Cursor { epoch: Epoch(1), sequence: n }, row: 0 });
        for n in 0..=MOST as u64 {
            index.put(id(n), n);
            index.put(id(n), n + 1);
        }
        assert_eq!((index.get(id(0)), index.get(id(1))), (None, Some(2)));
        let kept = index.0.lock();
        assert_eq!((kept.at.len(), kept.order.len()), (MOST, MOST));
    }
}
