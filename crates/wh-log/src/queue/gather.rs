//! Waiting a moment before the next group, for those who were just told of the last one.

use super::{Queue, Sleep};
use std::{sync::atomic::Ordering, time::Duration};
use wh_types::Clock;

/// How long the committer looks out for the next append.
const GATHER_QUIET: Duration = Duration::from_micros(20);
const GATHER_MOST: Duration = Duration::from_micros(200);
/// Fewer that were told are looked out for without sleeping: waking up would take longer than they do.
const GATHER_ASLEEP: usize = 128;

impl Queue {
    /// Gives those who were just told of a group the moment they need to append again, so that they share the next
    /// group with those who wait already. Ends when as many came, or none for a while, or a group is full, or after
    /// `most`: half of what the last group took, so that nobody waits long for those who do not come.
    pub(crate) fn gather(&self, told: usize, most: Duration, clock: &dyn Clock) {
        if told >= GATHER_ASLEEP {
            return self.gather_asleep(told, most.min(GATHER_MOST));
        }
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

    /// Whether there is nothing to wait for any more.
    pub(super) fn gathered(&self, wanted: usize) -> bool {
        self.appends.load(Ordering::Relaxed) >= wanted
            || self.bytes.load(Ordering::Relaxed) >= self.group_bytes as usize
    }

    /// The same, leaving the processor to those who are to come: the last of them wakes us.
    fn gather_asleep(&self, told: usize, most: Duration) {
        let mut inner = self.inner.lock();
        let wanted = self.appends.load(Ordering::Relaxed) + told;
        if !inner.closing && !self.gathered(wanted) {
            inner.sleep = Sleep::Gather(wanted);
            // whether it was woken or the time is over: the next group is begun
            self.wake.wait_for(&mut inner, most);
            inner.sleep = Sleep::No;
        }
    }
}
