//! What a local broker needs of the place that keeps its bodies. Not the log's interface: memory has none.

use super::{Pending, Shared};
use crate::{
    Allowance, DeadLetter, Kind,
    core::{Core, Ticket},
};
use std::{fmt::Debug, future::Future, sync::Arc};
use wh_types::{Block, Tenant, Timestamp};

/// Something to be kept. Sequences and numbers were drawn already.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Admitted blocks with their places in the queue, in order.
    Blocks { stored: Timestamp, blocks: Vec<(Ticket, Block)> },
    /// Dead letters with their numbers.
    Letters { letters: Vec<(u64, DeadLetter)> },
    /// Dead letters that are gone for good.
    Purge { tenant: Tenant, numbers: Vec<u64> },
    /// A tenant's allowance; of two, the one with the higher revision counts.
    Allowance { tenant: Tenant, allowance: Allowance, revision: u64 },
}

/// The end of a change: what waits for it, and how it went. One body for each block or letter.
pub(crate) type Finished<B> = (Pending, Result<Vec<B>, Kind>);

/// Keeps bodies and changes.
pub(crate) trait Store: Debug + Send + Sync + Sized + 'static {
    /// A body's handle.
    type Body: Clone + Debug + Send + Sync + 'static;
    /// A right to submit so many bytes.
    type Room<'a>: Send;

    /// The largest body it can carry.
    fn max_body(&self) -> usize;

    /// Waits until so many bytes may be submitted. More than is used does no harm.
    fn room(&self, bytes: usize) -> impl Future<Output = Result<Self::Room<'_>, Kind>> + Send;

    /// Keeps a change. Called under the state's lock, so the order of calls is the order of what is kept. Where the
    /// end is known at once it is given back; else [`Shared::finish`] is called with it, in the order of the calls.
    fn submit<'a>(
        shared: &'a Arc<Shared<Self>>,
        room: Self::Room<'a>,
        core: &mut Core<Self::Body>,
        change: Change,
        pending: Pending,
    ) -> Option<Finished<Self::Body>>;

    /// Writes down, without anybody waiting for it, that dead letters are gone; `dropped` counts those that went for want
    /// of room since the queue was made.
    fn note_gone(&self, tenant: &Tenant, numbers: &[u64], dropped: u64);

    /// Bytes that reading a body takes, or a little more.
    fn weight(body: &Self::Body) -> usize;

    /// A block that can be had without waiting.
    fn at_hand(&self, body: &Self::Body) -> Option<Block>;

    /// Reads blocks back, one outcome each; `NotFound` where the body was moved meanwhile.
    fn blocks(&self, bodies: Vec<Self::Body>) -> impl Future<Output = Vec<Result<Block, Kind>>> + Send;

    /// Reads dead letters back, one outcome each; `NotFound` where one was purged meanwhile.
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
