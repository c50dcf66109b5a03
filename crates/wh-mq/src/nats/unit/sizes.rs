//! How many blocks a pull may ask for, by what blocks were like lately (decision D1). Pure.

use crate::Budget;
use wh_types::{MAX_BLOCK_ROWS, TARGET_BLOCK_BYTES};

/// The largest block lately: what is larger counts at once, and what was larger fades by a thirty-second a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    rows: usize,
    bytes: usize,
}

impl Default for Sizes {
    /// Before the first block nothing is known, so a block counts as a full one.
    fn default() -> Self {
        Self { rows: MAX_BLOCK_ROWS as usize, bytes: TARGET_BLOCK_BYTES }
    }
}

impl Sizes {
    /// Learns from a block. The first one replaces what was only assumed.
    pub(super) fn note(&mut self, rows: usize, bytes: usize) {
        let fade = |size: usize| size * 31 / 32;
        let first = *self == Self::default();
        let (old_rows, old_bytes) = if first { (0, 0) } else { (fade(self.rows), fade(self.bytes)) };
        *self = Self { rows: rows.max(old_rows).max(1), bytes: bytes.max(old_bytes).max(1) };
    }

    /// Blocks that fit into what is free, in rows and bytes, here and in the process.
    pub(super) fn fit(&self, free: Budget, process_bytes: usize) -> usize {
        (free.rows / self.rows).min(free.bytes.min(process_bytes) / self.bytes)
    }

    /// Bytes that so many blocks may come to.
    pub(super) fn bytes(&self, blocks: usize) -> usize {
        self.bytes.saturating_mul(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_blocks_are_taken_for_full_ones_and_the_size_follows() {
        let wide = Budget { rows: 20_000, bytes: 64 << 20 };
        let mut sizes = Sizes::default();
        assert_eq!(sizes.fit(wide, usize::MAX), 40);
        assert_eq!(sizes.fit(wide, 3 * TARGET_BLOCK_BYTES), 3);
        sizes.note(1, 100);
        assert_eq!(sizes.fit(wide, usize::MAX), 20_000);
        sizes.note(500, 100_000);
        assert_eq!(sizes.fit(wide, usize::MAX), 40);
        for _ in 0..400 {
            sizes.note(2, 10);
        }
        assert_eq!((sizes.fit(wide, usize::MAX), sizes.bytes(7)), (10_000, 70));
        assert_eq!(sizes.fit(Budget { rows: 1, bytes: 1 << 20 }, usize::MAX), 0);
    }
}
