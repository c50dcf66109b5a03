//! What the follower of a table and the streams that read it share: the ring, and how far it is.

use super::{
    block::Shown,
    frame::Frames,
    ring::{Item, Ring},
    view::View,
};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::watch;
use wh_types::Cursor;

/// Bytes of recent blocks that are kept for slower streams and for those that come back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of one table.
    pub(crate) table: usize,
    /// Of all together.
    pub(crate) all: usize,
    /// How many histories are read at once beside.
    pub(crate) replays: usize,
}

/// Beyond the bound of all together a table keeps this much.
const SCARCE: usize = 64 << 10;

/// What all rings hold together.
#[derive(Debug)]
pub(super) struct Held {
    bounds: Bounds,
    bytes: AtomicUsize,
}

impl Held {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, bytes: AtomicUsize::new(0) }
    }

    /// What a table may keep now.
    fn most(&self) -> usize {
        let scarce = self.bytes() > self.bounds.all;
        if scarce { self.bounds.table.min(SCARCE) } else { self.bounds.table }
    }

    fn changed(&self, before: usize, after: usize) {
        self.bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// How far a table's follower is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The history is being opened.
    Opening,
    /// So many blocks and gaps came.
    Live(u64),
    /// No more come.
    Ended,
}

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) ring: Mutex<Ring>,
    pub(super) phase: watch::Sender<Phase>,
    held: Arc<Held>,
}

impl Channel {
    pub(super) fn new(held: Arc<Held>) -> Self {
        Self { ring: Mutex::default(), phase: watch::channel(Phase::Opening).0, held }
    }

    /// Puts something into the ring and wakes who waits for it.
    pub(super) fn push(&self, item: Item) {
        let head = self.change(|ring, most| ring.push(item, most));
        self.phase.send_replace(Phase::Live(head));
    }

    /// The history is open; what comes was stored after this place.
    pub(super) fn go_live(&self, seam: Option<Cursor>) {
        let head = {
            let mut ring = self.ring.lock();
            ring.begin(seam);
            ring.head()
        };
        self.phase.send_if_modified(|phase| {
            let opening = *phase == Phase::Opening;
            if opening {
                *phase = Phase::Live(head);
            }
            opening
        });
    }

    /// The rows of a block of the ring, by its number, as a view has them. `None`: it cannot be read.
    pub(super) fn frames(&self, number: u64, shown: &Shown, view: &View, replay: bool) -> Option<Frames> {
        let (frames, more) = shown.frames(view, replay);
        if more > 0 {
            self.change(|ring, most| ring.grow(number, more, most));
        }
        frames
    }

    fn change<T>(&self, change: impl FnOnce(&mut Ring, usize) -> T) -> T {
        let mut ring = self.ring.lock();
        let before = ring.bytes();
        let out = change(&mut ring, self.held.most());
        self.held.changed(before, ring.bytes());
        out
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.held.changed(self.ring.get_mut().bytes(), 0);
    }
}
