//! What a local broker needs of the place that keeps its bodies. Not the log's interface: memory has none.

use super::{Pending, Shared};
use crate::{Allowance, DeadLetter, Kind, core::Core};
use std::{fmt::Debug, future::Future, sync::Arc};
use wh_types::{Block, Tenant, Timestamp};

/// Something to be kept. Sequences and numbers were drawn already.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Admitted blocks with their sequences, in order.
    Blocks { stored: Timestamp, blocks: Vec<(u64, Block)> },
    /// Dead letters with their numbers.
    Letters { letters: Vec<(u64, DeadLetter)> },
    /// Dead letters that are gone for good; `dropped`: for want of room, so many since the queue was made.
    Purge { tenant: Tenant, numbers: Vec<u64>, dropped: Option<u64> },
    /// A tenant's allowance; of two, the one with the higher revision counts.
    Allowance { tenant: Tenant, allowance: Allowance, revision: u64 },
}

/// The end of a change: what waits for it, and how it went. One body for each block or letter.
pub(crate) type Finished<B> = (Pending<B>, Result<Vec<B>, Kind>);

/// Keeps bodies and changes.
pub(crate) trait Store: Debug + Send + Sync + Sized + 'static {
    /// A body's handle.
    type Body: Clone + Debug + Send + Sync + 'static;
    /// The largest body it can carry.
    const MAX_BODY: usize;

    /// Keeps a change. Called under the state's lock, so the order of calls is the order of what is kept. Where the
    /// end is known at once it is given back; else [`Shared::finish`] is called with it, in the order of the calls.
    fn submit(
        shared: &Arc<Shared<Self>>,
        core: &mut Core<Self::Body>,
        change: Change,
        pending: Pending<Self::Body>,
    ) -> Option<Finished<Self::Body>>;

    /// Reads blocks back, one outcome each.
    fn blocks(&self, bodies: Vec<Self::Body>) -> impl Future<Output = Vec<Result<Block, Kind>>> + Send;

    /// Reads dead letters back, one outcome each.
    fn letters(&self, bodies: Vec<Self::Body>) -> impl Future<Output = Vec<Result<DeadLetter, Kind>>> + Send;

    /// Nothing refers to these any more.
    fn freed(&self, bodies: Vec<Self::Body>);

    /// Bytes on disk, where there is one.
    fn disk_bytes(&self) -> Option<u64>;

    /// Why nothing would be taken now.
    fn trouble(&self) -> Option<String>;

    /// Ends: what was submitted is finished, what can be given up is.
    fn close(shared: &Arc<Shared<Self>>) -> impl Future<Output = ()> + Send;
}
