//! The way from one member to the store.

use crate::{Error, Kind, Result};
use parking_lot::Mutex;
use std::{future, sync::Arc, time::Duration};
use wh_types::Entropy;

/// What the way to the store is like now.
#[derive(Clone, Debug)]
pub struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ways: Mutex<Ways>,
    entropy: Arc<dyn Entropy>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    hole: bool,
    down: bool,
    read_only: bool,
    deaf: bool,
    /// The connection is gone, and a new one is taken.
    broken: bool,
    /// How often it went: what was under way on one does not arrive by the next.
    losses: u64,
    /// Of one way; uniform between the two.
    slow: (Duration, Duration),
    /// Of each write that it is done and its answer lost.
    loses: f64,
}

impl Link {
    /// One over which everything arrives at once.
    #[must_use]
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self(Arc::new(Inner { ways: Mutex::default(), entropy }))
    }

    /// Swallows everything, or not any more. What was swallowed never arrives.
    pub fn black_hole(&self, hole: bool) {
        self.0.ways.lock().hole = hole;
    }

    /// Makes every request fail at once, as a server that is not there, or not any more.
    pub fn down(&self, down: bool) {
        self.0.ways.lock().down = down;
    }

    /// Ends the connection. A new one is taken.
    pub fn drop_connection(&self) {
        let mut ways = self.0.ways.lock();
        ways.broken = true;
        ways.losses += 1;
    }

    /// A new connection is made.
    pub(super) fn connect(&self) {
        self.0.ways.lock().broken = false;
    }

    /// Makes the store refuse writes, as a primary that was demoted, or not any more.
    pub fn read_only(&self, read_only: bool) {
        self.0.ways.lock().read_only = read_only;
    }

    /// Does what is asked and swallows the answers, or not any more.
    pub fn deafen(&self, deaf: bool) {
        self.0.ways.lock().deaf = deaf;
    }

    /// How long each way takes: uniform between the two.
    pub fn slow(&self, least: Duration, most: Duration) {
        self.0.ways.lock().slow = (least, most);
    }

    /// Loses the answers of writes with this probability.
    pub fn lose_randomly(&self, probability: f64) {
        self.0.ways.lock().loses = probability;
    }

    /// The connection that something begun now is asked over, where there is one.
    pub(super) fn connection(&self) -> Option<u64> {
        let ways = *self.0.ways.lock();
        (!ways.broken).then_some(ways.losses)
    }

    /// One way over a connection; for ever into a black hole.
    pub(super) async fn way(&self, over: Option<u64>) -> Result<()> {
        let (least, most) = self.0.ways.lock().slow;
        if most > Duration::ZERO {
            let wait = least + most.saturating_sub(least).mul_f64(self.0.entropy.unit());
            tokio::time::sleep(wait).await;
        }
        let ways = *self.0.ways.lock();
        if ways.hole {
            future::pending::<()>().await;
        }
        if ways.down || ways.broken || over != Some(ways.losses) {
            Err(Error::new("sim", Kind::Disconnected))
        } else {
            Ok(())
        }
    }

    /// The way back.
    pub(super) async fn back(&self, over: Option<u64>, write: bool) -> Result<()> {
        let ways = *self.0.ways.lock();
        if ways.deaf || (write && ways.loses > 0.0 && self.0.entropy.unit() < ways.loses) {
            future::pending::<()>().await;
        }
        self.way(over).await
    }

    /// Whether the store takes it.
    pub(super) fn takes(&self, write: bool) -> Result<()> {
        match write && self.0.ways.lock().read_only {
            true => Err(Error::new("sim", Kind::Refused("READONLY".into()))),
            false => Ok(()),
        }
    }
}
