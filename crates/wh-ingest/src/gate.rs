//! Backing off: whether an insert may be tried now, by pool and by table. Pure but for the shared map around it.

use crate::metrics;
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::sync::{Notify, futures::OwnedNotified};
use wh_types::{Mono, Table};

/// What fails together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Scope {
    /// Everything behind one address, user and database.
    Pool(String),
    /// One table of it.
    Table(String, Table),
}

impl Scope {
    fn name(&self) -> &'static str {
        match self {
            Self::Pool(_) => "pool",
            Self::Table(..) => "table",
        }
    }
}

/// One scope's state while it fails; a scope that works has none.
#[derive(Clone, Copy, Debug)]
struct Gate {
    failures: u32,
    since: Mono,
    until: Mono,
    /// One is trying: until when its answer is waited for. It may have ended unheard.
    probe: Option<Mono>,
}

/// May it be tried?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Yes.
    Go,
    /// Not before this moment; sooner if the scope recovers.
    Wait {
        until: Mono,
        /// It is the pool that fails, not the table alone.
        pool: bool,
    },
}

/// A failure as its gate has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shut {
    /// How many in a row.
    pub(crate) failures: u32,
    /// Since the first of them.
    pub(crate) away: Duration,
    /// Until when nothing is tried.
    pub(crate) until: Mono,
}

/// What works again, and how long it did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) pool: Option<Duration>,
    pub(crate) table: Option<Duration>,
}

/// How long those wait who find a probe under way.
const PROBE_WAIT: Duration = Duration::from_millis(500);

/// All gates of a process.
#[derive(Debug)]
pub(crate) struct Gates {
    shut: Mutex<HashMap<Scope, Gate>>,
    opened: Arc<Notify>,
    /// How long a probe's answer is waited for.
    patience: Duration,
}

impl Gates {
    /// `patience`: no insert takes longer.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { shut: Mutex::default(), opened: Arc::default(), patience }
    }

    /// Is done when a scope recovers after this call.
    pub(crate) fn opens(&self) -> OwnedNotified {
        Arc::clone(&self.opened).notified_owned()
    }

    /// Whether a pool fails now.
    pub(crate) fn is_shut(&self, pool: &str) -> bool {
        let shut = self.shut.lock();
        !shut.is_empty() && shut.contains_key(&Scope::Pool(pool.to_owned()))
    }

    /// Asks the table's own gate first, so that a table that may not go never uses up the pool's one probe. Who is let
    /// go has to say how it ended: [`Self::failed`], [`Self::answered`] or [`Self::not_tried`].
    pub(crate) fn ask(&self, pool: &str, table: &Table, now: Mono) -> Ask {
        let mut shut = self.shut.lock();
        if shut.is_empty() {
            return Ask::Go;
        }
        let scopes = [Scope::Table(pool.to_owned(), table.clone()), Scope::Pool(pool.to_owned())];
        for scope in &scopes {
            let Some(gate) = shut.get(scope) else { continue };
            let pool = matches!(scope, Scope::Pool(_));
            if now < gate.until {
                return Ask::Wait { until: gate.until, pool };
            }
            if gate.probe.is_some_and(|until| now < until) {
                return Ask::Wait { until: now + PROBE_WAIT, pool };
            }
        }
        for scope in &scopes {
            if let Some(gate) = shut.get_mut(scope) {
                gate.probe = Some(now + self.patience);
            }
        }
        Ask::Go
    }

    /// Who was let go had nothing to try after all.
    pub(crate) fn not_tried(&self, pool: &str, table: &Table) {
        let mut shut = self.shut.lock();
        for scope in [Scope::Table(pool.to_owned(), table.clone()), Scope::Pool(pool.to_owned())] {
            if let Some(gate) = shut.get_mut(&scope) {
                gate.probe = None;
            }
        }
    }

    /// Notes a failure of the table `alone`, or of its whole pool. A failure inside a running window is that window's own
    /// late answer and does not make it longer. One of a table alone was answered: its pool works.
    pub(crate) fn failed(
        &self,
        pool: &str,
        table: &Table,
        alone: bool,
        now: Mono,
        delay: impl FnOnce(u32) -> Duration,
    ) -> (Shut, Opened) {
        let mut shut = self.shut.lock();
        let (own, whole) = (Scope::Table(pool.to_owned(), table.clone()), Scope::Pool(pool.to_owned()));
        let mut opened = Opened::default();
        if alone {
            opened.pool = open(&mut shut, &whole, now);
        } else if let Some(gate) = shut.get_mut(&own) {
            gate.probe = None;
        }
        let scope = if alone { own } else { whole };
        let gate = shut.entry(scope).or_insert_with_key(|scope| {
            metrics::gates_shut(scope.name(), 1.0);
            Gate { failures: 0, since: now, until: now, probe: None }
        });
        if gate.failures == 0 || now >= gate.until {
            gate.failures = gate.failures.saturating_add(1);
            gate.until = now + delay(gate.failures);
        }
        gate.probe = None;
        let away = now.saturating_duration_since(gate.since);
        let state = Shut { failures: gate.failures, away, until: gate.until };
        drop(shut);
        if opened.pool.is_some() {
            self.opened.notify_waiters();
        }
        (state, opened)
    }

    /// The sink answered for this table: the pool works, and the table too unless it has a gate that only a success of
    /// its own opens. All who wait are woken at once.
    pub(crate) fn answered(&self, pool: &str, table: &Table, stored: bool, now: Mono) -> Opened {
        let mut shut = self.shut.lock();
        if shut.is_empty() {
            return Opened::default();
        }
        let own = Scope::Table(pool.to_owned(), table.clone());
        let mut opened = Opened { table: None, pool: open(&mut shut, &Scope::Pool(pool.to_owned()), now) };
        if stored {
            opened.table = open(&mut shut, &own, now);
        } else if let Some(gate) = shut.get_mut(&own) {
            gate.probe = None;
        }
        drop(shut);
        if opened != Opened::default() {
            self.opened.notify_waiters();
        }
        opened
    }
}

fn open(shut: &mut HashMap<Scope, Gate>, scope: &Scope, now: Mono) -> Option<Duration> {
    let away = now.saturating_duration_since(shut.remove(scope)?.since);
    metrics::gates_shut(scope.name(), -1.0);
    metrics::recovered(scope.name(), away);
    Some(away)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn now() -> Mono {
        wh_types::Clock::now(&wh_types::SystemClock)
    }

    fn tables() -> (Gates, Table, Table) {
        (Gates::new(second(30)), Table::new("t").unwrap(), Table::new("u").unwrap())
    }

    fn wait(until: Mono, pool: bool) -> Ask {
        Ask::Wait { until, pool }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pool_that_failed_is_tried_by_one_after_its_window() {
        let ((gates, t, u), now) = (tables(), now());
        assert_eq!(gates.ask("p", &t, now), Ask::Go);
        assert_eq!(gates.failed("p", &t, false, now, |_| second(1)).0.failures, 1);
        assert_eq!(gates.ask("p", &t, now), wait(now + second(1), true));
        assert_eq!(gates.ask("q", &t, now), Ask::Go, "another pool is not concerned");
        assert!(gates.is_shut("p") && !gates.is_shut("q"));
        // a late failure inside the window changes nothing
        assert_eq!(gates.failed("p", &u, false, now, |_| second(9)).0.failures, 1);
        let later = now + second(1);
        assert_eq!(gates.ask("p", &t, later), Ask::Go, "the probe");
        assert_eq!(gates.ask("p", &u, later), wait(later + PROBE_WAIT, true), "one probe a window");
        assert_eq!(gates.failed("p", &t, false, later, |n| second(u64::from(n))).0.failures, 2);
        assert_eq!(gates.ask("p", &u, later), wait(later + second(2), true));
        let opens = gates.opens();
        let opened = gates.answered("p", &t, true, later + second(3));
        assert_eq!(opened, Opened { pool: Some(second(4)), table: None });
        assert!(opens.now_or_never().is_some() && gates.opens().now_or_never().is_none());
        assert_eq!(gates.ask("p", &u, later), Ask::Go);
    }

    #[tokio::test(start_paused = true)]
    async fn a_table_that_fails_alone_stops_nobody_else() {
        let ((gates, t, u), now) = (tables(), now());
        gates.failed("p", &t, true, now, |_| second(5));
        assert_eq!(gates.ask("p", &t, now), wait(now + second(5), false));
        assert_eq!(gates.ask("p", &u, now), Ask::Go);
        assert_eq!(
            gates.answered("p", &t, false, now),
            Opened::default(),
            "a refusal does not open the table's own gate"
        );
        assert_eq!(gates.ask("p", &t, now), wait(now + second(5), false));
        assert_eq!(gates.answered("p", &t, true, now).table, Some(second(0)));
        assert_eq!(gates.ask("p", &t, now), Ask::Go);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_a_table_fails_alone_opens_the_pool() {
        let ((gates, t, u), now) = (tables(), now());
        gates.failed("p", &t, false, now, |_| second(1));
        let later = now + second(1);
        assert_eq!(gates.ask("p", &t, later), Ask::Go);
        let opens = gates.opens();
        let (_, opened) = gates.failed("p", &t, true, later, |_| second(1));
        assert_eq!(opened.pool, Some(second(1)));
        assert!(opens.now_or_never().is_some());
        assert_eq!(gates.ask("p", &u, later), Ask::Go, "it answered: the pool works");
        assert_eq!(gates.ask("p", &t, later), wait(later + second(1), false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_never_heard_of_is_followed_by_another() {
        let ((gates, t, u), now) = (tables(), now());
        gates.failed("p", &t, false, now, |_| second(1));
        let later = now + second(1);
        assert_eq!(gates.ask("p", &t, later), Ask::Go);
        assert_eq!(gates.ask("p", &u, later + second(29)), wait(later + second(29) + PROBE_WAIT, true));
        assert_eq!(gates.ask("p", &u, later + second(30)), Ask::Go);
        gates.not_tried("p", &u);
        assert_eq!(gates.ask("p", &t, later + second(30)), Ask::Go, "given back untried");
    }
}
