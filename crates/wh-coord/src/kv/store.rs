//! What leases ask of a store.

use crate::{Key, Result};
use async_trait::async_trait;
use bytes::Bytes;
use std::{collections::BTreeMap, fmt::Debug};

/// A value as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its bytes.
    pub(crate) value: Bytes,
    /// Grows with every write of any key, and is never used again.
    pub(crate) revision: u64,
}

/// Values under keys. Every method may be dropped by its caller when it takes too long; it may have happened then.
#[async_trait]
pub(crate) trait Store: Debug + Send + Sync + 'static {
    /// The value of a key, or that there is none. It may be a little old.
    async fn read(&self, key: &Key) -> Result<Option<Entry>>;

    /// Writes where the revision is the expected one (`None`: where there is no value); gives the new revision.
    ///
    /// `Conflict`: it was not. `Unknown`: the answer was lost.
    async fn write(&self, key: &Key, value: Bytes, expected: Option<u64>) -> Result<u64>;

    /// Removes the value where the revision is the expected one.
    async fn delete(&self, key: &Key, expected: u64) -> Result<()>;

    /// All values one step below a prefix, in one read.
    async fn list(&self, prefix: &Key) -> Result<BTreeMap<Key, Entry>>;

    /// The next change that is heard of, of any key: its new value, or `None` where it was removed. `None`: nothing is
    /// heard any more.
    async fn heard(&self) -> Option<(Key, Option<Bytes>)>;
}
