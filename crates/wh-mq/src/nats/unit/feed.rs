//! A unit's feed and its settle handle: the term as its owner sees it. What is sent to the server is the loop's and the
//! settler's to do.

use super::{
    run::Control,
    settler::Order,
    term::{Life, Term},
};
use crate::{
    AckToken, Began, Budget, Delivery, Error, Feed, Kind, Result, Settle, Unit, Verdict, nats::shared::Shared,
};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};

/// A halt that takes longer than this has halted all the same: the machine bounds its own waits.
const HALT: Duration = Duration::from_secs(10);

/// One owner's delivery of one unit.
#[derive(Debug)]
pub(super) struct NatsFeed {
    shared: Arc<Shared>,
    term: Arc<Term>,
    control: mpsc::UnboundedSender<Control>,
    began: Began,
    released: bool,
}

#[derive(Debug)]
struct NatsSettle {
    shared: Arc<Shared>,
    term: Arc<Term>,
}

impl NatsFeed {
    pub(super) fn new(
        shared: Arc<Shared>,
        term: Arc<Term>,
        control: mpsc::UnboundedSender<Control>,
        began: Began,
    ) -> Self {
        Self { shared, term, control, began, released: false }
    }

    /// What can be given now: a block, the end, or nothing yet.
    fn ready(&self) -> Option<Result<Option<Delivery>>> {
        if self.term.lock().life == Life::Stopping {
            return Some(Ok(None));
        }
        if let Some(handed) = self.term.hand(&self.shared.units, self.shared.clock().now()) {
            let cursor = self.shared.cursor(self.term.unit, handed.token.sequence);
            let (token, attempt, block) = (handed.token, handed.attempt, handed.block);
            return Some(Ok(Some(Delivery { token, cursor, attempt, block })));
        }
        let mut inner = self.term.lock();
        if inner.taking || !inner.desk.queue_is_empty() {
            return None;
        }
        Some(inner.failure.take().map_or(Ok(None), Err))
    }

    fn stopping(&self, op: &'static str) -> Result<()> {
        if self.term.lock().life == Life::Stopping { Err(Error::new(op, Kind::Stopping)) } else { Ok(()) }
    }
}

#[async_trait]
impl Feed for NatsFeed {
    fn unit(&self) -> Unit {
        self.term.unit
    }

    fn began(&self) -> Began {
        self.began
    }

    async fn next(&mut self) -> Result<Option<Delivery>> {
        // a backlog in memory is never waited for: others must have their turn all the same
        tokio::task::coop::consume_budget().await;
        loop {
            if let Some(ready) = self.ready() {
                return ready;
            }
            self.term.deliver.notified().await;
        }
    }

    fn settle(&self) -> Arc<dyn Settle> {
        Arc::new(NatsSettle { shared: Arc::clone(&self.shared), term: Arc::clone(&self.term) })
    }

    fn set_budget(&mut self, budget: Budget) {
        self.term.set_budget(budget);
    }

    fn max_unsettled(&self) -> Option<usize> {
        let (_, durable) = self.shared.durable("feed", self.term.unit).ok()?;
        usize::try_from(durable.max_ack_pending).ok()
    }

    async fn halt(&mut self) -> Result<()> {
        self.stopping("halt")?;
        let (done, halted) = oneshot::channel();
        if self.control.send(Control::Halt(done)).is_ok() {
            // a loop that ended has halted
            tokio::time::timeout(HALT, halted).await.ok();
        }
        self.stopping("halt")
    }

    async fn release(mut self: Box<Self>) -> Result<()> {
        self.released = true;
        self.stopping("release")?;
        let (done, released) = oneshot::channel();
        if self.control.send(Control::Release(done)).is_err() {
            return self.stopping("release");
        }
        match released.await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.stopping("release")?;
                Err(Error::new("release", Kind::Unavailable))
            }
        }
    }
}

impl Drop for NatsFeed {
    fn drop(&mut self) {
        if !self.released {
            self.shared.units.orphan(&self.term);
            // the loop ends with its channel
        }
    }
}

#[async_trait]
impl Settle for NatsSettle {
    async fn settle(&self, tokens: &[AckToken], verdict: Verdict) -> Vec<Result<()>> {
        const OP: &str = "settle";
        let failed = |kind: &Kind| tokens.iter().map(|_| Err(Error::new(OP, kind.clone()))).collect();
        if self.shared.stop.given() {
            return failed(&Kind::Stopping);
        }
        let now = self.shared.clock().now();
        let (acks, sent) = match self.term.settle(&self.shared.units, now, tokens, verdict) {
            Ok(outcome) => outcome,
            Err(kind) => return failed(&kind),
        };
        if acks.is_empty() {
            return tokens.iter().map(|_| Ok(())).collect();
        }
        let (order, done) = Order::new(verdict, acks);
        let outcome = if self.term.order(order) {
            // room and deadlines changed
            self.term.act.notify_one();
            self.term.deliver.notify_one();
            done.await.unwrap_or(Err(Kind::Unavailable))
        } else {
            Err(Kind::Fenced)
        };
        let one = |sent: bool| match &outcome {
            Err(kind) if sent => Err(Error::new(OP, kind.clone())),
            _ => Ok(()),
        };
        sent.into_iter().map(one).collect()
    }
}
