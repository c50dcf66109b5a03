//! The ports of the queue and their contract. Duties, never mechanism; no backend is named here.
//!
//! Each numbered clause has a conformance case of the same number (`tests/conformance`), and every backend, the fake
//! included, is an arm of that suite.
//!
//! # Publishing
//! - **mq01** A block answered `Stored` is durable: it is delivered after a crash of this process at any later moment.
//! - **mq02** `publish` gives one outcome per block, in the order given. A refused block changes nothing for the others.
//! - **mq03** Blocks of one table given in one call, or in calls that follow each other, are stored in that order.
//! - **mq04** A block id published again within the duplicate window is answered `Duplicate` with the cursor of the
//!   first, and is stored, delivered and shown in the history once, also after it was settled and after a reopen.
//! - **mq05** An empty block (0 rows) under a new id is `Stored`: that id can then never be stored with rows. It is
//!   never delivered and never shown in the history. [`Broker::stored_rows`] tells the two apart for the whole window.
//! - **mq06** A tenant at its budget is refused (`Exhausted`, 30 s) while other tenants flow; after a settle and the
//!   end of the history window it is taken again.
//! - **mq07** A table at its cap is refused while other tables of the same tenant flow.
//! - **mq08** A block of more than 500 rows, or larger than the backend can carry, is `Invalid`, not cut.
//! - **mq09** Cursors of one table grow; a cursor orders blocks of one history and stays valid over a reopen.
//! - **mq10** Table and tenant come back as they were given, whatever characters the table's name has.
//! - **mq11** A budget can be changed while running; shrinking it deletes nothing.
//!
//! # Delivery
//! - **mq20** A unit delivers the blocks of a table in the order they were stored, each once until it is due again.
//! - **mq21** Blocks may be settled in any order; a settled block is never delivered again, also after a reopen.
//! - **mq22** A block nak'd with a delay comes back after that delay, not before, and not later than a second after.
//! - **mq23** A block neither settled nor kept alive within `ack_wait` comes back. `InProgress` restarts its time.
//! - **mq24** Blocks delivered and not settled stay within the feed's [`Budget`], in rows and in bytes; a feed that
//!   holds nothing may always get one block. Settling makes room.
//! - **mq25** After `halt` nothing more is delivered: `next` gives what was already taken, then `None`. The unit stays
//!   owned, and settling goes on.
//! - **mq26** After `release` another `feed` of the unit gets every unsettled block at once, in order; tokens of the
//!   old feed are `Fenced`.
//! - **mq27** A unit has one feed at a time: a second is `Conflict`.
//! - **mq28** A feed that was dropped without `release` counts as orphaned: `release_orphan` makes its blocks due at
//!   once. On a unit whose feed lives it is `Conflict`.
//! - **mq29** `unowned` names exactly the units that hold unsettled blocks and have no feed.
//! - **mq30** `Delivery::attempt` counts from 1 and grows with each delivery of the same block by this broker.
//! - **mq31** Blocks of tables in different units never wait for each other: a feed that settles nothing holds up
//!   nobody else.
//! - **mq32** Settling an unknown or already settled token changes nothing; its outcome is `Ok` where the block is
//!   settled and `Fenced` where the feed no longer is the owner.
//!
//! # History
//! - **mq40** From `Now` exactly the blocks stored after the call returned are shown, in order.
//! - **mq41** From a cursor the blocks after it are shown, settled or not, then live ones, with nothing lost or doubled
//!   at the seam; `Live` marks the seam once.
//! - **mq42** From a time the blocks received at or after it are shown, then live ones.
//! - **mq43** A cursor of another epoch, or older than what is kept, gives one `Gap` first, then what is kept after it.
//! - **mq44** A history shows one table of one tenant and nothing else.
//! - **mq45** A reader that is too slow for the live blocks is told with a `Gap`, or catches up; it never slows others
//!   and never misses silently.
//! - **mq46** From the seam of a history from `Now` exactly the blocks are shown that this history shows.
//!
//! # Dead letters
//! - **mq50** A parked row is kept over a reopen with all its fields, and listed in the order of parking.
//! - **mq51** The same id parked again is kept once.
//! - **mq52** Parking settles nothing by itself.
//! - **mq53** A purged letter is gone; purging it again, or an unknown one, is no error and is not counted.
//! - **mq54** A tenant's letters have a bound of their own: beyond it the oldest are dropped and counted, and
//!   publishing goes on.
//! - **mq55** Letters are listed by table, page by page, with nothing skipped and nothing doubled between pages, also
//!   when letters are purged or parked meanwhile.
//! - **mq56** `retry_until` comes back as it was given, also after a reopen; a filter finds the letters that are held.
//! - **mq57** A filter by table, code, part of the reason, time and holding gives exactly the letters that match. A
//!   page may hold fewer than its limit, and says where to go on.
//! - **mq58** Letters are found by their ids, in the order asked for; an id that is not there, or another tenant's, is
//!   passed over.
//!
//! # Life
//! - **mq60** After `close` every method answers `Stopping`, waiting ones too, and what was stored is there on reopen.

use crate::{
    Began, BrokerStatus, DeadLetter, DeadLetterId, DeadLetterPage, DeadLetterQuery, From, Happening, Marks, Result,
    Unit, progress::NoMarks,
};
use async_trait::async_trait;
use std::{collections::BTreeSet, fmt::Debug, sync::Arc, time::Duration};
use wh_types::{Block, BlockId, Cursor, Epoch, Table, Tenant};

/// How a publish of one block ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is durable, at this place.
    Stored(Cursor),
    /// Its id was stored before, at this place, within the duplicate window.
    Duplicate(Cursor),
}

impl Receipt {
    /// Where the block stands.
    #[must_use]
    pub fn cursor(self) -> Cursor {
        match self {
            Self::Stored(cursor) | Self::Duplicate(cursor) => cursor,
        }
    }
}

/// What a feed may hold: delivered and not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Rows.
    pub rows: usize,
    /// Bytes of bodies as they were received (compressed).
    pub bytes: usize,
}

/// What a tenant may keep in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes charged to the tenant ([`Block::charge`]). Its dead letters have a tenth of it besides.
    pub bytes: u64,
    /// Bytes of unsettled blocks one table may hold of it.
    pub table_bytes: u64,
    /// How long a settled block stays readable in the history.
    pub history: Duration,
}

/// Names one delivery of one block by one feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AckToken {
    /// Which delivery, in the backend's own counting.
    pub delivery: u64,
    /// The block's sequence in its history.
    pub sequence: u64,
}

/// A block on its way to ClickHouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Settle it by this.
    pub token: AckToken,
    /// Where it stands.
    pub cursor: Cursor,
    /// How often it was delivered, this time included.
    pub attempt: u32,
    /// Never empty: probes are not delivered.
    pub block: Block,
}

/// What became of a delivered block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Inserted or parked: never again.
    Ack,
    /// Not now: deliver it again after the delay.
    Nak {
        /// Zero: at once, behind what is already due.
        delay: Duration,
    },
    /// Still at it: its `ack_wait` begins anew.
    InProgress,
}

/// The queue. One implementation per backend; a wrapper implements every method.
#[async_trait]
pub trait Broker: Debug + Send + Sync {
    /// Stores blocks, one outcome each, in the order given.
    ///
    /// # Contract
    /// mq01–mq10.
    /// # Errors
    /// Each outcome by itself: Invalid (mq08), Exhausted (mq06, mq07, no space), Unavailable (nothing was stored),
    /// Unknown (resolve it under the same id, decision D4), Stopping.
    /// # Cancel safety
    /// Detached. Dropping the future does not undo what was sent; publish again with the same ids.
    /// # Ordering
    /// Blocks of one table are stored in the order given (mq03).
    async fn publish(&self, blocks: &[Block]) -> Vec<Result<Receipt>>;

    /// How long one [`Broker::publish`] may go on trying (decision D4). A caller waits that out and does not publish again
    /// within it: what the backend knows of its own attempts would be lost. Zero: a call is one attempt, and its caller has
    /// the budget.
    fn publish_budget(&self) -> Duration {
        Duration::ZERO
    }

    /// How many rows the id was stored with: `Some(0)` for a probe, `None` when it was not stored within the window.
    ///
    /// # Contract
    /// mq05.
    /// # Errors
    /// Unavailable, Stopping.
    /// # Cancel safety
    /// Safe.
    async fn stored_rows(&self, tenant: &Tenant, table: &Table, id: BlockId, at: Cursor) -> Result<Option<u32>>;

    /// Every unit there is, in a fixed order.
    fn units(&self) -> Vec<Unit>;

    /// Units that exist beyond [`Broker::units`]: left over from a time when there were more. They are to be emptied.
    ///
    /// # Errors
    /// Unavailable, Stopping.
    /// # Cancel safety
    /// Safe.
    async fn extra_units(&self) -> Result<BTreeSet<Unit>> {
        Ok(BTreeSet::new())
    }

    /// Which unit a table's blocks are delivered by.
    fn unit_of(&self, tenant: &Tenant, table: &Table) -> Unit;

    /// The epoch that cursors of a table's blocks have, as it is known now. `None`: it is not known; then nobody can say
    /// whether a block of before belongs to the same history.
    fn epoch_of(&self, _tenant: &Tenant, _table: &Table) -> Option<Epoch> {
        None
    }

    /// Takes a unit.
    ///
    /// # Contract
    /// mq20–mq32.
    /// # Errors
    /// Conflict (mq27), `NotFound` (no such unit), Unavailable, Stopping.
    /// # Cancel safety
    /// Safe.
    async fn feed(&self, unit: Unit, budget: Budget) -> Result<Box<dyn Feed>>;

    /// Makes the blocks of a unit due whose owner is gone.
    ///
    /// # Contract
    /// mq28.
    /// # Errors
    /// Conflict when somebody was active on it, `NotFound`, Unavailable, Stopping.
    /// # Cancel safety
    /// Detached.
    async fn release_orphan(&self, unit: Unit) -> Result<()>;

    /// The units that hold unsettled blocks and have no owner, in one request or a few.
    ///
    /// # Contract
    /// mq29.
    /// # Errors
    /// Unavailable, Stopping.
    /// # Cancel safety
    /// Safe.
    async fn unowned(&self) -> Result<BTreeSet<Unit>>;

    /// How far tables are on their way into the sink: `progress/port.rs` has its clauses.
    fn marks(&self) -> Arc<dyn Marks> {
        Arc::new(NoMarks)
    }

    /// Follows one table.
    ///
    /// # Contract
    /// mq40–mq46.
    /// # Errors
    /// Unavailable, Stopping.
    /// # Cancel safety
    /// Safe.
    async fn history(&self, tenant: &Tenant, table: &Table, from: From) -> Result<Box<dyn History>>;

    /// Parks a row with its reason. Settles nothing.
    ///
    /// # Contract
    /// mq50–mq52, mq54, mq56.
    /// # Errors
    /// Exhausted, Unavailable, Unknown (park it again: the id is the same), Stopping.
    /// # Cancel safety
    /// Detached.
    async fn dead_letter(&self, letters: &[DeadLetter]) -> Vec<Result<()>>;

    /// Lists a tenant's dead letters.
    ///
    /// # Contract
    /// mq50, mq55–mq58.
    /// # Errors
    /// Unavailable, Stopping.
    /// # Cancel safety
    /// Safe.
    async fn dead_letters(&self, tenant: &Tenant, query: &DeadLetterQuery) -> Result<DeadLetterPage>;

    /// Removes dead letters for good; gives how many there were. Without ids it tells whether that can be done here.
    ///
    /// # Contract
    /// mq53.
    /// # Errors
    /// Unsupported (no right to delete), Unavailable, Unknown, Stopping.
    /// # Cancel safety
    /// Detached.
    async fn purge_dead_letters(&self, tenant: &Tenant, ids: &[DeadLetterId]) -> Result<usize>;

    /// Sets what a tenant may keep. Shrinking deletes nothing. Lasts over a reopen.
    ///
    /// # Contract
    /// mq06, mq07, mq11.
    /// # Errors
    /// Unsupported (the operator's stream has the limits), Unavailable, Stopping.
    /// # Cancel safety
    /// Detached.
    async fn set_allowance(&self, tenant: &Tenant, allowance: Allowance) -> Result<()>;

    /// What the queue holds.
    ///
    /// # Errors
    /// Unavailable. Answers also when the queue does not accept; the status then says why.
    /// # Cancel safety
    /// Safe.
    async fn status(&self) -> Result<BrokerStatus>;

    /// Ends every operation and writes down what is worth keeping. Again is a no-op.
    ///
    /// # Contract
    /// mq60.
    /// # Cancel safety
    /// Must finish.
    async fn close(&self);
}

/// One owner's delivery of one unit.
#[async_trait]
pub trait Feed: Debug + Send {
    /// Which unit.
    fn unit(&self) -> Unit;

    /// How far the unit's tables were when it was taken.
    ///
    /// # Contract
    /// mq75.
    fn began(&self) -> Began;

    /// The next block, waiting for one; `None` once halted and everything taken was given, or the broker closed.
    ///
    /// # Contract
    /// mq20, mq22–mq25, mq30.
    /// # Errors
    /// One error ends delivery for good (durable or stream gone, Corrupt); after it `None`.
    /// # Cancel safety
    /// Safe.
    async fn next(&mut self) -> Result<Option<Delivery>>;

    /// A handle for settling that other tasks may hold. It outlives the feed, and is `Fenced` after `release`.
    fn settle(&self) -> Arc<dyn Settle>;

    /// Changes what the feed may hold. Takes nothing back.
    fn set_budget(&mut self, budget: Budget);

    /// Most blocks of the unit that may be unsettled, those nak'd with a delay included: at so many it stands still.
    /// `None`: there is no such bound.
    fn max_unsettled(&self) -> Option<usize> {
        None
    }

    /// Stops taking; the unit stays ours.
    ///
    /// # Contract
    /// mq25.
    /// # Errors
    /// Unavailable, Stopping.
    /// # Cancel safety
    /// Detached.
    async fn halt(&mut self) -> Result<()>;

    /// Gives the unit up. What is unsettled goes to the next owner at once.
    ///
    /// # Contract
    /// mq26.
    /// # Errors
    /// Unavailable: the unit frees itself later.
    /// # Cancel safety
    /// Must finish.
    async fn release(self: Box<Self>) -> Result<()>;
}

/// Settles deliveries of one feed.
#[async_trait]
pub trait Settle: Debug + Send + Sync {
    /// Says what became of deliveries, one outcome each.
    ///
    /// An `Ack` need not be durable when this returns: a crash only delivers the block again.
    ///
    /// # Contract
    /// mq21–mq23, mq32.
    /// # Errors
    /// Each outcome by itself: Fenced (mq26), Unavailable, Unknown.
    /// # Cancel safety
    /// Detached.
    async fn settle(&self, tokens: &[AckToken], verdict: Verdict) -> Vec<Result<()>>;
}

/// One reader's way through one table's blocks.
#[async_trait]
pub trait History: Debug + Send {
    /// Where it becomes live, as known when it was opened (mq46). `None`: the backend cannot say.
    fn seam(&self) -> Option<Cursor> {
        None
    }

    /// What comes next, waiting for it; `None` when the broker closed.
    ///
    /// # Contract
    /// mq40–mq45.
    /// # Errors
    /// Corrupt, Unavailable: the reader may open another history after the last cursor it saw.
    /// # Cancel safety
    /// Safe.
    async fn next(&mut self) -> Result<Option<Happening>>;
}
