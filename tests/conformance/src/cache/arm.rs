//! What a cache must bring to be judged.

use async_trait::async_trait;
use std::{fmt::Debug, sync::Arc};
use wh_cache::Cache;

/// A backend under test.
#[async_trait]
pub trait Arm: Debug + Send + Sync {
    /// Its name in the matrix.
    fn name(&self) -> &'static str;

    /// Whether processes share the store and reach it over a way that can be lost.
    fn is_shared(&self) -> bool;

    /// Opens an empty store of its own for one case.
    ///
    /// # Errors
    /// Whatever keeps it from opening.
    async fn open(&self) -> anyhow::Result<Box<dyn Stand>>;
}

/// An opened store. The largest value is 64 KiB.
#[async_trait]
pub trait Stand: Debug + Send + Sync {
    /// Another process that uses it, connected; where only one may, another handle of that one.
    ///
    /// # Errors
    /// Whatever keeps it from joining.
    async fn join(&self) -> anyhow::Result<Member>;

    /// A process that starts while the store cannot be reached.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    async fn join_cut_off(&self) -> anyhow::Result<Member>;

    /// Empties the store.
    ///
    /// # Errors
    /// Whatever keeps it from being emptied.
    async fn wipe(&self) -> anyhow::Result<()>;

    /// Remembers what the store holds.
    ///
    /// # Errors
    /// Whatever keeps it from being remembered.
    async fn remember(&self) -> anyhow::Result<()>;

    /// Ends the store and brings it back as it was remembered.
    ///
    /// # Errors
    /// Whatever keeps it from coming back.
    async fn restore(&self) -> anyhow::Result<()>;
}

/// One process and its way to the store.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its side of the cache.
    pub cache: Arc<dyn Cache>,
    /// Its way.
    pub way: Arc<dyn Way>,
}

/// The way from one process to the store, or from all of them: a case asks nothing of the others while it is broken.
/// `heal` ends each of the others.
///
/// # Errors
/// Each fails where the store or its proxy cannot be told.
#[async_trait]
pub trait Way: Debug + Send + Sync {
    /// Connections end, and none is taken.
    async fn down(&self) -> anyhow::Result<()>;
    /// Nothing arrives, either way, and nothing is said.
    async fn black_hole(&self) -> anyhow::Result<()>;
    /// Answers take longer than an operation may.
    async fn slow(&self) -> anyhow::Result<()>;
    /// The store refuses writes to this process and answers its reads.
    async fn read_only(&self) -> anyhow::Result<()>;
    /// As before.
    async fn heal(&self) -> anyhow::Result<()>;
}
