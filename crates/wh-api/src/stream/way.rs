//! Where a reader takes what comes next from: along the ring of its table, or through the history. The state, not the walk.

use super::replay::Feed;
use wh_types::{Cursor, Mono};

/// The one or the other.
#[derive(Debug)]
pub(super) enum Way {
    /// Along the ring, and up to which number that is no live reading.
    Ring { at: u64, seam: Option<u64> },
    /// Through the history.
    History(Box<Replay>),
}

/// A history, from being asked for on.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) feed: Option<Feed>,
    /// Where the history becomes live.
    pub(super) seam: Option<Cursor>,
    /// The place is the history's own.
    pub(super) certain: bool,
    pub(super) failing: Option<Failing>,
}

/// It failed, and is tried again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failing {
    pub(super) since: Mono,
    pub(super) times: u32,
    pub(super) again: Mono,
}

impl Way {
    /// From a place that only the client knows.
    pub(super) fn history() -> Self {
        Self::History(Box::default())
    }

    /// From a place that is known to be in it.
    pub(super) fn certain_history() -> Self {
        Self::History(Box::new(Replay { certain: true, ..Replay::default() }))
    }
}
