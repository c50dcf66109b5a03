//! The check again, while running: every few minutes, and soon after something that only a wrong topology explains.

use super::{
    check::{Check, Report, too_slow},
    health::{Health, Verdict, note_recommended, tell},
    metrics,
};
use crate::nats::{Fault, Faults};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::sync::watch;
use wh_topology::ObserveError;
use wh_types::{Clock, Entropy, Mono, Stop, Tasks};

/// How long one check may take.
const BUDGET: Duration = Duration::from_secs(30);
/// After a fault, and after a check that could not be made.
const SOON: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(15));
/// A topology that was found wrong is looked at this often, so that its repair is noticed.
const UNSOUND: Duration = Duration::from_secs(30);

/// Between two looks at streams that publishes had no answer from.
const LOOKS: Duration = Duration::from_secs(1);

/// The check again, while running.
#[derive(Debug)]
pub struct Recheck {
    /// How it checks.
    pub check: Check,
    /// What is seen in passing.
    pub faults: Faults,
    /// How often, give or take a fifth.
    pub every: Duration,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where jitter comes from.
    pub entropy: Arc<dyn Entropy>,
}

/// Why the next check is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Steady,
    Unsound,
    Soon,
}

impl Recheck {
    /// Starts with what the check at boot found, and goes on until `stop` is given.
    #[must_use]
    pub fn start(self, boot: &Report, tasks: &Tasks, stop: Stop) -> Health {
        metrics::describe();
        let first = Verdict::of(boot);
        metrics::sound(first.sound);
        let (verdict, health) = watch::channel(first);
        drop(tasks.spawn("topology suspects", suspects(self.check.clone(), self.faults.clone(), stop.clone())));
        drop(tasks.spawn("topology check", self.run(verdict, stop)));
        Health::new(health)
    }

    async fn run(self, verdict: watch::Sender<Verdict>, stop: Stop) {
        let mut told: BTreeSet<String> = BTreeSet::new();
        note_recommended(&verdict.borrow().findings, &mut told);
        let mut faults = self.faults.watch();
        // one that was seen before is as good as one that is seen now
        faults.mark_changed();
        let refusals = self.check.connection().refusals();
        let (mut refused, mut refusals_seen) = (refusals.watch(), refusals.last());
        let mut due = self.due(Next::Steady);
        loop {
            tokio::select! {
                biased;
                () = stop.wait() => return,
                Ok(()) = faults.changed() => {
                    let fault = faults.borrow_and_update().clone();
                    if let Some(fault) = fault {
                        due = due.min(self.due(Next::Soon));
                        let doubted = verdict.borrow().doubted(fault.to_string());
                        tell(&verdict, doubted, &mut told);
                    }
                }
                Ok(()) = refused.changed() => {
                    let new = refusals.since(refusals_seen);
                    refusals_seen = *refused.borrow_and_update();
                    // whatever it is, the process asked for it because it needs it
                    if let Some(refusal) = new.last() {
                        due = due.min(self.due(Next::Soon));
                        let doubted = verdict.borrow().doubted(format!("the server refuses us {}", refusal.subject));
                        tell(&verdict, doubted, &mut told);
                    }
                }
                () = tokio::time::sleep_until(due) => {
                    let next = tokio::select! {
                        biased;
                        () = stop.wait() => return,
                        next = self.once(&verdict, &mut told, &faults) => next,
                    };
                    // what the check itself was refused is in its findings
                    refusals_seen = refusals.last();
                    due = self.due(next);
                }
            }
        }
    }

    /// One check, and when the next one is due.
    async fn once(
        &self,
        verdict: &watch::Sender<Verdict>,
        told: &mut BTreeSet<String>,
        faults: &watch::Receiver<Option<Fault>>,
    ) -> Next {
        let connection = self.check.connection();
        if !connection.is_connected() {
            return Next::Soon;
        }
        let outcome = tokio::time::timeout(BUDGET, self.check.run()).await.unwrap_or_else(|_| Err(too_slow()));
        if !connection.is_connected() {
            return Next::Soon;
        }
        let doubted = faults.has_changed().unwrap_or(false);
        let (new, next) = judge(&verdict.borrow(), &outcome, doubted);
        metrics::checked(match (&outcome, &new) {
            (Ok(_), Some(new)) if new.sound => "sound",
            (Ok(_), Some(_)) => "unsound",
            _ => "unread",
        });
        if let Err(error) = &outcome {
            tracing::warn!("the topology on the NATS servers could not be checked: {error}");
        }
        if let Some(new) = new {
            if new.sound {
                self.faults.clear();
            }
            tell(verdict, new, told);
        }
        next
    }

    fn due(&self, next: Next) -> Mono {
        self.clock.now() + pause(next, self.every, self.entropy.unit())
    }
}

/// Looks at each stream that a publish had no answer from: gone, or without a leader at the moment.
async fn suspects(check: Check, faults: Faults, stop: Stop) {
    let mut suspects = faults.suspects();
    let look = async {
        while suspects.changed().await.is_ok() {
            let stream = suspects.borrow_and_update().clone();
            if let Some(stream) = stream
                && check.connection().api().stream_state(&stream).await.is_err_and(|error| error.is_gone())
            {
                faults.note(Fault::Gone { object: format!("stream {stream}") });
            }
            tokio::time::sleep(LOOKS).await;
        }
    };
    tokio::select! {
        biased;
        () = stop.wait() => {}
        () = look => {}
    }
}

/// The new verdict, where there is one, and when to look again. What was not read leaves the judgement as it was, and a
/// fault that was seen during the check outlives it.
fn judge(before: &Verdict, outcome: &Result<Report, ObserveError>, doubted: bool) -> (Option<Verdict>, Next) {
    match outcome {
        Ok(report) if report.complete && !doubted => {
            let new = Verdict::of(report);
            let next = if new.sound { Next::Steady } else { Next::Unsound };
            (Some(new), next)
        }
        // while it is believed sound there is no hurry
        _ if before.sound && !doubted => (None, Next::Steady),
        _ => (None, Next::Soon),
    }
}

/// How long until the next check, by a number in [0, 1).
fn pause(next: Next, every: Duration, unit: f64) -> Duration {
    let about = |middle: Duration| middle.mul_f64(0.8 + 0.4 * unit);
    match next {
        Next::Steady => about(every),
        Next::Unsound => about(every.min(UNSOUND)),
        Next::Soon => SOON.0 + (SOON.1 - SOON.0).mul_f64(unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_topology::{Finding, Severity};
    use wh_types::Class;

    fn report(severity: Option<Severity>, complete: bool) -> Report {
        let finding = |severity| Finding {
            severity,
            rule: "x",
            object: "stream S".into(),
            field: "retention",
            seen: "limits".into(),
            needed: "workqueue".into(),
            fix: String::new(),
        };
        Report { findings: severity.map(finding).into_iter().collect(), complete }
    }

    #[test]
    fn only_a_whole_reading_changes_the_verdict() {
        let (sound, wrong) = (report(None, true), report(Some(Severity::Required), true));
        let (well, ill) = (Verdict::of(&sound), Verdict::of(&wrong));
        assert_eq!(ill.reason.as_deref(), Some("stream S: retention: limits"));
        let unread = || Err(ObserveError { class: Class::Unavailable, what: "no".into(), source: None });
        let judged = |before: &Verdict, outcome, doubted| {
            let (new, next) = judge(before, &outcome, doubted);
            (new.map(|verdict| verdict.sound), next)
        };
        assert_eq!(judged(&ill, Ok(sound.clone()), false), (Some(true), Next::Steady));
        assert_eq!(judged(&well, Ok(wrong.clone()), false), (Some(false), Next::Unsound));
        assert_eq!(judged(&well, Ok(report(Some(Severity::Recommended), true)), false), (Some(true), Next::Steady));
        for outcome in [report(None, false), report(Some(Severity::Required), false)] {
            assert_eq!(judged(&well, Ok(outcome.clone()), false), (None, Next::Steady));
            assert_eq!(judged(&ill, Ok(outcome), false), (None, Next::Soon));
        }
        assert_eq!(judged(&well, unread(), false), (None, Next::Steady));
        assert_eq!(judged(&ill, unread(), false), (None, Next::Soon));
        assert_eq!(judged(&well, Ok(sound), true), (None, Next::Soon), "a fault during the check");
    }

    #[test]
    fn the_next_check_is_spread() {
        let (every, s) = (Duration::from_secs(300), Duration::from_secs);
        for (next, shortest, longest) in [(Next::Steady, 240, 360), (Next::Unsound, 24, 36), (Next::Soon, 5, 15)] {
            assert_eq!(pause(next, every, 0.0), s(shortest));
            let late = pause(next, every, 0.999_999);
            assert!(late <= s(longest) && late > s(longest) - s(1), "{late:?}");
        }
        assert_eq!(pause(Next::Unsound, s(10), 0.5), s(10));
    }
}
