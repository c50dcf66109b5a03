//! The history without consumers: live by subscription, replay and gaps by direct get (decision D21).

use super::shared::Shared;
use crate::{Error, From, History, Kind, Result};
use std::sync::Arc;
use wh_types::{BlockId, Cursor, Table, Tenant};

/// Hears every block that is stored and keeps the recent ones.
#[derive(Debug)]
pub(crate) struct Hub {}

/// A stored block as it was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Its id.
    pub(crate) id: BlockId,
    /// Its rows; 0 for a probe.
    pub(crate) rows: u32,
}

impl Hub {
    /// Begins to hear. Tasks run in the shared group until the shared stop.
    ///
    /// # Errors
    /// Unavailable, Stopping.
    pub(crate) async fn start(_shared: &Arc<Shared>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {}))
    }

    /// Follows one table (mq40–mq45).
    ///
    /// # Errors
    /// Unavailable, Stopping.
    pub(crate) async fn open(&self, _tenant: &Tenant, _table: &Table, _from: From) -> Result<Box<dyn History>> {
        Err(Error::new("history", Kind::Unsupported("show a history yet")))
    }

    /// The block of a table at a partition's sequence, from the ring or the history, awaited for `options.lookup_wait`
    /// (decision D4). `None` when it is in neither, or the cursor is of another epoch.
    ///
    /// # Errors
    /// Unavailable, Stopping.
    pub(crate) async fn look_up(&self, _tenant: &Tenant, _table: &Table, _at: Cursor) -> Result<Option<Looked>> {
        Err(Error::new("stored rows", Kind::Unsupported("look blocks up yet")))
    }
}
