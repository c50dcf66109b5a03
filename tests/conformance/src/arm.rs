//! What a backend must bring to be judged: a way to open it, to end it, and what it is able to do by its nature.

use async_trait::async_trait;
use std::{fmt::Debug, sync::Arc, time::Duration};
use wh_mq::{Allowance, Broker};
use wh_types::Tenant;

/// A backend under test.
#[async_trait]
pub trait Arm: Debug + Send + Sync {
    /// Its name in the matrix.
    fn name(&self) -> &'static str;

    /// What it can do.
    fn profile(&self) -> Profile;

    /// Whether its cases share one queue. Each then has tenants of its own, and they run one after another.
    fn shared(&self) -> bool {
        false
    }

    /// After the last case: removes what the arm made.
    ///
    /// # Errors
    /// Whatever keeps it from that.
    async fn finish(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Opens an empty queue of its own for one case.
    ///
    /// # Errors
    /// Whatever keeps it from opening; the case fails with it.
    async fn open(&self, setup: Setup) -> anyhow::Result<Box<dyn Stand>>;
}

/// An opened queue, and the means to end it and open it again.
#[async_trait]
pub trait Stand: Debug + Send + Sync {
    /// The queue as it is open now.
    fn broker(&self) -> Arc<dyn Broker>;

    /// Ends it and opens what it left.
    ///
    /// # Errors
    /// Whatever keeps it from opening.
    async fn reopen(&mut self, ending: Ending) -> anyhow::Result<()>;
}

/// How a queue ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is closed.
    Clean,
    /// Its process is gone without a word.
    Crash,
}

/// What a backend can do by its nature. What it cannot must be answered with `Unsupported`, which a twin case checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Budgets are set over the port (mq06, mq07, mq11).
    pub allowances: bool,
    /// Dead letters can be deleted (mq53).
    pub purge: bool,
    /// A unit's tables take turns, so that one table's flood holds up no other of its unit (mq20).
    pub tables_take_turns: bool,
    /// The history reaches back to the first block there ever was. Where it does not, what begins before it begins with
    /// a gap.
    pub whole_history: bool,
    /// How long a block may stay unsettled is a case's choice (mq23).
    pub ack_wait: bool,
    /// The largest body of a block.
    pub max_body: usize,
}

/// What a case wants to be set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Shards, and so units.
    pub shards: u32,
    /// When an unsettled block comes back.
    pub ack_wait: Duration,
    /// For how long ids are remembered.
    pub duplicate_window: Duration,
    /// What every tenant may keep at first.
    pub allowance: Allowance,
    /// Tenants that must be ready.
    pub tenants: Vec<Tenant>,
}
