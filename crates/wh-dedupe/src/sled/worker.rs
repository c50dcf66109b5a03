//! The one thread that uses sled: takes the calls that wait, does them in their order, flushes once for all of them, and
//! answers. Nothing is answered that is not durable.

use super::state::State;
use crate::{Error, Kind, Result, Retention, Row, Ticket, Under, Verdict};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::{mpsc, oneshot, watch};

/// Calls that share one flush at most.
const GROUP: usize = 64;

type Outcomes = Vec<Result<()>>;

#[derive(Debug)]
pub(super) enum Job {
    Reserve(Vec<Row>, Under, oneshot::Sender<Result<Vec<Verdict>>>),
    Commit(Vec<Ticket>, Retention, oneshot::Sender<Outcomes>),
    Release(Vec<Ticket>, oneshot::Sender<Outcomes>),
    /// Forgets some of what is over; the answer: whether there is more.
    Sweep(oneshot::Sender<bool>),
}

/// What was done and is not told yet.
enum Done {
    Reserve(Result<Vec<Verdict>>, oneshot::Sender<Result<Vec<Verdict>>>),
    Resolve(Outcomes, oneshot::Sender<Outcomes>),
    Sweep(bool, oneshot::Sender<bool>),
}

/// What others may know of the state.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    pub(super) claims: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// Runs until no more calls can come, then gives the folder up.
pub(super) fn run(mut state: State, mut jobs: mpsc::Receiver<Job>, gauges: &Arc<Gauges>, ended: &watch::Sender<bool>) {
    while let Some(first) = jobs.blocking_recv() {
        let mut group = vec![act(&mut state, first)];
        while group.len() < GROUP
            && let Ok(next) = jobs.try_recv()
        {
            group.push(act(&mut state, next));
        }
        let flushed = state.flush().is_ok();
        gauges.claims.store(state.open_claims(), Ordering::Relaxed);
        if group.iter().any(|done| matches!(done, Done::Sweep(false, _))) {
            gauges.bytes.store(state.bytes(), Ordering::Relaxed);
        }
        group.into_iter().for_each(|done| tell(done, flushed));
    }
    drop(state);
    ended.send_replace(true);
}

fn act(state: &mut State, job: Job) -> Done {
    match job {
        Job::Reserve(rows, under, to) => Done::Reserve(state.reserve(&rows, &under), to),
        Job::Commit(held, retention, to) => Done::Resolve(state.commit(&held, retention), to),
        Job::Release(held, to) => Done::Resolve(state.release(&held), to),
        Job::Sweep(to) => {
            let more = state.sweep().inspect_err(|error| tracing::warn!(%error, "the dedupe store cannot be swept"));
            Done::Sweep(more.unwrap_or(false), to)
        }
    }
}

/// Whoever asked may be gone.
fn tell(done: Done, flushed: bool) {
    let unknown = |op| Error::new(op, Kind::Unknown);
    match done {
        Done::Reserve(verdicts, to) => {
            let verdicts = verdicts.and_then(|all| if flushed { Ok(all) } else { Err(unknown("reserve")) });
            drop(to.send(verdicts));
        }
        Done::Resolve(outcomes, to) => {
            let outcome = |one: Result<()>| one.and_then(|()| if flushed { Ok(()) } else { Err(unknown("resolve")) });
            drop(to.send(outcomes.into_iter().map(outcome).collect()));
        }
        Done::Sweep(more, to) => drop(to.send(more && flushed)),
    }
}
