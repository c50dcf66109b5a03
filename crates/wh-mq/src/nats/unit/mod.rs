//! Units: raw pinned pulls, delivery in order, settling, orphans. Not which process should own a unit.

use super::shared::Shared;
use crate::{Budget, Error, Feed, Kind, Result, Unit};
use std::{collections::BTreeSet, sync::Arc};

/// Which units this process holds.
#[derive(Debug, Default)]
pub(crate) struct Units {}

/// Takes a unit (mq20–mq32).
///
/// # Errors
/// Conflict (a feed of this process has it), `NotFound`, Unavailable, Stopping.
pub(crate) async fn open(_shared: &Arc<Shared>, _unit: Unit, _budget: Budget) -> Result<Box<dyn Feed>> {
    Err(Error::new("feed", Kind::Unsupported("deliver yet")))
}

/// Makes the blocks of a unit due whose owner is gone (mq28, decision D14).
///
/// # Errors
/// Conflict when somebody was active on it, `NotFound`, Unavailable, Stopping.
pub(crate) async fn release_orphan(_shared: &Arc<Shared>, _unit: Unit) -> Result<()> {
    Err(Error::new("release orphan", Kind::Unsupported("release units yet")))
}

/// The units that hold unsettled blocks and have no owner (mq29).
///
/// # Errors
/// Unavailable, Stopping.
pub(crate) async fn unowned(_shared: &Arc<Shared>) -> Result<BTreeSet<Unit>> {
    Err(Error::new("unowned", Kind::Unsupported("find units yet")))
}

/// Ends every feed of this process: nothing is taken any more, `next` gives `None`, settling answers `Stopping`.
pub(crate) async fn close(_shared: &Arc<Shared>) {}
