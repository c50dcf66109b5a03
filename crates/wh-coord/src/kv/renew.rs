//! The task that renews one term until it ends: by time, by a note's turn, and never later than its deadline.

use super::{
    Shared, Store,
    held::{Done, Own},
    value::Value,
};
use crate::{End, Kind};
use std::{sync::Arc, time::Duration};
use tracing::{debug, warn};
use wh_types::{Mono, Stop};

/// What a write did to the term.
enum Step {
    /// It is stored; the term lives from when the write was sent.
    Renewed,
    /// The store holds another revision of ours: write again at once.
    Again,
    /// It did not work; the term lives on for now.
    Later,
    /// Another has it.
    Lost,
}

struct Renewal<S: Store> {
    shared: Arc<Shared<S>>,
    own: Arc<Own>,
    value: Value,
    revision: u64,
    /// The version of the note in `value`.
    version: u64,
    deadline: Mono,
}

/// Starts it. `whole`: the store has this value; else it is written at once.
pub(super) fn spawn<S: Store>(shared: &Arc<Shared<S>>, own: Arc<Own>, value: Value, dropped: Stop, whole: bool) {
    let deadline = own.term.until().unwrap_or_else(|| shared.now());
    let renewal = Renewal { shared: Arc::clone(shared), revision: own.fence, version: 0, own, value, deadline };
    shared.options.tasks.spawn("coord/renew", renewal.run(dropped, whole));
}

impl<S: Store> Renewal<S> {
    async fn run(mut self, dropped: Stop, whole: bool) {
        let (mut wishes, period) = (self.own.wish.subscribe(), self.shared.options.period());
        let mut next = self.shared.now() + if whole { period } else { Duration::ZERO };
        let end = loop {
            let wish = wishes.borrow_and_update().clone();
            if let Some(end) = wish.leave {
                break end;
            }
            if wish.version > self.version {
                if let Some(note) = wish.note {
                    self.value.note = note;
                }
                self.version = wish.version;
                next = self.shared.now();
            }
            if next > self.shared.now() {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(self.deadline) => break End::Lost,
                    () = dropped.wait() => break End::Lost,
                    _ = wishes.changed() => {}
                    () = tokio::time::sleep_until(next) => {}
                }
                continue;
            }
            let deadline = self.deadline;
            let step = tokio::select! {
                biased;
                // also while a request is under way; what it still does changes nothing for us
                () = tokio::time::sleep_until(deadline) => Step::Lost,
                () = dropped.wait() => Step::Lost,
                step = self.write() => step,
            };
            match step {
                Step::Lost => break self.own.wish.borrow().leave.unwrap_or(End::Lost),
                Step::Renewed => next = self.shared.now() + period,
                Step::Again => next = self.shared.now(),
                Step::Later => next = self.shared.now() + period / 4,
            }
        };
        self.end(end).await;
    }

    /// Writes the value at the last revision, once.
    async fn write(&mut self) -> Step {
        let (sent, key) = (self.shared.now(), &self.own.key);
        let error = match self.shared.write("renew", key, &self.value, Some(self.revision)).await {
            Ok(revision) => {
                self.revision = revision;
                if self.shared.now() >= self.deadline {
                    return Step::Lost;
                }
                self.deadline = sent + self.shared.options.deadline();
                self.own.keeper.extend(self.deadline);
                let news = self.own.done.send_if_modified(|done| {
                    let news = *done != Done::Stored(self.version);
                    *done = Done::Stored(self.version);
                    news
                });
                if news {
                    self.shared.changed();
                }
                return Step::Renewed;
            }
            Err(error) => error,
        };
        if *error.kind() != Kind::Conflict {
            debug!(key = %key, %error, "renewing {key} failed, trying again");
            return Step::Later;
        }
        // a write of ours whose answer was lost, or another's
        match self.shared.read("renew", key).await {
            Ok(Some(entry)) => {
                let stored = Value::read(&entry.value, self.shared.options.duration);
                if stored.session != self.value.session {
                    return Step::Lost;
                }
                // a copy that lags behind may show what we know already
                let newer = entry.revision > self.revision;
                self.revision = self.revision.max(entry.revision);
                if newer { Step::Again } else { Step::Later }
            }
            Ok(None) => Step::Lost,
            Err(error) => {
                debug!(key = %key, %error, "reading {key} back failed, trying again");
                Step::Later
            }
        }
    }

    /// The term is over: says so first, then frees the key where it was resigned.
    async fn end(self, end: End) {
        let Self { shared, own, mut revision, value, .. } = self;
        let key = &own.key;
        own.keeper.end(end);
        let mut removed = true;
        if end == End::Resigned {
            removed = false;
            // the second try is at the revision of a write whose answer was lost
            for _ in 0..2 {
                match shared.delete("resign", key, revision).await {
                    Ok(()) => removed = true,
                    Err(error) if matches!(error.kind(), Kind::Conflict | Kind::Unknown) => {
                        match shared.read("resign", key).await {
                            Ok(Some(entry))
                                if Value::read(&entry.value, shared.options.duration).session == value.session =>
                            {
                                revision = revision.max(entry.revision);
                                continue;
                            }
                            Ok(_) => removed = true,
                            Err(error) => debug!(key = %key, %error, "resigning {key} failed; it lapses"),
                        }
                    }
                    Err(error) => debug!(key = %key, %error, "resigning {key} failed; it lapses"),
                }
                break;
            }
        } else {
            warn!(key = %key, "the lease {key} is lost");
        }
        shared.held.forget(&own);
        own.done.send_replace(Done::Over { removed });
        shared.changed();
    }
}
