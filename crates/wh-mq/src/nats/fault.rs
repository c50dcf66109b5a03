//! What only a wrong topology explains, seen in passing: readiness must hear of it before the next check.

use tokio::sync::watch;

/// One such sight.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A message was stored by a stream that is not the one its subject belongs to.
    #[error("a message on {subject} was acked by the stream {by} instead of {stream}")]
    AckedElsewhere {
        /// Where it was published.
        subject: String,
        /// Whose subject it is.
        stream: String,
        /// Who took it.
        by: String,
    },
    /// The server refuses us a subject that we need.
    #[error("the server refuses us {subject}")]
    Refused {
        /// The subject.
        subject: String,
    },
    /// A stream or a durable is gone, or is not what it was.
    #[error("{object} is gone")]
    Gone {
        /// Which.
        object: String,
    },
    /// A durable refuses our pulls: its configuration changed.
    #[error("{object} refuses us: {reason}")]
    Drifted {
        /// Which.
        object: String,
        /// What it says.
        reason: String,
    },
}

/// Faults as they are seen; the last one can be watched.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    last: watch::Sender<Option<Fault>>,
    /// A stream that may be gone.
    suspect: watch::Sender<Option<String>>,
}

impl Faults {
    /// Notes one. The same again says nothing new.
    pub(crate) fn note(&self, fault: Fault) {
        let text = fault.to_string();
        let new = self.last.send_if_modified(|last| {
            let new = last.as_ref() != Some(&fault);
            if new {
                *last = Some(fault);
            }
            new
        });
        if new {
            tracing::error!("{text}: check the topology with `wavehouse mq verify`");
        }
    }

    /// A publish to this stream was not answered: it has no leader at the moment, or is gone. Whoever checks looks.
    pub(crate) fn suspect(&self, stream: &str) {
        self.suspect.send_replace(Some(stream.to_owned()));
    }

    /// Follows what is suspected.
    pub(crate) fn suspects(&self) -> watch::Receiver<Option<String>> {
        self.suspect.subscribe()
    }

    /// A check found the topology sound: the next fault is new again.
    pub fn clear(&self) {
        self.last.send_if_modified(|last| last.take().is_some());
    }

    /// The last one that no check has cleared.
    #[must_use]
    pub fn last(&self) -> Option<Fault> {
        self.last.borrow().clone()
    }

    /// Follows them.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Option<Fault>> {
        self.last.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_new_until_a_check_clears_it() {
        let faults = Faults::default();
        let mut watch = faults.watch();
        let fault = Fault::Refused { subject: "wh.x".into() };
        faults.note(fault.clone());
        assert_eq!(*watch.borrow_and_update(), Some(fault.clone()));
        faults.note(fault.clone());
        assert!(!watch.has_changed().unwrap(), "the same again");
        faults.clear();
        faults.note(fault);
        assert!(watch.has_changed().unwrap());
    }
}
