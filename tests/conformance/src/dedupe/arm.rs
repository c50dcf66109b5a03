//! What a dedupe store must bring to be judged.

use async_trait::async_trait;
use std::{fmt::Debug, sync::Arc};
use wh_dedupe::{Dedupe, MAX_ROWS};

/// A backend under test.
#[async_trait]
pub trait Arm: Debug + Send + Sync {
    /// Its name in the matrix.
    fn name(&self) -> &'static str;

    /// Whether this can be made to go wrong with it.
    fn fails(&self, failure: Failure) -> bool;

    /// Rows of the largest call that it does in a few seconds, wherever it runs.
    fn largest_call(&self) -> usize {
        MAX_ROWS
    }

    /// Opens an empty store of its own for one case. `failing`: something is to go wrong in it, and calls give up soon.
    ///
    /// # Errors
    /// Whatever keeps it from opening.
    async fn open(&self, failing: bool) -> anyhow::Result<Box<dyn Stand>>;
}

/// An opened store.
#[async_trait]
pub trait Stand: Debug + Send + Sync {
    /// Another process that uses it; where only one may, another handle of that one.
    ///
    /// # Errors
    /// Whatever keeps it from joining.
    async fn join(&self) -> anyhow::Result<Member>;

    /// Ends every process without warning. Members from before are not used any more; who joins next is a new life.
    ///
    /// # Errors
    /// Whatever keeps them from ending.
    async fn crash(&self) -> anyhow::Result<()>;
}

/// One process and its way to the store.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its side of the store.
    pub store: Arc<dyn Dedupe>,
    /// Its way.
    pub way: Arc<dyn Way>,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A call does not reach the store, or cannot be written.
    Refused,
    /// The store says that it has too much to do, or no room.
    Throttled,
    /// A call is done, and its answer is lost.
    Lost,
    /// Half of a call is done; the rest is refused.
    Half,
    /// Half of a call is done; nothing reaches the store after it.
    HalfLeft,
}

/// The way from one process to the store.
#[async_trait]
pub trait Way: Debug + Send + Sync {
    /// This goes wrong with the next call of the port, and with later ones until it is healed.
    async fn fail(&self, failure: Failure);
    /// As before.
    async fn heal(&self);
}
