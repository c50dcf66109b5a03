//! The contract of progress marks, as clauses: how far the rows of each table are on their way into the sink (decision
//! D32). Whoever inserts says it, whoever serves hears it; nothing of it is stored. `tests/conformance` has a case for
//! each clause, as for the queue's.
//!
//! # Marks
//! - **mq70** A reader gets at once what is known of its table, then what becomes known. What it gets is never older than
//!   what it got: `committed` of one epoch never falls.
//! - **mq71** A mark that was announced is known to every process that serves, after [`Marks::hear`] for sure, and to
//!   readers of its own tenant and table only.
//! - **mq72** Marks may come late, twice or in another order: one of an owner that is not newer than its last changes
//!   nothing.
//! - **mq73** A reader that missed marks between still sees their parked rows, until there are too many; `named_after`
//!   says from where on they are all named.
//! - **mq74** `floor` says of a table without a mark how far the queue itself knows it to be: every block up to `settled`
//!   is settled, and none beyond `delivered` was delivered. Readers of the table get it as a mark.
//! - **mq75** [`crate::Feed::began`] says this of the unit as it was when the feed took it: what an owner before was given
//!   is within `delivered`, also where its blocks were made due since.
//! - **mq76** A reader that is not asked holds nobody up. After `close` readers end, and the other methods answer `Stopping`.

use super::{Floor, Progress, Reader};
use crate::Result;
use async_trait::async_trait;
use std::fmt::Debug;
use wh_types::{Table, Tenant};

/// How far tables are, said and heard.
#[async_trait]
pub trait Marks: Debug + Send + Sync {
    /// Says how far tables are. When it returns, the marks are on their way to every process: what is done afterwards is
    /// done after them.
    ///
    /// # Contract
    /// mq71, mq72, mq76.
    /// # Errors
    /// Unavailable and Unknown (a later mark makes up for it), Stopping.
    /// # Cancel safety
    /// Detached.
    async fn announce(&self, marks: &[Progress]) -> Result<()>;

    /// Follows one table's marks.
    ///
    /// # Contract
    /// mq70, mq71, mq73, mq76.
    /// # Errors
    /// Unsupported (this process does not serve), Stopping.
    fn watch(&self, tenant: &Tenant, table: &Table) -> Result<Reader>;

    /// Returns once every mark is known here that was announced before.
    ///
    /// # Contract
    /// mq71.
    /// # Errors
    /// Unsupported (this process does not serve), Unavailable, Unknown, Stopping.
    /// # Cancel safety
    /// Safe.
    async fn hear(&self) -> Result<()>;

    /// How far a table is by what the queue itself knows. Where many ask, the answer may be a second old.
    ///
    /// # Contract
    /// mq74.
    /// # Errors
    /// Unavailable, Unknown, `NotFound`, Denied, Stopping.
    /// # Cancel safety
    /// Safe.
    async fn floor(&self, tenant: &Tenant, table: &Table) -> Result<Floor>;
}
