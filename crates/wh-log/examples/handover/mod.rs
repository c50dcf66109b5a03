//! The hand-over's own limit on this machine: as many tasks as there are writers, a thread that tells all of them once a
//! round, and nothing in place of the disk.

use parking_lot::{Condvar, Mutex};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};
use wh_types::{Clock, SystemClock, Tasks};

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waker>,
    round: u64,
    /// Writers that have not ended.
    writers: usize,
}

impl State {
    /// Whether all are there: the largest group there can be, and one wake of the thread for it.
    fn full(&self) -> bool {
        self.waiting.len() >= self.writers
    }
}

#[derive(Debug, Default)]
struct Desk {
    state: Mutex<State>,
    full: Condvar,
}

/// One append: waits for the end of the round that it came in.
struct Pass<'a> {
    desk: &'a Desk,
    round: Option<u64>,
}

impl Future for Pass<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.desk.state.lock();
        if self.round.is_some_and(|round| round != state.round) {
            return Poll::Ready(());
        }
        if self.round.is_none() {
            self.round = Some(state.round);
            state.waiting.push(cx.waker().clone());
            if state.full() {
                drop(state);
                self.desk.full.notify_one();
            }
        }
        Poll::Pending
    }
}

impl Desk {
    fn tell(&self) {
        let mut state = self.state.lock();
        while state.writers > 0 {
            if state.waiting.is_empty() || !state.full() {
                self.full.wait(&mut state);
                continue;
            }
            state.round += 1;
            let told = std::mem::take(&mut state.waiting);
            parking_lot::MutexGuard::unlocked(&mut state, || told.into_iter().for_each(Waker::wake));
        }
    }

    fn leave(&self) {
        self.state.lock().writers -= 1;
        self.full.notify_one();
    }
}

/// Passes a second, from so many tasks for so long.
pub(crate) async fn rate(writers: usize, time: Duration) -> f64 {
    let (clock, tasks) = (SystemClock, Tasks::new());
    let desk = Arc::new(Desk::default());
    desk.state.lock().writers = writers;
    let thread = std::thread::spawn({
        let desk = Arc::clone(&desk);
        move || desk.tell()
    });
    let begin = clock.now();
    let mut running = Vec::new();
    for _ in 0..writers {
        let desk = Arc::clone(&desk);
        running.push(tasks.spawn("pass", async move {
            let mut passes = 0_u64;
            while clock.now() - begin < time {
                Pass { desk: &desk, round: None }.await;
                passes += 1;
            }
            desk.leave();
            passes
        }));
    }
    let mut passes = 0;
    for writer in running {
        passes += writer.await.unwrap_or_default();
    }
    drop(thread.join());
    passes as f64 / (clock.now() - begin).as_secs_f64()
}
