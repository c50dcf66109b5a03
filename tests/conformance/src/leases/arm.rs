//! What a lease store must bring to be judged.

use async_trait::async_trait;
use std::{fmt::Debug, sync::Arc, time::Duration};
use wh_coord::{Key, Leases};

/// A backend under test.
#[async_trait]
pub trait Arm: Debug + Send + Sync {
    /// Its name in the matrix.
    fn name(&self) -> &'static str;

    /// Whether leases lapse, and members reach the store over a way that can be lost.
    fn lapses(&self) -> bool;

    /// Opens an empty store of its own for one case.
    ///
    /// # Errors
    /// Whatever keeps it from opening.
    async fn open(&self) -> anyhow::Result<Box<dyn Stand>>;
}

/// An opened store.
#[async_trait]
pub trait Stand: Debug + Send + Sync {
    /// Another coordinator, whose leases last so long.
    ///
    /// # Errors
    /// Whatever keeps it from joining.
    async fn join(&self, holder: &str, lease: Duration) -> anyhow::Result<Member>;

    /// Writes over a value, as an operator would.
    ///
    /// # Errors
    /// Whatever keeps it from being written.
    async fn overwrite(&self, key: &Key, value: &str) -> anyhow::Result<()>;

    /// Removes a value, as an operator would.
    ///
    /// # Errors
    /// Whatever keeps it from being removed.
    async fn remove(&self, key: &Key) -> anyhow::Result<()>;
}

/// One coordinator and its way to the store.
#[derive(Clone, Debug)]
pub struct Member {
    /// The coordinator.
    pub leases: Arc<dyn Leases>,
    /// Its way.
    pub way: Arc<dyn Way>,
}

/// The way from one coordinator to the store.
#[async_trait]
pub trait Way: Debug + Send + Sync {
    /// Answers take some 300 ms.
    async fn slow(&self);
    /// Nothing arrives, either way.
    async fn cut(&self);
    /// What is asked arrives and is done; no answer comes back, also none that is on its way.
    async fn deafen(&self);
    /// As before.
    async fn heal(&self);
}
