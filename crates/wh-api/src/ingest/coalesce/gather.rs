//! Rows on their way into blocks, while the publish before them is in flight. Pure: no clock, no queue.

use super::{Outcome, dedupe::Once};
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
    /// The rows that are to be stored once, in order; none where nothing is deduplicated.
    pub(super) keyed: Vec<Keyed>,
    /// Their ids, as they stand in the records.
    pub(super) ids: Vec<u8>,
}

/// A row as it is handed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fresh<'a> {
    pub(crate) text: &'a [u8],
    /// Its id as it stands in the record, where rows of its table are told apart by one and it has one.
    pub(crate) id: Option<&'a [u8]>,
    /// The number of its record in the request.
    pub(crate) index: u32,
}

/// A row of a block that is to be stored once. Small, because there are many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyed {
    /// Its number in the block.
    pub(super) row: u32,
    /// Which part it is of.
    pub(super) part: u32,
    /// The number of its record in the request.
    pub(super) index: u32,
    id: (u32, u32),
}

/// Who hands rows over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) stamp: &'a Stamp,
    pub(crate) held: &'a Arc<Held>,
    pub(crate) once: Option<&'a Arc<Once>>,
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
    /// How many.
    pub(super) rows: u32,
    /// What is known of the request they came with, where it may come again.
    pub(super) once: Option<Arc<Once>>,
    done: oneshot::Sender<Fates>,
    /// The request's share of the budget goes back when the last of its parts is done.
    _held: Arc<Held>,
}

/// The other end of a part: what becomes of `rows` rows.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) rows: u32,
    pub(crate) outcome: oneshot::Receiver<Fates>,
}

/// What became of consecutive rows.
#[derive(Clone, Debug)]
pub(crate) enum Fates {
    /// The same of all.
    All(Outcome),
    /// By consecutive rows, in order.
    Each(Vec<(u32, Outcome)>),
}

impl Gather {
    /// Adds the rows of one request, in order.
    pub(super) fn add<'a>(&mut self, rows: impl Iterator<Item = Fresh<'a>>, from: &Sender<'_>) -> Vec<Pending> {
        let mut pending = Vec::with_capacity(1);
        let mut here = 0;
        for row in rows {
            let size = row.text.len() + 1;
            if self.blocks.back().is_none_or(|open| !open.has_room(size)) {
                self.close(&mut here, from, &mut pending);
                self.blocks.push_back(Open::new(from.stamp.clone()));
            }
            let Some(open) = self.blocks.back_mut() else { break };
            if row.id.is_some() || from.once.is_some() {
                open.key(&row);
            }
            open.text.extend_from_slice(row.text);
            open.text.push(b'\n');
            open.rows += 1;
            here += 1;
            self.bytes += size;
        }
        self.close(&mut here, from, &mut pending);
        pending
    }

    fn close(&mut self, here: &mut u32, from: &Sender<'_>, pending: &mut Vec<Pending>) {
        let rows = std::mem::take(here);
        if rows > 0
            && let Some(open) = self.blocks.back_mut()
        {
            let (done, outcome) = oneshot::channel();
            open.parts.push(Part { rows, once: from.once.cloned(), done, _held: Arc::clone(from.held) });
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
        Self { text: Vec::new(), rows: 0, stamp, parts: Vec::new(), keyed: Vec::new(), ids: Vec::new() }
    }

    /// Notes how the row that comes next is told apart.
    fn key(&mut self, row: &Fresh<'_>) {
        let start = self.ids.len();
        self.ids.extend_from_slice(row.id.unwrap_or_default());
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.keyed.push(Keyed {
            row: self.rows,
            part: place(self.parts.len()),
            index: row.index,
            id: (place(start), place(self.ids.len())),
        });
    }

    /// The id of a keyed row as it stands in its record; empty where it has none.
    pub(super) fn id_of(&self, keyed: &Keyed) -> &[u8] {
        let (start, end) = keyed.id;
        &self.ids[start as usize..end as usize]
    }

    /// Takes rows out, by their numbers in order.
    pub(super) fn remove(&mut self, mut rows: impl Iterator<Item = u32>) {
        let Some(mut next) = rows.next() else { return };
        let text = std::mem::take(&mut self.text);
        let mut kept = Vec::with_capacity(text.len());
        let mut left = 0;
        let mut gone = false;
        for (row, line) in (0..self.rows).zip(text.split_inclusive(|byte| *byte == b'\n')) {
            if !gone && row == next {
                match rows.next() {
                    Some(row) => next = row,
                    None => gone = true,
                }
            } else {
                kept.extend_from_slice(line);
                left += 1;
            }
        }
        (self.text, self.rows) = (kept, left);
    }

    fn has_room(&self, size: usize) -> bool {
        self.rows == 0 || (self.rows < MAX_BLOCK_ROWS && self.text.len() + size <= TARGET_BLOCK_BYTES)
    }
}

/// Tells everybody with rows in a block. Who has left is told nothing.
pub(super) fn tell(parts: Vec<Part>, outcome: &Outcome) {
    let mut row = 0;
    for part in parts {
        drop(part.done.send(Fates::All(outcome.clone().at_row(row))));
        row += part.rows;
    }
}

/// The same where rows fared differently: `of` gives what became of a row of the block as it was gathered.
pub(super) fn tell_each(parts: Vec<Part>, mut of: impl FnMut(u32) -> Outcome) {
    let mut row = 0;
    for part in parts {
        let mut fates: Vec<(u32, Outcome)> = Vec::with_capacity(1);
        for _ in 0..part.rows {
            let outcome = of(row);
            row += 1;
            match fates.last_mut() {
                Some((rows, last)) if last.is(&outcome) => *rows += 1,
                _ => fates.push((1, outcome)),
            }
        }
        drop(part.done.send(Fates::Each(fates)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use futures::FutureExt;
    use proptest::prelude::*;
    use std::time::Duration;
    use wh_types::{Cursor, Epoch, RowCursor};

    fn held() -> Arc<Held> {
        let budget = Budget::new(1 << 20, Duration::ZERO);
        budget.take(1).now_or_never().unwrap().map(Arc::new).unwrap()
    }

    fn stamp() -> Stamp {
        Stamp { received: Timestamp::from_millis(1), trace: None }
    }

    fn add(gather: &mut Gather, rows: &[&[u8]], held: &Arc<Held>) -> Vec<Pending> {
        let stamp = stamp();
        let from = Sender { stamp: &stamp, held, once: None };
        gather.add(rows.iter().map(|text| Fresh { text, id: None, index: 0 }), &from)
    }

    fn stored() -> Outcome {
        Outcome::Stored(RowCursor { block: Cursor { epoch: Epoch(1), sequence: 1 }, row: 0 })
    }

    #[test]
    fn rows_that_leave_a_block_leave_the_others_as_they_were() {
        let (mut gather, held) = (Gather::default(), held());
        let rows: Vec<String> = (0..9).map(|n| format!("row {n}")).collect();
        let rows: Vec<&[u8]> = rows.iter().map(String::as_bytes).collect();
        for (gone, left) in [(vec![], 9), (vec![0, 3, 4, 8], 5), ((0..9).collect(), 0)] {
            add(&mut gather, &rows, &held);
            let mut open = gather.take().remove(0);
            open.remove(gone.iter().copied());
            let expected: Vec<u8> = (0..9_u32)
                .filter(|row| !gone.contains(row))
                .flat_map(|row| format!("row {row}\n").into_bytes())
                .collect();
            assert_eq!((open.rows, open.text), (left, expected));
        }
    }

    #[test]
    fn a_part_is_told_what_became_of_each_of_its_rows() {
        let (mut gather, held) = (Gather::default(), held());
        let mut pending = [5, 3].map(|rows| add(&mut gather, &vec![&b"{}"[..]; rows], &held).remove(0));
        let open = gather.take().remove(0);
        tell_each(open.parts, |row| if matches!(row, 1 | 2 | 5) { Outcome::Duplicate } else { stored() });
        let runs = pending.each_mut().map(|part| match part.outcome.try_recv() {
            Ok(Fates::Each(runs)) => {
                runs.iter().map(|(rows, outcome)| (*rows, matches!(outcome, Outcome::Duplicate))).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        });
        let expected = [vec![(1, false), (2, true), (2, false)], vec![(1, true), (2, false)]];
        assert_eq!(runs, expected);
    }

    #[test]
    fn a_large_row_is_a_block_of_its_own_and_a_call_is_bounded() {
        let (mut gather, held) = (Gather::default(), held());
        let (small, large) = (vec![b'x'; 100], vec![b'x'; 1 << 20]);
        let rows = [&small, &large, &small].map(Vec::as_slice);
        assert_eq!(add(&mut gather, &rows, &held).len(), 3);
        add(&mut gather, &[large.as_slice(); 9], &held);
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
                let texts: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
                let parts = add(&mut gather, &texts, &held);
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
                    tell(open.parts, &stored());
                }
            }
            prop_assert_eq!(got, sent);
            for (_, part) in &mut pending {
                prop_assert!(matches!(part.outcome.try_recv(), Ok(Fates::All(Outcome::Stored(_)))));
            }
        }
    }
}
