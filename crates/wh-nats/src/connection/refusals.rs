//! The record of subjects that the server refused. A refused request is not answered: the server only names the subject
//! on the side.

use parking_lot::Mutex;
use std::{collections::VecDeque, time::Duration};
use tokio::sync::watch;

/// How many are kept. Plain acks may be refused without bound.
const KEPT: usize = 1024;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Counted from 1 over the life of the connection.
    pub number: u64,
    /// Whether it was a subscription.
    pub subscription: bool,
    /// The subject as the server named it: under a JetStream domain this may be the plain form.
    pub subject: String,
}

/// Refused subjects, numbered.
#[derive(Debug)]
pub struct Refusals {
    kept: Mutex<VecDeque<Refusal>>,
    last: watch::Sender<u64>,
}

impl Refusals {
    pub(super) fn new() -> Self {
        Self { kept: Mutex::default(), last: watch::Sender::new(0) }
    }

    /// The number of the last one; 0 before the first.
    #[must_use]
    pub fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// The number of the last one, to be watched.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Those after `number`, oldest first; only the last 1,024 are kept.
    #[must_use]
    pub fn since(&self, number: u64) -> Vec<Refusal> {
        self.kept.lock().iter().filter(|refusal| refusal.number > number).cloned().collect()
    }

    /// Waits for a refusal of `subject` after `number`. False when the time has run out.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait(&self, subject: &str, number: u64, time: Duration) -> bool {
        let mut last = self.last.subscribe();
        let seen = async {
            while !self.since(number).iter().any(|refusal| same(&refusal.subject, subject)) {
                if last.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::time::timeout(time, seen).await.is_ok()
    }

    /// Notes one. Quick: it is called where events of the client are taken, and they wait in a short queue.
    pub(super) fn note(&self, subscription: bool, subject: &str) {
        let mut kept = self.kept.lock();
        let number = self.last() + 1;
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(Refusal { number, subscription, subject: subject.to_owned() });
        self.last.send_replace(number);
    }
}

/// Whether two subjects are the same, where one may carry a domain and the other the plain form.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one == other || plain(one).is_some_and(|one| plain(other) == Some(one))
}

/// What follows `$JS.API.`, or `$JS.<domain>.API.`.
fn plain(subject: &str) -> Option<&str> {
    let rest = subject.strip_prefix("$JS.")?;
    rest.strip_prefix("API.").or_else(|| rest.split_once('.')?.1.strip_prefix("API."))
}

/// Reads what the server says: whether a subscription was refused, and the subject.
pub(super) fn read(text: &str) -> Option<(bool, &str)> {
    const SAYS: &str = "permissions violation for ";
    let head = text.get(..SAYS.len())?;
    if !head.eq_ignore_ascii_case(SAYS) {
        return None;
    }
    let rest = &text[SAYS.len()..];
    let (what, quoted) = rest.split_once(" to ")?;
    let subject = quoted.trim_start_matches('"').split('"').next()?;
    match what {
        what if what.eq_ignore_ascii_case("publish") => Some((false, subject)),
        what if what.eq_ignore_ascii_case("subscription") => Some((true, subject)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read_in_both_forms() {
        let publish = r#"Permissions Violation for Publish to "$JS.API.INFO""#;
        assert_eq!(read(publish), Some((false, "$JS.API.INFO")));
        let subscription = r#"Permissions Violation for Subscription to "foo.>""#;
        assert_eq!(read(subscription), Some((true, "foo.>")));
        let queue = r#"Permissions Violation for Subscription to "foo" using queue "bar""#;
        assert_eq!(read(queue), Some((true, "foo")));
        assert_eq!(read("Maximum Connections Exceeded"), None);
        assert_eq!(read("é"), None);
    }

    #[test]
    fn a_domain_does_not_hide_a_refusal() {
        assert!(same("$JS.API.INFO", "$JS.hub.API.INFO"));
        assert!(same("wh.ingest.0", "wh.ingest.0"));
        assert!(!same("$JS.API.INFO", "$JS.hub.API.STREAM.NAMES"));
        assert!(!same("wh.a", "wh.b"));
    }

    #[tokio::test]
    async fn a_refusal_is_waited_for_by_subject_and_number() {
        let refusals = Refusals::new();
        refusals.note(false, "a");
        assert!(!refusals.wait("a", 1, Duration::from_millis(1)).await, "an older one does not count");
        assert!(refusals.wait("a", 0, Duration::from_secs(5)).await);
        let (seen, ()) = tokio::join!(refusals.wait("b", refusals.last(), Duration::from_secs(5)), async {
            refusals.note(false, "b");
        });
        assert!(seen);
        for _ in 0..2_000 {
            refusals.note(false, "c");
        }
        assert_eq!((refusals.since(0).len(), refusals.last()), (1024, 2_002));
    }
}
