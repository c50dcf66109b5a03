//! A dedupe store in memory whose ways refuse, throttle, lose answers and stop half way, as a script or a seed says.
//!
//! It reads no clock but the one it is given and draws nothing but from the entropy it is given, so a seeded run
//! replays. Leases and retention are counted on tokio's monotonic time, which all who join share.

mod link;
mod store;

pub use link::{Fault, Link};

use crate::{
    Error, Kind, Result, Retention, Row, Ticket, Token, Under, Verdict,
    port::{self, checked},
};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use store::State;
use wh_types::{Clock, Entropy};

/// What a member is given.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance: tokens, and what its way does.
    pub entropy: Arc<dyn Entropy>,
}

/// The store that processes share. Cloning gives another handle to the same one.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<State>>);

impl Shared {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A process's side of it, with a way of its own.
    #[must_use]
    pub fn join(&self, options: Options) -> Dedupe {
        let link = Link::new(Arc::clone(&options.entropy));
        Dedupe { shared: self.clone(), options, link, closed: AtomicBool::new(false) }
    }

    /// How many keys it holds, lapsed and expired ones that nobody asked for since included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of them are committed.
    #[must_use]
    pub fn committed(&self) -> usize {
        self.0.lock().committed()
    }
}

/// One process's side of a [`Shared`] store.
#[derive(Debug)]
pub struct Dedupe {
    shared: Shared,
    options: Options,
    link: Link,
    closed: AtomicBool,
}

impl Dedupe {
    /// Its way to the store.
    #[must_use]
    pub fn link(&self) -> Link {
        self.link.clone()
    }

    /// Waits as long as the way takes; gives what goes wrong with this call.
    async fn begin(&self, op: &'static str) -> Result<Option<Fault>> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::new(op, Kind::Stopping));
        }
        self.link.way().await;
        match self.link.fault() {
            Some(Fault::Refused) => Err(Error::new(op, Kind::Unavailable)),
            Some(Fault::Throttled) => {
                let kind = Kind::Exhausted { why: "throttled".into(), retry_after: Duration::from_secs(1) };
                Err(Error::new(op, kind))
            }
            other => Ok(other),
        }
    }

    async fn each(
        &self,
        op: &'static str,
        held: &[Ticket],
        act: impl Fn(&mut State, &Ticket) -> Result<()> + Send + Sync,
    ) -> Vec<Result<()>> {
        if let Some(refused) = checked::tickets(op, held) {
            return refused;
        }
        let fault = match self.begin(op).await {
            Ok(fault) => fault,
            Err(error) => return held.iter().map(|_| Err(Error::new(op, error.kind().clone()))).collect(),
        };
        let reached = if fault.is_some_and(Fault::stops_half_way) { held.len() / 2 } else { held.len() };
        let outcomes = {
            let mut state = self.shared.0.lock();
            let one = |(n, ticket): (usize, &Ticket)| match n < reached {
                true => act(&mut state, ticket),
                false => Err(Error::new(op, Kind::Unavailable)),
            };
            held.iter().enumerate().map(one).collect()
        };
        self.link.way().await;
        if fault == Some(Fault::Lost) {
            return held.iter().map(|_| Err(Error::new(op, Kind::Unknown))).collect();
        }
        outcomes
    }
}

#[async_trait]
impl port::Dedupe for Dedupe {
    async fn reserve(&self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>> {
        const OP: &str = "reserve";
        checked::reserve(rows, under)?;
        let fault = self.begin(OP).await?;
        let (now, wall) = (self.options.clock.now(), self.options.clock.wall());
        let token = Token::draw(&*self.options.entropy);
        let half = fault.is_some_and(Fault::stops_half_way);
        let reached = if half { rows.len() / 2 } else { rows.len() };
        let mut verdicts = Vec::with_capacity(rows.len());
        {
            let mut state = self.shared.0.lock();
            for (row, before) in rows.iter().zip(checked::repeats(rows)).take(reached) {
                verdicts.push(before.map_or_else(|| state.claim(row, under, token, now, wall), Verdict::Same));
            }
            if fault == Some(Fault::HalfUndone) {
                state.take_back(&verdicts);
            }
        }
        self.link.way().await;
        match fault {
            Some(Fault::HalfUndone) => Err(Error::new(OP, Kind::Unavailable)),
            Some(Fault::HalfLeft | Fault::Lost) => Err(Error::new(OP, Kind::Unknown)),
            Some(Fault::Refused | Fault::Throttled) | None => Ok(verdicts),
        }
    }

    async fn commit(&self, held: &[Ticket], retention: Retention) -> Vec<Result<()>> {
        let now = self.options.clock.now();
        self.each("commit", held, |state, ticket| state.commit(ticket, retention, now)).await
    }

    async fn release(&self, held: &[Ticket]) -> Vec<Result<()>> {
        self.each("release", held, State::release).await
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}
