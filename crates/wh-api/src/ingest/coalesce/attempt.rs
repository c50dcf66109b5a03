//! When a publish is tried again and when it is given up (decision D4). Pure: answers in, what to do out.
//!
//! The budget has one owner. A queue that tries again by itself has it: a call is waited out and is the only one. Where a
//! call is one attempt, the budget is here.

use super::{Failure, Outcome};
use std::time::Duration;
use wh_mq::{Broker, Receipt};
use wh_types::{Class, Mono, RowCursor};

/// The blocks of one publish call and what is known of each.
#[derive(Debug)]
pub(super) struct Attempts {
    deadline: Mono,
    failures: u32,
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Some attempt got no answer: it may be stored, whatever a later attempt says.
    unanswered: bool,
    last: Option<Failure>,
    outcome: Option<Outcome>,
}

/// What to do after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Publish those still open again, after this time.
    Again(Duration),
    /// Every block has its outcome.
    Done,
}

/// How long a queue that has the budget may outlast it before its call is given up.
const GRACE: Duration = Duration::from_secs(1);

/// The times of publishing to one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// Within which further calls may begin.
    pub(super) budget: Duration,
    /// Most time for one call.
    pub(super) call: Duration,
}

impl Times {
    pub(super) fn of(broker: &dyn Broker, publish_timeout: Duration) -> Self {
        match broker.publish_budget() {
            // enough for three attempts that get no answer
            Duration::ZERO => Self { budget: publish_timeout * 3 + Duration::from_millis(500), call: publish_timeout },
            own => Self { budget: Duration::ZERO, call: own + GRACE },
        }
    }

    /// Most time for a call that begins now, `spent` after the first one.
    pub(super) fn left(self, spent: Duration) -> Duration {
        if self.budget.is_zero() { self.call } else { self.call.min(self.budget.saturating_sub(spent)) }
    }
}

impl Attempts {
    pub(super) fn new(blocks: usize, deadline: Mono) -> Self {
        Self { deadline, failures: 0, slots: std::iter::repeat_with(Slot::default).take(blocks).collect() }
    }

    /// The blocks without an outcome.
    pub(super) fn open(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().enumerate().filter(|(_, slot)| slot.outcome.is_none()).map(|(at, _)| at)
    }

    /// What an attempt said of one block. `None`: nothing.
    ///
    /// `proves`: a `Duplicate` is of an attempt of ours. It may be somebody's probe where claims are about to be over.
    pub(super) fn note(&mut self, at: usize, answer: Option<wh_mq::Result<Receipt>>, proves: bool) {
        let slot = &mut self.slots[at];
        let failure = match answer {
            Some(Ok(Receipt::Duplicate(_))) if !proves => {
                slot.outcome = Some(Outcome::Unknown(Failure::unknown()));
                return;
            }
            Some(Ok(receipt)) => {
                slot.outcome = Some(Outcome::Stored(RowCursor { block: receipt.cursor(), row: 0 }));
                return;
            }
            Some(Err(error)) => Failure::of(&error),
            None => Failure::unknown(),
        };
        if failure.class == Class::Unknown {
            slot.unanswered = true;
        } else if slot.unanswered {
            // An earlier attempt may have stored it: no refusal undoes that. After this one no attempt brings an answer.
            if failure.class == Class::Stopping {
                slot.outcome = Some(Outcome::Unknown(Failure::unknown()));
            }
        } else if failure.class != Class::Unavailable {
            slot.outcome = Some(Outcome::Refused(failure.clone()));
        }
        slot.last = Some(failure);
    }

    /// Decides after an attempt; `delay` gives the wait after so many failures.
    pub(super) fn next(&mut self, now: Mono, delay: impl FnOnce(u32) -> Duration) -> Next {
        if self.open().next().is_none() {
            return Next::Done;
        }
        self.failures += 1;
        let delay = delay(self.failures);
        if now + delay < self.deadline {
            return Next::Again(delay);
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.outcome.is_none()) {
            slot.outcome = Some(match slot.last.take() {
                Some(failure) if !slot.unanswered => Outcome::Refused(failure),
                _ => Outcome::Unknown(Failure::unknown()),
            });
        }
        Next::Done
    }

    /// No attempt begins any more, and none did.
    pub(super) fn refuse(&mut self, failure: &Failure) {
        self.slots.iter_mut().for_each(|slot| slot.outcome = Some(Outcome::Refused(failure.clone())));
    }

    /// The outcomes, once done.
    pub(super) fn outcomes(self) -> impl Iterator<Item = Outcome> {
        self.slots.into_iter().map(|slot| slot.outcome.unwrap_or_else(|| Outcome::Unknown(Failure::unknown())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;
    use wh_mq::{Error, Kind};
    use wh_types::{Clock, Cursor, Epoch, SystemClock};

    const SECOND: Duration = Duration::from_secs(1);

    fn stored() -> Option<wh_mq::Result<Receipt>> {
        Some(Ok(Receipt::Stored(Cursor { epoch: Epoch(1), sequence: 1 })))
    }

    fn failed(kind: Kind) -> Option<wh_mq::Result<Receipt>> {
        Some(Err(Error::new("publish", kind)))
    }

    /// Runs attempts a second apart until done; gives the outcome's name and how many attempts there were.
    fn run(mut answers: impl FnMut(u32) -> Option<wh_mq::Result<Receipt>>) -> (String, u32) {
        let start = SystemClock.now();
        let mut attempts = Attempts::new(1, start + 5 * SECOND);
        let mut made = 0;
        loop {
            made += 1;
            attempts.note(0, answers(made), true);
            if attempts.next(start + SECOND * made, |_| SECOND) == Next::Done {
                let name = match attempts.outcomes().next().unwrap() {
                    Outcome::Stored(_) => "stored".to_owned(),
                    Outcome::Unknown(failure) => format!("unknown {}", failure.code.name),
                    Outcome::Refused(failure) => format!("refused {}", failure.code.name),
                    other @ (Outcome::Unchecked(_) | Outcome::Duplicate | Outcome::Replayed) => format!("{other:?}"),
                };
                return (name, made);
            }
        }
    }

    #[test]
    fn outcomes_are_resolved_within_the_budget_of_time() {
        let full = || failed(Kind::Full { what: "x".into(), retry_after: 30 * SECOND });
        let cases = [
            ("stored at once", run(|_| stored()), "stored", 1),
            (
                "stored at the third attempt",
                run(|n| if n < 3 { failed(Kind::Unavailable) } else { stored() }),
                "stored",
                3,
            ),
            ("never reached", run(|_| failed(Kind::Unavailable)), "refused queue.unavailable", 4),
            ("never answered", run(|_| None), "unknown queue.outcome_unknown", 4),
            (
                "once unanswered, then away",
                run(|n| failed(if n == 1 { Kind::Unknown } else { Kind::Unavailable })),
                "unknown queue.outcome_unknown",
                4,
            ),
            ("full", run(|_| full()), "refused queue.full", 1),
            ("unanswered, then full", run(|n| if n == 1 { None } else { full() }), "unknown queue.outcome_unknown", 4),
            (
                "unanswered, full, then a duplicate",
                run(|n| match n {
                    1 => None,
                    2 => full(),
                    _ => stored(),
                }),
                "stored",
                3,
            ),
            ("stopping", run(|_| failed(Kind::Stopping)), "refused queue.stopping", 1),
            (
                "unanswered, then stopping",
                run(|n| failed(if n == 1 { Kind::Unknown } else { Kind::Stopping })),
                "unknown queue.outcome_unknown",
                2,
            ),
            ("too large", run(|_| failed(Kind::BadBlock(Cow::Borrowed("x")))), "refused queue.bad_block", 1),
        ];
        for (case, (outcome, made), expected, attempts) in cases {
            assert_eq!((outcome.as_str(), made), (expected, attempts), "{case}");
        }
    }

    #[test]
    fn each_block_of_a_call_has_its_own_outcome() {
        let start = SystemClock.now();
        let mut attempts = Attempts::new(3, start + 5 * SECOND);
        attempts.note(0, stored(), true);
        attempts.note(1, failed(Kind::Unavailable), true);
        attempts.note(2, failed(Kind::NoSpace), true);
        assert_eq!(attempts.next(start, |_| SECOND), Next::Again(SECOND));
        assert_eq!(attempts.open().collect::<Vec<_>>(), [1]);
        attempts.note(1, stored(), true);
        assert_eq!(attempts.next(start, |_| SECOND), Next::Done);
        let outcomes: Vec<_> = attempts.outcomes().collect();
        assert!(matches!(outcomes[..], [Outcome::Stored(_), Outcome::Stored(_), Outcome::Refused(_)]), "{outcomes:?}");
    }

    #[test]
    fn a_duplicate_that_may_be_a_probe_proves_nothing() {
        let at = Cursor { epoch: Epoch(1), sequence: 1 };
        for (receipt, proves, stored) in [
            (Receipt::Duplicate(at), true, true),
            (Receipt::Duplicate(at), false, false),
            (Receipt::Stored(at), false, true),
        ] {
            let mut attempts = Attempts::new(1, SystemClock.now());
            attempts.note(0, Some(Ok(receipt)), proves);
            let outcome = attempts.outcomes().next().unwrap();
            assert_eq!(matches!(outcome, Outcome::Stored(_)), stored, "{receipt:?} {outcome:?}");
            assert_eq!(matches!(outcome, Outcome::Unknown(_)), !stored);
        }
    }
}
