//! A block in the ring of its table: decoded and projected once for each view that several streams have.

use super::{frame::Frames, ring::OVERHEAD, view::View};
use parking_lot::Mutex;
use wh_types::{Block, Cursor, frame};

/// Most decoded bytes of a block: its target, or one row alone, with room for the largest configured row.
const MAX_DECODED: usize = 64 << 20;
/// Bytes of projections kept beside the first one of a block: whoever comes later with a view of its own pays for it.
const KEPT: usize = 2 << 20;

/// A block and what streams show of it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) cursor: Cursor,
    block: Block,
    kept: Mutex<Vec<Kept>>,
}

/// `None`: the block cannot be read.
#[derive(Debug)]
struct Kept {
    view: View,
    replay: bool,
    frames: Option<Frames>,
}

impl Shown {
    pub(super) fn new(cursor: Cursor, block: Block) -> Self {
        Self { cursor, block, kept: Mutex::default() }
    }

    /// Bytes it costs before anybody looks at it.
    pub(super) fn charge(&self) -> usize {
        self.block.charge() + OVERHEAD
    }

    /// Its rows, visible or not.
    pub(super) fn rows(&self) -> u32 {
        self.block.rows
    }

    /// Its rows as a view has them, and how many bytes are kept besides from now on. `None`: it cannot be read.
    pub(super) fn frames(&self, view: &View, replay: bool) -> (Option<Frames>, usize) {
        // who comes while it is made waits: nobody makes it twice
        let mut kept = self.kept.lock();
        if let Some(found) = kept.iter().find(|kept| kept.replay == replay && kept.view == *view) {
            return (found.frames.clone(), 0);
        }
        let frames = project(self.cursor, &self.block, view, replay);
        let size = |frames: &Option<Frames>| frames.as_ref().map_or(0, |frames| frames.bytes.len()) + OVERHEAD;
        let (more, held): (_, usize) = (size(&frames), kept.iter().map(|kept| size(&kept.frames)).sum());
        if held > 0 && held + more > KEPT {
            return (frames, 0);
        }
        kept.push(Kept { view: view.clone(), replay, frames: frames.clone() });
        (frames, more)
    }
}

/// The rows of a block. `None`: it cannot be read.
pub(super) fn project(cursor: Cursor, block: &Block, view: &View, replay: bool) -> Option<Frames> {
    match frame::decode(block.encoding, &block.body, MAX_DECODED) {
        Ok(text) => Some(view.rows(cursor, &text, replay)),
        Err(error) => {
            let table = &block.table;
            tracing::error!(%cursor, %table, %error, "block {cursor} cannot be read, streams are told of a gap");
            None
        }
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use wh_types::{BlockId, Encoding, Epoch, Table, Tenant, Timestamp};

    pub(crate) fn cursor(epoch: u32, sequence: u64) -> Cursor {
        Cursor { epoch: Epoch(epoch), sequence }
    }

    /// A block of these rows.
    pub(crate) fn block(text: &str) -> Block {
        Block {
            id: BlockId([0; 16]),
            tenant: Tenant::default(),
            table: Table::new("t").unwrap(),
            received: Timestamp::default(),
            rows: text.lines().count().try_into().unwrap(),
            decoded_bytes: text.len().try_into().unwrap(),
            encoding: Encoding::Zstd,
            body: frame::encode(Encoding::Zstd, text.as_bytes()).unwrap(),
            chain: None,
            trace: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::*, *};
    use bytes::Bytes;

    #[test]
    fn equal_views_share_one_projection() {
        let shown = Shown::new(cursor(1, 7), block("{\"a\":1}\n{\"a\":2}\n"));
        let (Some(first), more) = shown.frames(&View::whole(), false) else { panic!("it can be read") };
        assert_eq!((first.count, shown.rows(), more), (2, 2, first.bytes.len() + OVERHEAD));
        let (Some(second), 0) = shown.frames(&View::whole(), false) else { panic!("it is kept") };
        assert_eq!(first.bytes.as_ptr(), second.bytes.as_ptr(), "the same bytes, not equal ones");
        let (Some(marked), _) = shown.frames(&View::whole(), true) else { panic!("it can be read") };
        assert_ne!(marked, first);
    }

    #[test]
    fn what_cannot_be_read_is_nothing_and_is_not_tried_again() {
        let mut broken = block("{}\n");
        broken.body = Bytes::from_static(b"broken");
        let shown = Shown::new(cursor(1, 7), broken);
        assert_eq!(shown.frames(&View::whole(), false), (None, OVERHEAD));
        assert_eq!(shown.frames(&View::whole(), false), (None, 0));
    }
}
