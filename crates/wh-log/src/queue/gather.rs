//! Waiting a moment before the next group, for those who were just told of the last one.

use super::Queue;
use std::{sync::atomic::Ordering, time::Duration};
use wh_types::Clock;

/// How long the committer looks out for the next append.
const GATHER_QUIET: Duration = Duration::from_micros(20);
const GATHER_MOST: Duration = Duration::from_micros(200);

impl Queue {
    /// Gives those who were just told of a group the moment they need to append again, so that they share the next
    /// group with those who wait already. Ends when as many came, or none for a while, or a group is full, or after
    /// `most`: half of what the last group took, so that nobody waits long for those who do not come.
    pub(crate) fn gather(&self, told: usize, most: Duration, clock: &dyn Clock) {
        let begin = clock.now();
        let (mut seen, mut last) = (self.appends.load(Ordering::Relaxed), begin);
        let all = seen + told;
        while seen < all && self.bytes.load(Ordering::Relaxed) < self.group_bytes as usize {
            std::thread::yield_now();
            let (appends, now) = (self.appends.load(Ordering::Relaxed), clock.now());
            if appends > seen {
                (seen, last) = (appends, now);
            }
            if now.duration_since(last) > GATHER_QUIET || now.duration_since(begin) > most.min(GATHER_MOST) {
                return;
            }
        }
    }
}
