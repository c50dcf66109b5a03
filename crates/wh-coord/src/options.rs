//! What a coordinator is given.

use std::{sync::Arc, time::Duration};
use wh_types::{Clock, Entropy, Tasks};

/// The shortest time that a request to the store is given.
pub const REQUEST_AT_LEAST: Duration = Duration::from_millis(500);

/// Who claims, for how long, and with what.
#[derive(Clone, Debug)]
pub struct Options {
    /// A name for people, stored with every lease. Cut to 200 bytes.
    pub holder: String,
    /// How long a lease lasts unrenewed. The other times follow from it.
    pub duration: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance: the session's name.
    pub entropy: Arc<dyn Entropy>,
    /// Renewals run in it.
    pub tasks: Tasks,
}

impl Options {
    /// How long after the last confirmed renewal was sent the term is lost: two thirds of the lease (decision D20).
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.duration * 2 / 3
    }

    /// How often it is renewed: two fifteenths of the lease, at least 200 ms (decision D20), and well inside the deadline.
    #[must_use]
    pub fn period(&self) -> Duration {
        (self.duration * 2 / 15).max(Duration::from_millis(200)).min(self.deadline() / 2)
    }

    /// How long one request may take, so that a lost answer leaves time for another try.
    #[must_use]
    pub fn request(&self) -> Duration {
        self.period().max(REQUEST_AT_LEAST).min(self.deadline() / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{SeededEntropy, SystemClock};

    #[test]
    fn times_follow_from_the_lease() {
        let of = |duration| Options {
            holder: String::new(),
            duration,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SeededEntropy::new(1)),
            tasks: Tasks::new(),
        };
        let (s, ms) = (Duration::from_secs, Duration::from_millis);
        let default = of(s(15));
        assert_eq!((default.deadline(), default.period(), default.request()), (s(10), s(2), s(2)));
        let short = of(s(3));
        assert_eq!((short.deadline(), short.period(), short.request()), (s(2), ms(400), ms(500)));
        let tiny = of(ms(600));
        assert_eq!((tiny.deadline(), tiny.period(), tiny.request()), (ms(400), ms(200), ms(200)));
    }
}
