//! One term of one unit: what its feed, its settle handles and its loop share.

use super::{
    desk::{Desk, Handed, Outcome},
    settler::{Acks, Order},
    units::Units,
};
use crate::{AckToken, Budget, Error, Kind, Unit, Verdict};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use tokio::sync::{Notify, mpsc};
use wh_nats::{AckSubject, PinId};
use wh_types::{Mono, Stop};

/// What a settle handle may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Open,
    /// The unit was given up, or another feed has it.
    Fenced,
    /// The queue closed.
    Stopping,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) desk: Desk<AckSubject>,
    pub(super) life: Life,
    /// Whether more may come.
    pub(super) taking: bool,
    /// Why delivery ended, to be told once.
    pub(super) failure: Option<Error>,
    pub(super) pin: Option<PinId>,
    /// When the durable was made that the term began with.
    pub(super) created: String,
    /// What the process's count of bytes has of this term.
    counted: usize,
    /// To the settler, until the term ends.
    orders: Option<mpsc::UnboundedSender<Order>>,
}

#[derive(Debug)]
pub(super) struct Term {
    pub(super) unit: Unit,
    inner: Mutex<Inner>,
    /// Something to hand on, or the end.
    pub(super) deliver: Notify,
    /// Room was made, or something to send.
    pub(super) act: Notify,
    /// Given once the loop has ended.
    pub(super) ended: Stop,
}

impl Term {
    pub(super) fn new(
        unit: Unit,
        desk: Desk<AckSubject>,
        orders: mpsc::UnboundedSender<Order>,
        created: String,
    ) -> Self {
        let inner = Inner {
            desk,
            life: Life::Open,
            taking: true,
            failure: None,
            pin: None,
            created,
            counted: 0,
            orders: Some(orders),
        };
        Self { unit, inner: Mutex::new(inner), deliver: Notify::new(), act: Notify::new(), ended: Stop::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// The next block within the budget.
    pub(super) fn hand(&self, units: &Units, now: Mono) -> Option<Handed<AckSubject>> {
        let mut inner = self.lock();
        let handed = inner.desk.hand(now)?;
        inner.account(units);
        if let Some(reply) = &handed.keep_alive {
            inner.order(Order::quiet(Verdict::InProgress, vec![(handed.token.sequence, reply.clone())]));
        }
        Some(handed)
    }

    /// Settles: the acks to send, and for each token whether it is among them.
    pub(super) fn settle(
        &self,
        units: &Units,
        now: Mono,
        tokens: &[AckToken],
        verdict: Verdict,
    ) -> Result<(Acks, Vec<bool>), Kind> {
        let mut inner = self.lock();
        match inner.life {
            Life::Open => {}
            Life::Fenced => return Err(Kind::Fenced),
            Life::Stopping => return Err(Kind::Stopping),
        }
        let (mut acks, mut sent) = (Vec::with_capacity(tokens.len()), Vec::with_capacity(tokens.len()));
        for token in tokens {
            let outcome = inner.desk.settle(now, *token, verdict);
            sent.push(matches!(outcome, Outcome::Send(..)));
            if let Outcome::Send(sequence, reply) = outcome {
                acks.push((sequence, reply));
            }
        }
        inner.account(units);
        Ok((acks, sent))
    }

    pub(super) fn order(&self, order: Order) -> bool {
        self.lock().order(order)
    }

    pub(super) fn set_budget(&self, budget: Budget) {
        self.lock().desk.set_budget(budget);
        self.act.notify_one();
        self.deliver.notify_one();
    }

    /// Ends the term for its handles. Gives what is not settled, in order, and remembers how often it was delivered.
    pub(super) fn fence(&self, units: &Units, life: Life) -> Vec<AckSubject> {
        let mut inner = self.lock();
        inner.life = life;
        inner.taking = false;
        inner.orders = None;
        let unsettled = inner.desk.give_back();
        let (attempts, last) = inner.desk.end();
        inner.account(units);
        drop(inner);
        self.remember(units, attempts, last);
        self.deliver.notify_one();
        unsettled
    }

    /// Acks that nobody confirmed.
    pub(super) fn unconfirmed(&self) -> Acks {
        self.lock().desk.unconfirmed()
    }

    /// The server heard these.
    pub(super) fn heard(&self, sequences: &[u64]) {
        self.lock().desk.heard(sequences);
    }

    /// The end of a fenced term: what it settled and nobody confirmed is known to the process's next term of the unit.
    pub(super) fn leave(&self, units: &Units) {
        let mut inner = self.lock();
        let settled = inner.desk.leave();
        units.keep(self.unit, &inner.created, settled);
    }

    fn remember(&self, units: &Units, attempts: HashMap<u64, u32>, last: u64) {
        units.remember(self.unit, attempts, last);
    }
}

impl Inner {
    pub(super) fn order(&self, order: Order) -> bool {
        self.orders.as_ref().is_some_and(|orders| orders.send(order).is_ok())
    }

    /// Brings the process's count of bytes up to date.
    pub(super) fn account(&mut self, units: &Units) {
        let now = self.desk.bytes();
        units.count(self.counted, now);
        self.counted = now;
    }
}
