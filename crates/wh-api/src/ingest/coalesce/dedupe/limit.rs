//! Until when a block may go out under its claims, and until when an answer proves anything (decision D4). Pure.

use std::time::Duration;
use wh_types::Mono;

/// By so much clocks of processes that share a store may differ.
const SKEW: Duration = Duration::from_secs(5);

/// The times of a block whose rows were claimed at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// No publish begins after it.
    pub(crate) last_start: Mono,
    /// A `Duplicate` that is read after it may be somebody else's probe.
    pub(crate) proves_until: Mono,
    /// When the claims are over.
    pub(crate) until: Mono,
}

impl Limit {
    /// `call`: how long a publish that begins may go on with attempts of its own; `attempt`: how long the last of them takes.
    pub(crate) fn new(since: Mono, lease: Duration, attempt: Duration, call: Duration) -> Self {
        let proves = lease.saturating_sub(SKEW);
        Self {
            last_start: since + proves.saturating_sub(attempt.max(call)),
            proves_until: since + proves,
            until: since + lease,
        }
    }

    /// The stricter of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            last_start: self.last_start.min(other.last_start),
            proves_until: self.proves_until.min(other.proves_until),
            until: self.until.min(other.until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Clock, SystemClock};

    #[test]
    fn nothing_begins_that_could_end_in_the_last_five_seconds() {
        let (now, seconds) = (SystemClock.now(), Duration::from_secs);
        let own = Limit::new(now, seconds(30), seconds(5), Duration::ZERO);
        assert_eq!((own.last_start, own.proves_until), (now + seconds(20), now + seconds(25)));
        let queue = Limit::new(now, seconds(30), seconds(5), Duration::from_millis(15_500));
        assert_eq!(queue.last_start, now + Duration::from_millis(9_500));
        let short = Limit::new(now, seconds(1), seconds(5), Duration::ZERO);
        assert_eq!((short.last_start, short.until), (now, now + seconds(1)));
        assert_eq!(own.and(queue).last_start, queue.last_start);
    }
}
