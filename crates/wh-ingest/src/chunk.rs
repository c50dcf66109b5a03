//! What one insert holds: pieces of held blocks, in order, and the token that names exactly them (decision D9).

use sha2::{Digest, Sha256};
use std::fmt::Write;
use wh_types::{BlockId, Epoch, Table, Tenant};

/// Some rows of one held block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The block's sequence: its key among the held ones.
    pub(crate) sequence: u64,
    /// First row, from 0.
    pub(crate) first: u32,
    /// One past the last row.
    pub(crate) end: u32,
}

impl Piece {
    pub(crate) fn rows(self) -> u64 {
        u64::from(self.end - self.first)
    }
}

/// Rows that are inserted, or parked, together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) pieces: Vec<Piece>,
}

impl Chunk {
    pub(crate) fn rows(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.rows()).sum()
    }

    /// Cuts off the first `rows` rows. Neither part is empty when `0 < rows < self.rows()`.
    pub(crate) fn split(self, rows: u64) -> (Self, Self) {
        let (mut head, mut tail, mut left) = (Vec::new(), Vec::new(), rows);
        for piece in self.pieces {
            let take = left.min(piece.rows());
            // `take` is at most the rows of one block, a u32
            let cut = piece.first + u32::try_from(take).unwrap_or(u32::MAX);
            if cut > piece.first {
                head.push(Piece { end: cut, ..piece });
            }
            if cut < piece.end {
                tail.push(Piece { first: cut, ..piece });
            }
            left -= take;
        }
        (Self { pieces: head }, Self { pieces: tail })
    }

    /// In four: what is before a row, the row, and what is after it in halves. Where many rows are bad, what follows the
    /// first would otherwise be sent whole again for each of them.
    pub(crate) fn around(self, row: u64) -> [Self; 4] {
        let (before, rest) = self.split(row);
        let (named, after) = rest.split(1);
        let half = after.rows() / 2;
        let (near, far) = after.split(half);
        [before, named, near, far]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds a piece, as part of the last one where it follows on it.
    pub(crate) fn push(&mut self, piece: Piece) {
        match self.pieces.last_mut() {
            Some(last) if last.sequence == piece.sequence && last.end == piece.first => last.end = piece.end,
            _ => self.pieces.push(piece),
        }
    }

    /// Two different sets of rows never share a token; the same set always has the same.
    ///
    /// The blocks' ids are in it besides their places: a queue that was put back to an older copy of itself counts the
    /// same sequences again, under the same epoch, for other rows.
    pub(crate) fn token(&self, epoch: Epoch, tenant: &Tenant, table: &Table, id: impl Fn(u64) -> BlockId) -> String {
        let mut hash = Sha256::new();
        hash.update(epoch.0.to_be_bytes());
        for name in [tenant.as_str(), table.as_str()] {
            hash.update((name.len() as u64).to_be_bytes());
            hash.update(name.as_bytes());
        }
        for piece in &self.pieces {
            hash.update(piece.sequence.to_be_bytes());
            hash.update(id(piece.sequence).0);
            hash.update(piece.first.to_be_bytes());
            hash.update(piece.end.to_be_bytes());
        }
        hash.finalize().iter().take(16).fold(String::with_capacity(32), |mut text, byte| {
            // writing to a String cannot fail
            let _infallible = write!(text, "{byte:02x}");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunk(sizes: &[u32]) -> Chunk {
        let piece = |(i, rows): (usize, &u32)| Piece { sequence: i as u64 + 1, first: 0, end: *rows };
        Chunk { pieces: sizes.iter().enumerate().map(piece).collect() }
    }

    fn id(sequence: u64) -> BlockId {
        BlockId([u8::try_from(sequence).unwrap(); 16])
    }

    fn token(chunk: &Chunk) -> String {
        chunk.token(Epoch(7), &Tenant::default(), &Table::new("t").unwrap(), id)
    }

    #[test]
    fn tokens_name_exactly_the_rows() {
        let (left, right) = chunk(&[4]).split(2);
        assert_ne!(token(&left), token(&right), "equal halves of a block differ");
        assert_eq!(token(&chunk(&[4, 2])), token(&chunk(&[4, 2])), "a plain retry is the same");
        let whole = chunk(&[4, 2, 3]);
        let holed = Chunk { pieces: vec![whole.pieces[0], whole.pieces[2]] };
        assert_ne!(token(&whole), token(&holed));
        let table = Table::new("t").unwrap();
        let other = whole.token(Epoch(8), &Tenant::default(), &table, id);
        assert_ne!(token(&whole), other, "a log made anew");
        let copy = whole.token(Epoch(7), &Tenant::default(), &table, |_| BlockId([9; 16]));
        assert_ne!(token(&whole), copy, "an older copy of the log that went on differently");
        assert_eq!(token(&whole).len(), 32);
    }

    #[test]
    fn a_row_is_cut_out_of_what_is_around_it() {
        let sizes = |parts: &[Chunk]| parts.iter().map(Chunk::rows).collect::<Vec<_>>();
        let parts = chunk(&[3, 3]).around(4);
        assert_eq!(sizes(&parts), [4, 1, 0, 1]);
        assert_eq!(sizes(&chunk(&[9]).around(2)), [2, 1, 3, 3]);
        assert_eq!(parts[1].pieces, [Piece { sequence: 2, first: 1, end: 2 }]);
        assert_eq!(sizes(&chunk(&[2]).around(0)), [0, 1, 0, 1]);
        assert!(parts[2].is_empty());
    }

    proptest! {
        #[test]
        fn splitting_loses_and_moves_nothing(sizes in proptest::collection::vec(1_u32..50, 1..8), at in 0_u64..400) {
            let whole = chunk(&sizes);
            let rows = whole.rows();
            let at = at % (rows + 1);
            let (left, right) = whole.clone().split(at);
            prop_assert_eq!(left.rows(), at);
            let flat = |c: &Chunk| c.pieces.iter().flat_map(|p| (p.first..p.end).map(|r| (p.sequence, r))).collect::<Vec<_>>();
            prop_assert_eq!([flat(&left), flat(&right)].concat(), flat(&whole));
        }
    }
}
