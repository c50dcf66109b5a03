//! One process's way to the queue. It can be cut; and the queue takes a unit back from whoever was silent for too long,
//! as a pin lapses.

use crate::truth::Truth;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use wh_mq::{
    AckToken, Allowance, Began, Broker, BrokerStatus, Budget, DeadLetter, DeadLetterId, DeadLetterPage,
    DeadLetterQuery, Delivery, Error, Feed, Floor, From, History, Kind, Marks, Progress, Reader, Receipt, Result,
    Settle, Unit, Verdict, sim,
};
use wh_types::{Block, BlockId, Clock, Cursor, Epoch, Mono, Table, Tasks, Tenant};

/// A unit whose owner was silent for so long is anybody's.
const SILENCE: Duration = Duration::from_secs(10);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long it takes to see that nobody answers.
const NO_ANSWER: Duration = Duration::from_secs(2);

/// Whether a process can be heard.
#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<LineState>);

#[derive(Debug)]
struct LineState {
    cut: AtomicBool,
    /// Since when nothing is heard of it: its line is cut, it is frozen, or it is dead.
    silent: Mutex<Option<Mono>>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self(Arc::new(LineState { cut: AtomicBool::new(false), silent: Mutex::default() }))
    }

    /// Cuts it or heals it.
    pub(crate) fn cut(&self, cut: bool, now: Mono) {
        self.0.cut.store(cut, Ordering::Relaxed);
        self.silent(cut, now);
    }

    /// The process says nothing any more, or does again.
    pub(crate) fn silent(&self, silent: bool, now: Mono) {
        *self.0.silent.lock() = silent.then_some(now);
    }

    fn is_cut(&self) -> bool {
        self.0.cut.load(Ordering::Relaxed)
    }

    fn lapsed(&self, now: Mono) -> bool {
        self.0.silent.lock().is_some_and(|since| now.saturating_duration_since(since) >= SILENCE)
    }

    /// Waits while it is cut. Looks now and then: whom a watch wakes first is left to chance that no seed decides.
    async fn heals(&self) {
        while self.is_cut() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Fails after a while when it is cut.
    async fn reaches(&self, op: &'static str) -> Result<()> {
        if self.is_cut() {
            tokio::time::sleep(NO_ANSWER).await;
            return Err(Error::new(op, Kind::Unavailable));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(())
    }
}

/// The queue as one process has it.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) process: u64,
    pub(crate) queue: sim::Broker,
    pub(crate) line: Line,
    pub(crate) truth: Truth,
    /// The queue's own tasks: they go on when the process stops.
    pub(crate) tasks: Tasks,
}

enum Ask {
    Halt(oneshot::Sender<()>),
    Budget(Budget),
    Release(oneshot::Sender<()>),
}

/// The queue's side of a feed.
struct Pump {
    wire: Wire,
    unit: Unit,
    feed: Box<dyn Feed>,
    asks: mpsc::UnboundedReceiver<Ask>,
    deliveries: Option<mpsc::UnboundedSender<Delivery>>,
}

impl Pump {
    async fn run(mut self) {
        let (process, truth) = (self.wire.process, self.wire.truth.clone());
        truth.holds(self.unit, process);
        let mut gone = None;
        loop {
            let now = truth.clock.now();
            let lapsed = gone.is_some_and(|since: Mono| now.saturating_duration_since(since) >= SILENCE);
            if lapsed || self.wire.line.lapsed(now) {
                truth.orphaned(self.unit, process);
                return;
            }
            tokio::select! {
                biased;
                ask = self.asks.recv(), if gone.is_none() => match ask {
                    None => gone = Some(now),
                    Some(Ask::Budget(budget)) => self.feed.set_budget(budget),
                    Some(Ask::Halt(done)) => {
                        self.halt().await;
                        let _listener = done.send(());
                    }
                    Some(Ask::Release(done)) => {
                        truth.frees(self.unit, process, "releases");
                        if let Err(error) = self.feed.release().await {
                            truth.wrong(format!("releasing {} failed: {error}", self.unit));
                        }
                        let _listener = done.send(());
                        return;
                    }
                },
                next = self.feed.next(), if self.deliveries.is_some() => match next {
                    Ok(Some(delivery)) => self.deliver(delivery),
                    Ok(None) | Err(_) => self.deliveries = None,
                },
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn deliver(&self, delivery: Delivery) {
        if let Some(deliveries) = &self.deliveries {
            // a dead process takes nothing
            let _taken = deliveries.send(delivery);
        }
    }

    async fn halt(&mut self) {
        if self.feed.halt().await.is_ok() {
            while let Ok(Some(delivery)) = self.feed.next().await {
                self.deliver(delivery);
            }
        }
        self.deliveries = None;
    }
}

/// The process's side of a feed.
#[derive(Debug)]
struct WireFeed {
    line: Line,
    unit: Unit,
    began: Began,
    settle: Arc<dyn Settle>,
    asks: mpsc::UnboundedSender<Ask>,
    deliveries: mpsc::UnboundedReceiver<Delivery>,
    halted: bool,
}

#[async_trait]
impl Feed for WireFeed {
    fn unit(&self) -> Unit {
        self.unit
    }

    fn began(&self) -> Began {
        self.began
    }

    async fn next(&mut self) -> Result<Option<Delivery>> {
        self.line.heals().await;
        match self.deliveries.recv().await {
            Some(delivery) => Ok(Some(delivery)),
            None if self.halted => Ok(None),
            // the unit is another's now; its owner before is not told
            None => future::pending().await,
        }
    }

    fn settle(&self) -> Arc<dyn Settle> {
        Arc::new(WireSettle { line: self.line.clone(), inner: self.settle.clone() })
    }

    fn set_budget(&mut self, budget: Budget) {
        // nobody listens once it is another's
        let _listener = self.asks.send(Ask::Budget(budget));
    }

    async fn halt(&mut self) -> Result<()> {
        self.line.reaches("halt").await?;
        let (done, halted) = oneshot::channel();
        drop(self.asks.send(Ask::Halt(done)));
        self.halted = true;
        // it may be another's already: then nothing comes, either
        let _lapsed = halted.await;
        Ok(())
    }

    async fn release(self: Box<Self>) -> Result<()> {
        self.line.reaches("release").await?;
        let (done, released) = oneshot::channel();
        drop(self.asks.send(Ask::Release(done)));
        released.await.map_err(|_| Error::new("release", Kind::Fenced))
    }
}

#[derive(Debug)]
struct WireSettle {
    line: Line,
    inner: Arc<dyn Settle>,
}

#[async_trait]
impl Settle for WireSettle {
    async fn settle(&self, tokens: &[AckToken], verdict: Verdict) -> Vec<Result<()>> {
        if self.line.reaches("settle").await.is_err() {
            return tokens.iter().map(|_| Err(Error::new("settle", Kind::Unavailable))).collect();
        }
        self.inner.settle(tokens, verdict).await
    }
}

#[derive(Debug)]
struct WireMarks {
    line: Line,
    inner: Arc<dyn Marks>,
}

#[async_trait]
impl Marks for WireMarks {
    async fn announce(&self, marks: &[Progress]) -> Result<()> {
        self.line.reaches("announce progress").await?;
        self.inner.announce(marks).await
    }

    fn watch(&self, tenant: &Tenant, table: &Table) -> Result<Reader> {
        self.inner.watch(tenant, table)
    }

    async fn hear(&self) -> Result<()> {
        self.line.reaches("hear progress").await?;
        self.inner.hear().await
    }

    async fn floor(&self, tenant: &Tenant, table: &Table) -> Result<Floor> {
        self.line.reaches("progress floor").await?;
        self.inner.floor(tenant, table).await
    }
}

#[async_trait]
impl Broker for Wire {
    async fn publish(&self, blocks: &[Block]) -> Vec<Result<Receipt>> {
        self.queue.publish(blocks).await
    }

    async fn stored_rows(&self, tenant: &Tenant, table: &Table, id: BlockId, at: Cursor) -> Result<Option<u32>> {
        self.queue.stored_rows(tenant, table, id, at).await
    }

    fn units(&self) -> Vec<Unit> {
        self.queue.units()
    }

    async fn extra_units(&self) -> Result<BTreeSet<Unit>> {
        self.line.reaches("extra units").await?;
        self.queue.extra_units().await
    }

    fn unit_of(&self, tenant: &Tenant, table: &Table) -> Unit {
        self.queue.unit_of(tenant, table)
    }

    fn epoch_of(&self, tenant: &Tenant, table: &Table) -> Option<Epoch> {
        self.queue.epoch_of(tenant, table)
    }

    async fn feed(&self, unit: Unit, budget: Budget) -> Result<Box<dyn Feed>> {
        self.line.reaches("feed").await?;
        let feed = self.queue.feed(unit, budget).await?;
        let ((asks, asked), (deliveries, delivered)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let (settle, began) = (feed.settle(), feed.began());
        let pump = Pump { wire: self.clone(), unit, feed, asks: asked, deliveries: Some(deliveries) };
        drop(self.tasks.spawn("queue/feed", pump.run()));
        Ok(Box::new(WireFeed {
            line: self.line.clone(),
            unit,
            began,
            settle,
            asks,
            deliveries: delivered,
            halted: false,
        }))
    }

    async fn release_orphan(&self, unit: Unit) -> Result<()> {
        self.line.reaches("release orphan").await?;
        let released = self.queue.release_orphan(unit).await;
        self.truth.note(format!("process {} resets {unit}: {:?}", self.process, released.as_ref().err()));
        if released.is_ok() {
            self.truth.reset(unit);
        }
        released
    }

    async fn unowned(&self) -> Result<BTreeSet<Unit>> {
        self.line.reaches("unowned").await?;
        self.queue.unowned().await
    }

    fn marks(&self) -> Arc<dyn Marks> {
        Arc::new(WireMarks { line: self.line.clone(), inner: self.queue.marks() })
    }

    async fn history(&self, tenant: &Tenant, table: &Table, from: From) -> Result<Box<dyn History>> {
        self.queue.history(tenant, table, from).await
    }

    async fn dead_letter(&self, letters: &[DeadLetter]) -> Vec<Result<()>> {
        self.queue.dead_letter(letters).await
    }

    async fn dead_letters(&self, tenant: &Tenant, query: &DeadLetterQuery) -> Result<DeadLetterPage> {
        self.queue.dead_letters(tenant, query).await
    }

    async fn purge_dead_letters(&self, tenant: &Tenant, ids: &[DeadLetterId]) -> Result<usize> {
        self.queue.purge_dead_letters(tenant, ids).await
    }

    async fn set_allowance(&self, tenant: &Tenant, allowance: Allowance) -> Result<()> {
        self.queue.set_allowance(tenant, allowance).await
    }

    async fn status(&self) -> Result<BrokerStatus> {
        self.queue.status().await
    }

    async fn close(&self) {}
}
