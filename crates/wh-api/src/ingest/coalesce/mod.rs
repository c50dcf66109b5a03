//! Group commit: per table, rows gather while the publish before them is in flight (decision D3).
//!
//! One task a table, while it has rows; no timer. A request hands its rows over under one lock and waits for its own
//! blocks only. What is handed over is published whether or not anybody still waits for it.

mod attempt;
mod cut;
mod dedupe;
mod gather;
mod probe;
#[cfg(test)]
mod tests;

pub(crate) use dedupe::{Claims, Once};
pub(crate) use gather::{Fates, Fresh, Pending, Sender, Stamp};

use crate::{
    codes::{self, Code},
    dedupe::IdRule,
    metrics::{Meters, TableMeters},
};
use attempt::{Attempts, Next, Times};
use dedupe::{Keying, Limit};
use gather::{Gather, Open};
use parking_lot::Mutex;
use std::{fmt, pin::pin, sync::Arc, time::Duration};
use tokio::sync::{Notify, Semaphore};
use wh_mq::Broker;
use wh_types::{Backoff, Block, Class, Clock, Encoding, Entropy, Mono, RowCursor, Stop, Table, Tasks, Tenant};

const DELAYS: Backoff = Backoff::half_jitter(Duration::from_millis(100), Duration::from_secs(1));
/// Probes in flight; a block beyond them is given up at once and counted.
const MAX_PROBES: usize = 1_000;
/// A refusal of one table is logged at most so often.
const WARN_EVERY: Duration = Duration::from_secs(10);
/// Decoded bytes from which a block is worth a pause of its task after compressing.
const LARGE: usize = 64 << 10;

/// What became of a block's rows.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Durable, at this place; of several rows, the first one's.
    Stored(RowCursor),
    /// The same, but nobody looked whether it was stored before: the store of keys was away.
    Unchecked(RowCursor),
    /// A row with its id is durable, from before.
    Duplicate,
    /// It is durable itself, from an earlier request with the same `Idempotency-Key`.
    Replayed,
    /// Nobody can say.
    Unknown(Failure),
    /// Not stored.
    Refused(Failure),
}

impl Outcome {
    /// Its name in metrics.
    fn name(&self) -> &'static str {
        match self {
            Self::Stored(_) | Self::Unchecked(_) => "accepted",
            Self::Duplicate => "duplicate",
            Self::Replayed => "replayed",
            Self::Unknown(_) => "in_flight",
            Self::Refused(failure) if failure.rejects() => "rejected",
            Self::Refused(_) => "not_attempted",
        }
    }

    /// Where it stands, where that is known.
    pub(crate) fn place(&self) -> Option<RowCursor> {
        match self {
            Self::Stored(place) | Self::Unchecked(place) => Some(*place),
            Self::Duplicate | Self::Replayed | Self::Unknown(_) | Self::Refused(_) => None,
        }
    }

    /// The same of another row of the block.
    pub(super) fn at_row(mut self, number: u32) -> Self {
        if let Self::Stored(place) | Self::Unchecked(place) = &mut self {
            place.row = number;
        }
        self
    }

    /// Whether it is told as the same: of durable rows, in the same block.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Stored(one), Self::Stored(two)) | (Self::Unchecked(one), Self::Unchecked(two)) => {
                one.block == two.block
            }
            (Self::Duplicate, Self::Duplicate) | (Self::Replayed, Self::Replayed) => true,
            (Self::Unknown(one), Self::Unknown(two)) | (Self::Refused(one), Self::Refused(two)) => one.is(two),
            _ => false,
        }
    }
}

/// Why rows were not (known to be) stored.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) code: &'static Code,
    pub(crate) reason: Arc<str>,
}

impl Failure {
    fn of(error: &wh_mq::Error) -> Self {
        let code = Code::by_name(error.code()).unwrap_or(&codes::QUEUE_FAILED);
        Self { class: error.class(), code, reason: error.kind().to_string().into() }
    }

    fn is(&self, other: &Self) -> bool {
        (self.class, self.code) == (other.class, other.code) && self.reason == other.reason
    }

    /// The rows themselves are at fault: they fail again.
    pub(crate) fn rejects(&self) -> bool {
        self.class == Class::Invalid
    }

    pub(crate) fn unknown() -> Self {
        let reason = "whether the record was stored is not known";
        Self { class: Class::Unknown, code: &codes::QUEUE_UNKNOWN, reason: reason.into() }
    }
}

/// How blocks are published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishOptions {
    pub(crate) encoding: Encoding,
    pub(crate) publish_timeout: Duration,
    /// Bytes that may gather for one table.
    pub(crate) table_bytes: usize,
    /// How long a table's task waits for more rows before it ends.
    pub(crate) idle: Duration,
    /// How long an unanswered block is probed.
    pub(crate) probe_for: Duration,
}

/// What every coalescer of the process shares.
#[derive(Debug)]
pub(crate) struct Publishing {
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) tasks: Tasks,
    pub(crate) stop: Stop,
    /// This process's name in `Wh-Chain`.
    pub(crate) process: Arc<str>,
    pub(crate) options: PublishOptions,
    pub(crate) meters: Arc<Meters>,
    pub(crate) probes: Arc<Semaphore>,
    /// Where keys are kept, where that is anywhere.
    pub(crate) claims: Option<Arc<Claims>>,
}

impl Publishing {
    pub(crate) fn probes() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MAX_PROBES))
    }
}

/// The coalescer of one table.
pub(crate) struct Coalescer {
    tenant: Tenant,
    table: Table,
    keying: Keying,
    publishing: Arc<Publishing>,
    meters: TableMeters,
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    gather: Gather,
    /// A task exists.
    running: bool,
    /// The task waits to be woken.
    waiting: bool,
    /// Blocks of this process and table that are stored, or may be.
    chain: u64,
    /// When a refusal was last logged.
    warned: Option<Mono>,
    /// When records without an id were last logged.
    warned_of_ids: Option<Mono>,
}

/// More rows of this table gather than may be held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy;

impl Coalescer {
    /// `rule`: how the table's events are told apart.
    pub(crate) fn new(tenant: Tenant, table: Table, rule: Option<&IdRule>, publishing: Arc<Publishing>) -> Self {
        let meters = publishing.meters.table(&tenant, &table);
        let keying = Keying::new(&tenant, &table, rule);
        Self { tenant, table, keying, publishing, meters, state: Mutex::default(), wake: Notify::new() }
    }

    /// Whose rows it puts together.
    pub(crate) fn names(&self) -> (&Tenant, &Table) {
        (&self.tenant, &self.table)
    }

    pub(crate) fn meters(&self) -> &TableMeters {
        &self.meters
    }

    /// Hands rows over: from here on they are published whatever becomes of the caller.
    pub(crate) fn hand_over<'a>(
        self: &Arc<Self>,
        rows: impl Iterator<Item = Fresh<'a>>,
        from: &Sender<'_>,
    ) -> Result<Vec<Pending>, Busy> {
        let (pending, start, wake) = {
            let mut state = self.state.lock();
            if state.gather.bytes() > self.publishing.options.table_bytes {
                return Err(Busy);
            }
            let pending = state.gather.add(rows, from);
            let start = !std::mem::replace(&mut state.running, true);
            (pending, start, std::mem::take(&mut state.waiting))
        };
        if start {
            Arc::clone(self).start();
        } else if wake {
            self.wake.notify_one();
        }
        Ok(pending)
    }

    fn start(self: Arc<Self>) {
        let tasks = self.publishing.tasks.clone();
        drop(tasks.spawn("coalesce", self.run()));
    }

    async fn run(self: Arc<Self>) {
        let _revive = Revive(&self);
        let Publishing { clock, stop, options, .. } = &*self.publishing;
        let mut stopped = pin!(stop.wait());
        let mut idle = pin!(tokio::time::sleep(options.idle));
        let mut active = clock.now();
        loop {
            // Whoever is ready to add rows does so before the block is cut: this is what puts single events together.
            tokio::task::yield_now().await;
            let (taken, chain) = {
                let mut state = self.state.lock();
                let taken = state.gather.take();
                state.waiting = taken.is_empty();
                (taken, state.chain)
            };
            if !taken.is_empty() {
                let chain = self.publish(taken, chain).await;
                self.state.lock().chain = chain;
                active = clock.now();
                continue;
            }
            let leave = stop.given()
                || tokio::select! {
                    biased;
                    () = self.wake.notified() => false,
                    () = &mut stopped => true,
                    () = &mut idle => {
                        let over = clock.now().duration_since(active) >= options.idle;
                        if !over {
                            idle.as_mut().reset(active + options.idle);
                        }
                        over
                    }
                };
            if leave && self.leave() {
                return;
            }
        }
    }

    /// Ends the task unless rows came meanwhile.
    fn leave(&self) -> bool {
        let mut state = self.state.lock();
        state.waiting = false;
        state.running = !state.gather.is_empty();
        !state.running
    }

    /// Publishes blocks until each has its outcome, and tells it. Gives the chain's new end.
    async fn publish(&self, taken: Vec<Open>, chain: u64) -> u64 {
        let start = self.publishing.clock.now();
        let (cuts, limit) = self.cut(taken).await;
        let sealed = self.seal(cuts, chain).await;
        let attempts = self.resolve(&sealed.blocks, limit).await;
        self.meters.published(self.publishing.clock.now().duration_since(start));
        self.conclude(sealed, attempts.outcomes().collect(), limit, chain).await
    }

    /// Whether it is time to log such a thing again.
    fn may_warn(&self, last: impl FnOnce(&mut State) -> &mut Option<Mono>) -> bool {
        let now = self.publishing.clock.now();
        let mut state = self.state.lock();
        let last = last(&mut state);
        let may = last.is_none_or(|last| now.duration_since(last) >= WARN_EVERY);
        if may {
            *last = Some(now);
        }
        may
    }

    /// Records came without an id although they are told apart by one.
    pub(crate) fn without_id(&self, count: u64) {
        self.meters.without_id(count);
        if self.may_warn(|state| &mut state.warned_of_ids) {
            let table = &self.table;
            tracing::warn!(%table, count, "records of table {table} have no id: they cannot be told apart");
        }
    }

    /// Logs why rows were not stored, once in a while: a full queue refuses thousands of blocks a second.
    fn warn(&self, failure: &Failure) {
        if self.may_warn(|state| &mut state.warned) {
            let (table, why) = (&self.table, &failure.reason);
            tracing::warn!(%table, code = failure.code.name, "rows of table {table} were not stored: {why}");
        }
    }

    /// Publishes until every block has its outcome: again under the same ids, within the budget of time, where it is ours.
    async fn resolve(&self, blocks: &[Block], limit: Option<Limit>) -> Attempts {
        let Publishing { broker, clock, entropy, options, .. } = &*self.publishing;
        let times = Times::of(&**broker, options.publish_timeout);
        let start = clock.now();
        let deadline = limit.map_or(start + times.budget, |limit| limit.last_start.min(start + times.budget));
        let mut attempts = Attempts::new(blocks.len(), deadline);
        if limit.is_some_and(|limit| start > limit.last_start) {
            attempts.refuse(&dedupe::too_late());
        }
        if attempts.open().next().is_none() {
            return attempts;
        }
        let mut now = start;
        loop {
            let open: Vec<_> = attempts.open().collect();
            let again: Vec<_>;
            let blocks = if open.len() == blocks.len() {
                blocks
            } else {
                again = open.iter().map(|at| blocks[*at].clone()).collect();
                &again
            };
            let time = times.left(now.saturating_duration_since(start));
            let answers = tokio::time::timeout(time, broker.publish(blocks)).await;
            let mut answers = answers.unwrap_or_default().into_iter();
            let proves = limit.is_none_or(|limit| clock.now() < limit.proves_until);
            for at in open {
                attempts.note(at, answers.next(), proves);
            }
            match attempts.next(clock.now(), |failures| DELAYS.delay(failures, &**entropy)) {
                Next::Done => return attempts,
                Next::Again(delay) => tokio::time::sleep(delay).await,
            }
            now = clock.now();
        }
    }
}

/// A fault in one publish ends its task; the rows that gather then get another.
struct Revive<'a>(&'a Arc<Coalescer>);

impl Drop for Revive<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(table = %self.0.table, "publishing of table {} failed, starting again", self.0.table);
            let mut state = self.0.state.lock();
            state.waiting = false;
            state.running = !state.gather.is_empty();
            if state.running {
                Arc::clone(self.0).start();
            }
        }
    }
}

impl fmt::Debug for Coalescer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Coalescer({}.{})", self.tenant, self.table)
    }
}
