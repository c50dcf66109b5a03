//! Backing off: whether an insert may be tried now, by pool and by table. Pure but for the shared map around it.

use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::sync::{Notify, futures::OwnedNotified};
use wh_types::{Mono, Table};

/// What fails together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// Everything behind one address, user and database.
    Pool(String),
    /// One table of it.
    Table(String, Table),
}

/// One scope's state while it fails; a scope that works has none.
#[derive(Clone, Copy, Debug)]
struct Gate {
    failures: u32,
    since: Mono,
    until: Mono,
    probing: bool,
}

/// May it be tried?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Yes.
    Go,
    /// Not before this moment; sooner if the scope recovers.
    Wait(Mono),
}

/// How long those wait who find a probe under way.
const PROBE_WAIT: Duration = Duration::from_millis(500);

/// All gates of a process.
#[derive(Debug)]
pub(crate) struct Gates {
    shut: Mutex<HashMap<Scope, Gate>>,
    opened: Arc<Notify>,
}

impl Gates {
    pub(crate) fn new() -> Self {
        Self { shut: Mutex::default(), opened: Arc::default() }
    }

    /// Is done when a scope recovers after this call.
    pub(crate) fn opens(&self) -> OwnedNotified {
        Arc::clone(&self.opened).notified_owned()
    }

    /// Asks the table's own gate first, so that a table that may not go never uses up the pool's one probe.
    pub(crate) fn ask(&self, pool: &str, table: &Table, now: Mono) -> Ask {
        let mut shut = self.shut.lock();
        if shut.is_empty() {
            return Ask::Go;
        }
        let (own, whole) = (Scope::Table(pool.to_owned(), table.clone()), Scope::Pool(pool.to_owned()));
        for scope in [&own, &whole] {
            if let Some(gate) = shut.get(scope) {
                if now < gate.until {
                    return Ask::Wait(gate.until);
                }
                if gate.probing {
                    return Ask::Wait(now + PROBE_WAIT);
                }
            }
        }
        for scope in [&own, &whole] {
            if let Some(gate) = shut.get_mut(scope) {
                gate.probing = true;
            }
        }
        Ask::Go
    }

    /// Notes a failure and gives (how many in a row, how long since the first, until when it is shut). A failure inside a
    /// running window is that window's own late answer and does not make it longer.
    pub(crate) fn failed(&self, scope: Scope, now: Mono, delay: impl FnOnce(u32) -> Duration) -> (u32, Duration, Mono) {
        let mut shut = self.shut.lock();
        let gate = shut.entry(scope).or_insert(Gate { failures: 0, since: now, until: now, probing: false });
        if gate.failures == 0 || now >= gate.until {
            gate.failures = gate.failures.saturating_add(1);
            gate.until = now + delay(gate.failures);
        }
        gate.probing = false;
        (gate.failures, now.saturating_duration_since(gate.since), gate.until)
    }

    /// The sink answered for this table: the pool works, and the table too unless it has a gate that only a success of
    /// its own opens. Gives how long the pool was away, if it was.
    pub(crate) fn answered(&self, pool: &str, table: &Table, stored: bool, now: Mono) -> Option<Duration> {
        let mut shut = self.shut.lock();
        if shut.is_empty() {
            return None;
        }
        let own = Scope::Table(pool.to_owned(), table.clone());
        let mine = if stored {
            shut.remove(&own)
        } else {
            if let Some(gate) = shut.get_mut(&own) {
                gate.probing = false;
            }
            None
        };
        let whole = shut.remove(&Scope::Pool(pool.to_owned()));
        drop(shut);
        let away = mine.or(whole).map(|gate| now.saturating_duration_since(gate.since));
        if away.is_some() {
            self.opened.notify_waiters();
        }
        away
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[tokio::test(start_paused = true)]
    async fn a_pool_that_failed_is_tried_by_one_after_its_window() {
        let (gates, t) = (Gates::new(), Table::new("t").unwrap());
        let u = Table::new("u").unwrap();
        let now = SystemNow.now();
        assert_eq!(gates.ask("p", &t, now), Ask::Go);
        assert_eq!(gates.failed(Scope::Pool("p".into()), now, |_| second(1)).0, 1);
        assert_eq!(gates.ask("p", &t, now), Ask::Wait(now + second(1)));
        assert_eq!(gates.ask("q", &t, now), Ask::Go, "another pool is not concerned");
        // a late failure inside the window changes nothing
        assert_eq!(gates.failed(Scope::Pool("p".into()), now, |_| second(9)).0, 1);
        let later = now + second(1);
        assert_eq!(gates.ask("p", &t, later), Ask::Go, "the probe");
        assert_eq!(gates.ask("p", &u, later), Ask::Wait(later + PROBE_WAIT), "one probe a window");
        assert_eq!(gates.failed(Scope::Pool("p".into()), later, |n| second(u64::from(n))).0, 2);
        assert_eq!(gates.ask("p", &u, later), Ask::Wait(later + second(2)));
        let opens = gates.opens();
        assert_eq!(gates.answered("p", &t, true, later + second(3)), Some(second(4)));
        assert!(opens.now_or_never().is_some() && gates.opens().now_or_never().is_none());
        assert_eq!(gates.ask("p", &u, later), Ask::Go);
    }

    #[tokio::test(start_paused = true)]
    async fn a_table_that_fails_alone_stops_nobody_else() {
        let (gates, t, u) = (Gates::new(), Table::new("t").unwrap(), Table::new("u").unwrap());
        let now = SystemNow.now();
        gates.failed(Scope::Table("p".into(), t.clone()), now, |_| second(5));
        assert_eq!(gates.ask("p", &t, now), Ask::Wait(now + second(5)));
        assert_eq!(gates.ask("p", &u, now), Ask::Go);
        assert_eq!(gates.answered("p", &t, false, now), None, "a refusal does not open the table's own gate");
        assert_eq!(gates.ask("p", &t, now), Ask::Wait(now + second(5)));
        assert!(gates.answered("p", &t, true, now).is_some());
        assert_eq!(gates.ask("p", &t, now), Ask::Go);
    }

    struct SystemNow;
    impl SystemNow {
        fn now(&self) -> Mono {
            wh_types::Clock::now(&wh_types::SystemClock)
        }
    }
}
