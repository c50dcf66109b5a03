//! What a store of bytes under names must do for a cache to stand on it. Judges no value and repeats nothing.

use crate::Result;
use async_trait::async_trait;
use bytes::Bytes;
use std::{fmt::Debug, time::Duration};

/// A value to write.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) value: Bytes,
    pub(crate) ttl: Duration,
}

/// A store. No call of it is ever sent twice: a write that arrives a second time could bring an old version back.
///
/// None bounds its own time, but for `renew`: the caller gives up.
#[async_trait]
pub(crate) trait Store: Debug + Send + Sync + 'static {
    /// The backend's name in logs and metrics.
    const BACKEND: &'static str;

    /// Reads versions, which are of one tenant, and with them a value.
    async fn read(&self, versions: &[String], value: Option<&str>) -> Result<(Vec<Option<Bytes>>, Option<Bytes>)>;

    /// Writes versions of one tenant where there are none, then reads what is there.
    async fn create(&self, versions: &[Item]) -> Result<Vec<Option<Bytes>>>;

    /// Writes over what is there. One outcome each.
    async fn write(&self, items: &[Item]) -> Vec<Result<()>>;

    /// Reads of any tenant.
    async fn peek(&self, names: &[String]) -> Result<Vec<Option<Bytes>>>;

    /// Makes new connections and proves that the store takes writes over them: then they are used from here on, and the
    /// old ones are dropped. What fails leaves everything as it was.
    async fn renew(&self) -> Result<()>;

    /// Ends the connections.
    async fn end(&self);
}
