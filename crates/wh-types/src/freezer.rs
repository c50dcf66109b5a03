//! Holds and ends a group's tasks from outside: a simulated process that is stopped, goes on, or is killed.

use parking_lot::Mutex;
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Poll, Waker},
};
use tokio::task::AbortHandle;

/// The means to hold a group of tasks. See [`crate::Tasks::freezable`].
#[derive(Clone, Debug, Default)]
pub struct Freezer(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    frozen: bool,
    killed: bool,
    /// Of tasks that were due while they were held.
    due: Vec<Waker>,
    running: Vec<AbortHandle>,
}

impl Freezer {
    /// From now on no task of the group does anything. Time goes on, and so does what runs outside of the group.
    pub fn freeze(&self) {
        self.0.lock().frozen = true;
    }

    /// The tasks go on where they were.
    pub fn thaw(&self) {
        let due = {
            let mut state = self.0.lock();
            state.frozen = false;
            std::mem::take(&mut state.due)
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// Ends every task where it is, and every one that is still started.
    pub fn kill(&self) {
        let running = {
            let mut state = self.0.lock();
            state.killed = true;
            std::mem::take(&mut state.running)
        };
        running.iter().for_each(AbortHandle::abort);
    }

    pub(crate) fn started(&self, task: AbortHandle) {
        let mut state = self.0.lock();
        if state.killed {
            task.abort();
            return;
        }
        state.running.retain(|task| !task.is_finished());
        state.running.push(task);
    }

    pub(crate) fn hold<F: Future>(&self, task: F) -> impl Future<Output = F::Output> + use<F> {
        let state = Arc::clone(&self.0);
        async move {
            let mut task = pin!(task);
            poll_fn(|cx| {
                let mut held = state.lock();
                if held.frozen || held.killed {
                    held.due.push(cx.waker().clone());
                    return Poll::Pending;
                }
                drop(held);
                task.as_mut().poll(cx)
            })
            .await
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Clock, SystemClock, Tasks};
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_frozen_task_does_nothing_and_goes_on_afterwards() {
        let (tasks, freezer) = Tasks::freezable();
        let began = SystemClock.now();
        let task = tasks.spawn("sleeper", async move {
            tokio::time::sleep(SECOND).await;
            SystemClock.now() - began
        });
        tokio::task::yield_now().await;
        freezer.freeze();
        tokio::time::sleep(5 * SECOND).await;
        assert!(!task.is_finished());
        freezer.thaw();
        assert_eq!(task.await.unwrap(), 5 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_killed_group_ends_and_starts_nothing_more() {
        let (tasks, freezer) = Tasks::freezable();
        let first = tasks.spawn("first", std::future::pending::<()>());
        tokio::task::yield_now().await;
        freezer.kill();
        let second = tasks.spawn("second", async {});
        assert!(first.await.unwrap_err().is_cancelled() && second.await.unwrap_err().is_cancelled());
        tasks.wait().await;
    }
}
