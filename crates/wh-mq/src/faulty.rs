//! A wrapper that makes any queue fail on purpose, after a script. Adds no behaviour of its own.

use crate::{
    AckToken, Allowance, Began, Broker, BrokerStatus, Budget, DeadLetter, DeadLetterId, DeadLetterPage,
    DeadLetterQuery, Delivery, Error, Feed, Floor, From, Happening, History, Kind, Marks, Progress, Reader, Receipt,
    Result, Settle, Unit, Verdict,
};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use wh_types::{Block, BlockId, Cursor, Epoch, Table, Tenant};

/// A method of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// [`Broker::publish`].
    Publish,
    /// [`Broker::stored_rows`].
    StoredRows,
    /// [`Broker::feed`].
    Feed,
    /// [`Broker::release_orphan`].
    ReleaseOrphan,
    /// [`Broker::unowned`].
    Unowned,
    /// [`Broker::history`].
    History,
    /// [`Broker::dead_letter`].
    Park,
    /// [`Broker::dead_letters`].
    DeadLetters,
    /// [`Broker::purge_dead_letters`].
    Purge,
    /// [`Broker::set_allowance`].
    SetAllowance,
    /// [`Broker::status`].
    Status,
    /// [`Feed::next`].
    FeedNext,
    /// [`Settle::settle`].
    Settle,
    /// [`Feed::halt`].
    Halt,
    /// [`Feed::release`].
    Release,
    /// [`History::next`].
    HistoryNext,
    /// [`Marks::announce`].
    Announce,
    /// [`Marks::hear`].
    Hear,
    /// [`Marks::floor`].
    Floor,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with this and nothing happens.
    Fail(Kind),
    /// It happens, but the answer is lost: the call fails with `Unknown`.
    LoseAnswer,
    /// It happens after this time.
    Delay(Duration),
    /// It happens twice; the answer is the first one's. Where a call cannot be repeated it happens once.
    Repeat,
}

/// What goes wrong, and when: each fault strikes one call of its method, in the order they were given.
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Mutex<HashMap<Op, VecDeque<Option<Fault>>>>>);

impl Script {
    /// Nothing goes wrong.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next call without a plan yet fails so.
    pub fn next(&self, op: Op, fault: Fault) {
        self.0.lock().entry(op).or_default().push_back(Some(fault));
    }

    /// So many calls go well before the next fault.
    pub fn spare(&self, op: Op, calls: usize) {
        self.0.lock().entry(op).or_default().extend(std::iter::repeat_n(None, calls));
    }

    /// Whether every fault has struck.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.lock().values().all(VecDeque::is_empty)
    }

    fn draw(&self, op: Op) -> Option<Fault> {
        self.0.lock().get_mut(&op)?.pop_front()?
    }

    /// The fault of this call. Waits out a delay.
    async fn strike(&self, op: Op) -> Option<Fault> {
        let fault = self.draw(op);
        if let Some(Fault::Delay(delay)) = fault {
            tokio::time::sleep(delay).await;
            return None;
        }
        fault
    }
}

/// Gives the call's outcome under its fault. `$again` is the call.
macro_rules! one {
    ($self:expr, $op:expr, $name:literal, $again:expr) => {
        match $self.script.strike($op).await {
            Some(Fault::Fail(kind)) => Err(Error::new($name, kind)),
            Some(Fault::LoseAnswer) => $again.and_then(|_| Err(Error::new($name, Kind::Unknown))),
            Some(Fault::Repeat) => {
                let first = $again;
                drop($again);
                first
            }
            Some(Fault::Delay(_)) | None => $again,
        }
    };
}

/// The same for calls with an outcome for each item.
macro_rules! many {
    ($self:expr, $op:expr, $name:literal, $items:expr, $again:expr) => {
        match $self.script.strike($op).await {
            Some(Fault::Fail(kind)) => $items.iter().map(|_| Err(Error::new($name, kind.clone()))).collect(),
            Some(Fault::LoseAnswer) => {
                drop($again);
                $items.iter().map(|_| Err(Error::new($name, Kind::Unknown))).collect()
            }
            Some(Fault::Repeat) => {
                let first = $again;
                drop($again);
                first
            }
            Some(Fault::Delay(_)) | None => $again,
        }
    };
}

/// A queue that fails after a script.
#[derive(Debug)]
pub struct Faulty<B: ?Sized> {
    script: Script,
    publish_budget: Option<Duration>,
    inner: Arc<B>,
}

impl<B: ?Sized> Faulty<B> {
    /// Wraps a queue.
    pub fn new(inner: Arc<B>, script: Script) -> Self {
        Self { script, publish_budget: None, inner }
    }

    /// Says that it tries publishes again by itself for so long. What it does is in its script.
    #[must_use]
    pub fn with_publish_budget(mut self, budget: Duration) -> Self {
        self.publish_budget = Some(budget);
        self
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<B: Broker + ?Sized> Broker for Faulty<B> {
    async fn publish(&self, blocks: &[Block]) -> Vec<Result<Receipt>> {
        many!(self, Op::Publish, "publish", blocks, self.inner.publish(blocks).await)
    }

    fn publish_budget(&self) -> Duration {
        self.publish_budget.unwrap_or_else(|| self.inner.publish_budget())
    }

    async fn stored_rows(&self, tenant: &Tenant, table: &Table, id: BlockId, at: Cursor) -> Result<Option<u32>> {
        one!(self, Op::StoredRows, "stored rows", self.inner.stored_rows(tenant, table, id, at).await)
    }

    fn units(&self) -> Vec<Unit> {
        self.inner.units()
    }

    async fn extra_units(&self) -> Result<BTreeSet<Unit>> {
        self.inner.extra_units().await
    }

    fn unit_of(&self, tenant: &Tenant, table: &Table) -> Unit {
        self.inner.unit_of(tenant, table)
    }

    fn epoch_of(&self, tenant: &Tenant, table: &Table) -> Option<Epoch> {
        self.inner.epoch_of(tenant, table)
    }

    async fn feed(&self, unit: Unit, budget: Budget) -> Result<Box<dyn Feed>> {
        // an answer that is lost drops the feed: the unit is an orphan then
        match self.script.strike(Op::Feed).await {
            Some(Fault::Fail(kind)) => return Err(Error::new("feed", kind)),
            Some(Fault::LoseAnswer) => {
                drop(self.inner.feed(unit, budget).await?);
                return Err(Error::new("feed", Kind::Unknown));
            }
            Some(Fault::Repeat | Fault::Delay(_)) | None => {}
        }
        let inner = self.inner.feed(unit, budget).await?;
        Ok(Box::new(FaultyFeed { inner, script: self.script.clone() }))
    }

    async fn release_orphan(&self, unit: Unit) -> Result<()> {
        one!(self, Op::ReleaseOrphan, "release orphan", self.inner.release_orphan(unit).await)
    }

    async fn unowned(&self) -> Result<BTreeSet<Unit>> {
        one!(self, Op::Unowned, "unowned", self.inner.unowned().await)
    }

    fn marks(&self) -> Arc<dyn Marks> {
        Arc::new(FaultyMarks { inner: self.inner.marks(), script: self.script.clone() })
    }

    async fn history(&self, tenant: &Tenant, table: &Table, from: From) -> Result<Box<dyn History>> {
        let inner = one!(self, Op::History, "history", self.inner.history(tenant, table, from).await)?;
        Ok(Box::new(FaultyHistory { inner, script: self.script.clone() }))
    }

    async fn dead_letter(&self, letters: &[DeadLetter]) -> Vec<Result<()>> {
        many!(self, Op::Park, "park", letters, self.inner.dead_letter(letters).await)
    }

    async fn dead_letters(&self, tenant: &Tenant, query: &DeadLetterQuery) -> Result<DeadLetterPage> {
        one!(self, Op::DeadLetters, "dead letters", self.inner.dead_letters(tenant, query).await)
    }

    async fn purge_dead_letters(&self, tenant: &Tenant, ids: &[DeadLetterId]) -> Result<usize> {
        one!(self, Op::Purge, "purge dead letters", self.inner.purge_dead_letters(tenant, ids).await)
    }

    async fn set_allowance(&self, tenant: &Tenant, allowance: Allowance) -> Result<()> {
        one!(self, Op::SetAllowance, "set allowance", self.inner.set_allowance(tenant, allowance).await)
    }

    async fn status(&self) -> Result<BrokerStatus> {
        one!(self, Op::Status, "status", self.inner.status().await)
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

#[derive(Debug)]
struct FaultyFeed {
    inner: Box<dyn Feed>,
    script: Script,
}

#[derive(Debug)]
struct FaultySettle {
    inner: Arc<dyn Settle>,
    script: Script,
}

#[derive(Debug)]
struct FaultyHistory {
    inner: Box<dyn History>,
    script: Script,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Feed for FaultyFeed {
    fn unit(&self) -> Unit {
        self.inner.unit()
    }

    fn began(&self) -> Began {
        self.inner.began()
    }

    async fn next(&mut self) -> Result<Option<Delivery>> {
        // a delivery that is lost on its way comes back after ack_wait
        match self.script.strike(Op::FeedNext).await {
            Some(Fault::Fail(kind)) => return Err(Error::new("next", kind)),
            Some(Fault::LoseAnswer) => drop(self.inner.next().await?),
            Some(Fault::Repeat | Fault::Delay(_)) | None => {}
        }
        self.inner.next().await
    }

    fn settle(&self) -> Arc<dyn Settle> {
        Arc::new(FaultySettle { inner: self.inner.settle(), script: self.script.clone() })
    }

    fn set_budget(&mut self, budget: Budget) {
        self.inner.set_budget(budget);
    }

    fn max_unsettled(&self) -> Option<usize> {
        self.inner.max_unsettled()
    }

    async fn halt(&mut self) -> Result<()> {
        one!(self, Op::Halt, "halt", self.inner.halt().await)
    }

    async fn release(self: Box<Self>) -> Result<()> {
        match self.script.strike(Op::Release).await {
            Some(Fault::Fail(kind)) => Err(Error::new("release", kind)),
            Some(Fault::LoseAnswer) => {
                self.inner.release().await.and_then(|()| Err(Error::new("release", Kind::Unavailable)))
            }
            Some(Fault::Repeat | Fault::Delay(_)) | None => self.inner.release().await,
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Settle for FaultySettle {
    async fn settle(&self, tokens: &[AckToken], verdict: Verdict) -> Vec<Result<()>> {
        many!(self, Op::Settle, "settle", tokens, self.inner.settle(tokens, verdict).await)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl History for FaultyHistory {
    fn seam(&self) -> Option<Cursor> {
        self.inner.seam()
    }

    async fn next(&mut self) -> Result<Option<Happening>> {
        match self.script.strike(Op::HistoryNext).await {
            Some(Fault::Fail(kind)) => Err(Error::new("next", kind)),
            Some(Fault::LoseAnswer | Fault::Repeat | Fault::Delay(_)) | None => self.inner.next().await,
        }
    }
}

#[derive(Debug)]
struct FaultyMarks {
    inner: Arc<dyn Marks>,
    script: Script,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Marks for FaultyMarks {
    async fn announce(&self, marks: &[Progress]) -> Result<()> {
        one!(self, Op::Announce, "announce progress", self.inner.announce(marks).await)
    }

    fn watch(&self, tenant: &Tenant, table: &Table) -> Result<Reader> {
        self.inner.watch(tenant, table)
    }

    async fn hear(&self) -> Result<()> {
        one!(self, Op::Hear, "hear progress", self.inner.hear().await)
    }

    async fn floor(&self, tenant: &Tenant, table: &Table) -> Result<Floor> {
        one!(self, Op::Floor, "progress floor", self.inner.floor(tenant, table).await)
    }
}
