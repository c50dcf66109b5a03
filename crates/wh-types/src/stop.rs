//! Stopping, and the group that tasks belong to.

use crate::Freezer;
use std::future::Future;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A signal that is given once and heard by all who hold a copy.
#[derive(Clone, Debug, Default)]
pub struct Stop(CancellationToken);

impl Stop {
    /// A signal nobody has given yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A signal that this one gives too, but that can be given alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Gives the signal. Again is a no-op.
    pub fn give(&self) {
        self.0.cancel();
    }

    /// Whether it was given.
    #[must_use]
    pub fn given(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Returns once the signal is given.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }
}

/// A group of tasks that is waited for as one. No task of ours runs outside of one.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    freezer: Option<Freezer>,
}

impl Tasks {
    /// An empty group.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty group whose tasks can be held and ended from outside, as the tasks of one process in a simulation.
    #[must_use]
    pub fn freezable() -> (Self, Freezer) {
        let freezer = Freezer::default();
        (Self { tracker: TaskTracker::new(), freezer: Some(freezer.clone()) }, freezer)
    }

    /// Starts a task under a name that its panic is reported with.
    #[expect(clippy::disallowed_methods, reason = "the one place where tasks are started")]
    pub fn spawn<F>(&self, name: &'static str, task: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let _ = name;
        match &self.freezer {
            None => tokio::spawn(self.tracker.track_future(task)),
            Some(freezer) => {
                let handle = tokio::spawn(self.tracker.track_future(freezer.hold(task)));
                freezer.started(handle.abort_handle());
                handle
            }
        }
    }

    /// Returns once every task of the group has ended. Tasks may still be started meanwhile and are waited for too.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// How many tasks run.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Whether none runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_group_waits_for_all_its_tasks() {
        let (tasks, stop) = (Tasks::new(), Stop::new());
        let child = stop.child();
        let heard = tasks.spawn("heard", async move { child.wait().await });
        assert_eq!(tasks.len(), 1);
        stop.give();
        tasks.wait().await;
        assert!(tasks.is_empty() && heard.is_finished());
    }

    #[test]
    fn a_child_stops_alone() {
        let stop = Stop::new();
        let child = stop.child();
        child.give();
        assert!(child.given() && !stop.given());
    }
}
