//! Recent events of one table, for streams that read at their own pace. Pure.

use super::frame::Frames;
use std::collections::VecDeque;

/// Events in order, numbered; the oldest go when there are too many bytes.
#[derive(Debug)]
pub(super) struct Ring {
    frames: VecDeque<Frames>,
    /// The number of the first one kept.
    first: u64,
    bytes: usize,
}

/// What a reader gets next.
#[derive(Debug)]
pub(super) enum Read {
    /// Events; the reader stands behind them then.
    Frames(Frames),
    /// So many were lost to this reader; it stands at the oldest one kept now.
    Lost {
        /// How many sets of events.
        sets: u64,
        /// The place of the next one, where it has one.
        next: Option<String>,
    },
    /// It has everything.
    Nothing,
}

/// What each set of events costs besides its bytes.
const OVERHEAD: usize = 128;

impl Ring {
    pub(super) fn new() -> Self {
        Self { frames: VecDeque::new(), first: 0, bytes: 0 }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Behind the newest.
    pub(super) fn head(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// Adds events and lets the oldest go beyond `most` bytes; the newest are always kept, however large.
    pub(super) fn push(&mut self, frames: Frames, most: usize) -> u64 {
        self.bytes += frames.bytes.len() + OVERHEAD;
        self.frames.push_back(frames);
        while self.bytes > most
            && self.frames.len() > 1
            && let Some(oldest) = self.frames.pop_front()
        {
            self.bytes -= oldest.bytes.len() + OVERHEAD;
            self.first += 1;
        }
        self.head()
    }

    /// What a reader at `at` gets, and where it stands then.
    pub(super) fn read(&self, at: &mut u64) -> Read {
        if *at < self.first {
            let sets = self.first - *at;
            *at = self.first;
            let next = self.frames.front().and_then(|frames| frames.cursor);
            return Read::Lost { sets, next: next.map(|cursor| cursor.to_string()) };
        }
        match self.frames.get(usize::try_from(*at - self.first).unwrap_or(usize::MAX)) {
            Some(frames) => {
                *at += 1;
                Read::Frames(frames.clone())
            }
            None => Read::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn frames(n: u8) -> Frames {
        Frames { bytes: Bytes::from(vec![n; 100]), count: 1, cursor: None, gap: false }
    }

    #[test]
    fn a_slow_reader_is_told_and_goes_on_with_what_is_kept() {
        let (mut ring, most) = (Ring::new(), 3 * (100 + OVERHEAD));
        let mut at = ring.head();
        assert!(matches!(ring.read(&mut at), Read::Nothing));
        for n in 0..10 {
            ring.push(frames(n), most);
        }
        assert!(matches!(ring.read(&mut at), Read::Lost { sets: 7, .. }));
        for n in 7..10 {
            assert!(matches!(ring.read(&mut at), Read::Frames(frames) if frames.bytes[0] == n));
        }
        assert!(matches!(ring.read(&mut at), Read::Nothing));
        assert_eq!(at, ring.head());
    }

    #[test]
    fn the_newest_is_kept_however_large() {
        let mut ring = Ring::new();
        let mut at = 0;
        ring.push(frames(1), 1);
        assert!(matches!(ring.read(&mut at), Read::Frames(_)));
    }
}
