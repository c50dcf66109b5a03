//! Rows on their way into blocks, while the publish before them is in flight. Pure: no clock, no queue.

use super::Outcome;
use crate::budget::Held;
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::oneshot;
use wh_types::{MAX_BLOCK_ROWS, TARGET_BLOCK_BYTES, Timestamp};

/// Most blocks of one publish call.
const CALL_BLOCKS: usize = 16;
/// Most decoded bytes of one publish call; one block may exceed it alone.
const CALL_BYTES: usize = 4 << 20;

/// The blocks that gather. The last one is still open.
#[derive(Debug, Default)]
pub(super) struct Gather {
    blocks: VecDeque<Open>,
    bytes: usize,
}

/// A block before it has an id.
#[derive(Debug)]
pub(super) struct Open {
    /// Rows, each with its line feed.
    pub(super) text: Vec<u8>,
    pub(super) rows: u32,
    pub(super) stamp: Stamp,
    /// Whose rows these are, in order.
    pub(super) parts: Vec<Part>,
}

/// When a block's first row came, and the trace of its request.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    pub(crate) received: Timestamp,
    pub(crate) trace: Option<Arc<str>>,
}

/// Consecutive rows of one request in one block.
#[derive(Debug)]
pub(super) struct Part {
    done: oneshot::Sender<Outcome>,
    /// The request's share of the budget goes back when the last of its parts is done.
    _held: Arc<Held>,
}

/// The other end of a part: what becomes of `rows` rows.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) rows: u32,
    pub(crate) outcome: oneshot::Receiver<Outcome>,
}

impl Gather {
    /// Adds the rows of one request, in order.
    pub(super) fn add<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [u8]>,
        stamp: &Stamp,
        held: &Arc<Held>,
    ) -> Vec<Pending> {
        let mut pending = Vec::with_capacity(1);
        let mut here = 0;
        for row in rows {
            let size = row.len() + 1;
            if self.blocks.back().is_none_or(|open| !open.has_room(size)) {
                self.close(&mut here, held, &mut pending);
                self.blocks.push_back(Open::new(stamp.clone()));
            }
            let Some(open) = self.blocks.back_mut() else { break };
            open.text.extend_from_slice(row);
            open.text.push(b'\n');
            open.rows += 1;
            here += 1;
            self.bytes += size;
        }
        self.close(&mut here, held, &mut pending);
        pending
    }

    fn close(&mut self, here: &mut u32, held: &Arc<Held>, pending: &mut Vec<Pending>) {
        let rows = std::mem::take(here);
        if rows > 0
            && let Some(open) = self.blocks.back_mut()
        {
            let (done, outcome) = oneshot::channel();
            open.parts.push(Part { done, _held: Arc::clone(held) });
            pending.push(Pending { rows, outcome });
        }
    }

    /// Takes what one publish call carries; nothing if nothing gathered.
    pub(super) fn take(&mut self) -> Vec<Open> {
        let mut bytes = 0;
        let fits = |open: &&Open| {
            bytes += open.text.len();
            bytes <= CALL_BYTES
        };
        let count = self.blocks.iter().take(CALL_BLOCKS).take_while(fits).count();
        let count = if count == 0 { self.blocks.len().min(1) } else { count };
        let taken: Vec<_> = self.blocks.drain(..count).collect();
        self.bytes -= taken.iter().map(|open| open.text.len()).sum::<usize>();
        taken
    }

    /// Bytes that gather.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl Open {
    fn new(stamp: Stamp) -> Self {
        Self { text: Vec::new(), rows: 0, stamp, parts: Vec::new() }
    }

    fn has_room(&self, size: usize) -> bool {
        self.rows == 0 || (self.rows < MAX_BLOCK_ROWS && self.text.len() + size <= TARGET_BLOCK_BYTES)
    }
}

/// Tells everybody with rows in a block. Who has left is told nothing.
pub(super) fn tell(parts: Vec<Part>, outcome: &Outcome) {
    for part in parts {
        drop(part.done.send(outcome.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use futures::FutureExt;
    use proptest::prelude::*;
    use std::time::Duration;

    fn held() -> Arc<Held> {
        let budget = Budget::new(1 << 20, Duration::ZERO);
        budget.take(1).now_or_never().unwrap().map(Arc::new).unwrap()
    }

    fn stamp() -> Stamp {
        Stamp { received: Timestamp::from_millis(1), trace: None }
    }

    #[test]
    fn a_large_row_is_a_block_of_its_own_and_a_call_is_bounded() {
        let (mut gather, held) = (Gather::default(), held());
        let (small, large) = (vec![b'x'; 100], vec![b'x'; 1 << 20]);
        let rows = [&small, &large, &small].map(Vec::as_slice);
        assert_eq!(gather.add(rows.into_iter(), &stamp(), &held).len(), 3);
        gather.add(std::iter::repeat_n(large.as_slice(), 9), &stamp(), &held);
        let calls: Vec<usize> = std::iter::from_fn(|| Some(gather.take().len()).filter(|n| *n > 0)).collect();
        assert_eq!(calls.iter().sum::<usize>(), 12);
        assert!(calls.iter().all(|n| *n <= 6), "about 4 MiB a call: {calls:?}");
        assert!(gather.is_empty() && gather.bytes() == 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
        #[test]
        fn no_row_is_lost_split_or_reordered(requests in proptest::collection::vec(proptest::collection::vec(1usize..2_000, 0..700), 1..5)) {
            let (mut gather, held) = (Gather::default(), held());
            let mut sent = Vec::new();
            let mut pending = Vec::new();
            for (n, sizes) in requests.iter().enumerate() {
                let rows: Vec<Vec<u8>> = sizes.iter().map(|size| vec![b'a' + u8::try_from(n).unwrap(); *size]).collect();
                let parts = gather.add(rows.iter().map(Vec::as_slice), &stamp(), &held);
                prop_assert_eq!(parts.iter().map(|p| p.rows as usize).sum::<usize>(), rows.len());
                pending.extend(parts.into_iter().map(|part| (n, part)));
                sent.extend(rows);
            }
            let mut got = Vec::new();
            loop {
                let call = gather.take();
                if call.is_empty() { break }
                prop_assert!(call.len() <= CALL_BLOCKS);
                for open in call {
                    prop_assert!(open.rows >= 1 && open.rows <= MAX_BLOCK_ROWS);
                    prop_assert!(open.text.len() <= TARGET_BLOCK_BYTES || open.rows == 1);
                    let lines: Vec<_> = open.text.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
                    prop_assert_eq!(lines.len(), open.rows as usize + 1);
                    got.extend_from_slice(&lines[..lines.len() - 1]);
                    tell(open.parts, &Outcome::Stored);
                }
            }
            prop_assert_eq!(got, sent);
            for (_, part) in &mut pending {
                prop_assert!(matches!(part.outcome.try_recv(), Ok(Outcome::Stored)));
            }
        }
    }
}
