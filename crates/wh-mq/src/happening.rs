//! What a history shows, and where it begins. The values of the port, not its contract.

use wh_types::{Block, Cursor, Timestamp};

/// Where a history begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// With the next block stored.
    Now,
    /// After this block.
    After(Cursor),
    /// With the first block received at or after this time.
    Time(Timestamp),
}

/// What a history shows next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A block of the table.
    Block(Cursor, Block),
    /// What follows is live. Once, also when nothing was replayed.
    Live,
    /// Something is missing here.
    Gap(Gap),
}

/// What a reader missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// After this block, where it is known.
    pub after: Option<Cursor>,
    /// Before this block, where it is known.
    pub before: Option<Cursor>,
}
