//! A unit's feed and the handle that settles for it.

use super::{Shared, Store};
use crate::{
    AckToken, Began, Budget, Delivery, Error, Feed, Kind, Result, Settle, Unit, Verdict,
    core::{Next, Out},
};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};

/// When a block is read again that the disk did not give.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// One owner's delivery of one unit.
#[derive(Debug)]
pub(super) struct LocalFeed<S: Store> {
    shared: Arc<Shared<S>>,
    unit: Unit,
    term: u64,
    began: Began,
    /// Taken, its body being read: kept here so that a dropped `next` loses nothing.
    taken: Option<Out<S::Body>>,
    released: bool,
}

#[derive(Debug)]
struct LocalSettle<S: Store> {
    shared: Arc<Shared<S>>,
    shard: u32,
    term: u64,
}

impl<S: Store> LocalFeed<S> {
    pub(super) fn take(shared: &Arc<Shared<S>>, unit: Unit, budget: Budget) -> Result<Self> {
        let mut state = shared.lock();
        if state.closing {
            return Err(Error::new("feed", Kind::Stopping));
        }
        let term = state.core.take_unit(unit, budget).map_err(|kind| Error::new("feed", kind))?;
        let began = Began { floor: state.core.unit_floor(unit.shard), in_order: true };
        Ok(Self { shared: Arc::clone(shared), unit, term, began, taken: None, released: false })
    }

    /// Reads the body of what was taken. A block that cannot be read is put aside: the rest goes on.
    async fn give(&mut self) -> Option<Delivery> {
        let body = self.taken.as_ref()?.body.clone();
        let mut read = self.shared.store.blocks(vec![body]).await.pop();
        if let Some(Err(Kind::NotFound(_))) = read {
            let token = self.taken.as_ref()?.token;
            let moved = self.shared.lock().core.body(token.table(), token.sequence);
            if let Some(body) = moved {
                read = self.shared.store.blocks(vec![body]).await.pop();
            }
        }
        let Out { token, cursor, attempt, .. } = self.taken.take()?;
        match read.unwrap_or(Err(Kind::Bug("no answer for a body".into()))) {
            Ok(block) => Some(Delivery { token, cursor, attempt, block }),
            Err(kind @ (Kind::Corrupt(_) | Kind::NotFound(_) | Kind::Bug(_))) => {
                self.shared.quarantine(token, &kind);
                None
            }
            // the disk does not answer: the block is as good as before, and so may the disk be in a moment
            Err(kind) => {
                self.shared.postpone(token, self.unit.shard, self.term, &kind);
                None
            }
        }
    }
}

impl<S: Store> Shared<S> {
    fn postpone(&self, token: AckToken, shard: u32, term: u64, kind: &Kind) {
        let sequence = token.sequence;
        tracing::warn!(sequence, error = %kind, "block {sequence} could not be read, it is tried again");
        let (now, verdict) = (self.now(), Verdict::Nak { delay: READ_AGAIN });
        // a feed that lost its unit meanwhile has nothing to try again
        self.lock().core.settle(shard, term, token, verdict, now).ok();
    }

    fn quarantine(&self, token: AckToken, kind: &Kind) {
        let sequence = token.sequence;
        tracing::error!(sequence, error = %kind, "block {sequence} cannot be read and is put aside");
        crate::metrics::quarantined();
        let now = self.now();
        let mut state = self.lock();
        state.core.quarantine(token.table(), sequence, now);
        self.sweep(&mut state, now);
    }
}

#[async_trait]
impl<S: Store> Feed for LocalFeed<S> {
    fn unit(&self) -> Unit {
        self.unit
    }

    fn began(&self) -> Began {
        self.began
    }

    async fn next(&mut self) -> Result<Option<Delivery>> {
        // a backlog in memory is never waited for: others must have their turn all the same
        tokio::task::coop::consume_budget().await;
        loop {
            if self.taken.is_some()
                && let Some(delivery) = self.give().await
            {
                return Ok(Some(delivery));
            }
            let next = {
                let now = self.shared.now();
                let mut state = self.shared.lock();
                if state.closing {
                    return Ok(None);
                }
                self.shared.sweep(&mut state, now);
                state.core.deliver(self.unit.shard, self.term, now)
            };
            let until = match next {
                Next::Deliver(out) => {
                    if let Some(block) = self.shared.store.at_hand(&out.body) {
                        let Out { token, cursor, attempt, .. } = out;
                        return Ok(Some(Delivery { token, cursor, attempt, block }));
                    }
                    self.taken = Some(out);
                    continue;
                }
                Next::Ended => return Ok(None),
                Next::Wait(until) => until,
            };
            let Some(woken) = self.shared.units.get(self.unit.shard as usize) else { return Ok(None) };
            let timer = async {
                match until {
                    Some(at) => tokio::time::sleep_until(self.shared.moment(at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.shared.closed.wait() => return Ok(None),
                () = woken.notified() => {}
                () = timer => {}
            }
        }
    }

    fn settle(&self) -> Arc<dyn Settle> {
        Arc::new(LocalSettle { shared: Arc::clone(&self.shared), shard: self.unit.shard, term: self.term })
    }

    fn set_budget(&mut self, budget: Budget) {
        self.shared.lock().core.set_budget(self.unit.shard, self.term, budget);
        self.shared.wake_unit(self.unit.shard);
    }

    async fn halt(&mut self) -> Result<()> {
        let mut state = self.shared.lock();
        if state.closing {
            return Err(Error::new("halt", Kind::Stopping));
        }
        state.core.halt(self.unit.shard, self.term);
        Ok(())
    }

    async fn release(mut self: Box<Self>) -> Result<()> {
        self.released = true;
        let mut state = self.shared.lock();
        if state.closing {
            return Err(Error::new("release", Kind::Stopping));
        }
        state.core.release(self.unit.shard, self.term);
        Ok(())
    }
}

impl<S: Store> Drop for LocalFeed<S> {
    fn drop(&mut self) {
        if !self.released {
            self.shared.lock().core.orphan(self.unit.shard, self.term);
        }
    }
}

#[async_trait]
impl<S: Store> Settle for LocalSettle<S> {
    async fn settle(&self, tokens: &[AckToken], verdict: Verdict) -> Vec<Result<()>> {
        let now = self.shared.now();
        let mut news = false;
        let outcomes = {
            let mut state = self.shared.lock();
            let closing = state.closing;
            let settle = |token: &AckToken| {
                if closing {
                    return Err(Error::new("settle", Kind::Stopping));
                }
                let changed = state.core.settle(self.shard, self.term, *token, verdict, now);
                news |= changed.map_err(|kind| Error::new("settle", kind))?;
                Ok(())
            };
            let outcomes = tokens.iter().map(settle).collect();
            self.shared.sweep(&mut state, now);
            outcomes
        };
        if news {
            self.shared.wake_unit(self.shard);
        }
        outcomes
    }
}
