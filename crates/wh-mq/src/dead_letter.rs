//! A row ClickHouse refused for good, kept with its reason (decision D5). Not how it is stored.

use bytes::Bytes;
use std::fmt;
use wh_types::{RowCursor, Table, Tenant, Timestamp};

/// Identifies a dead letter: where the row stood in the queue. The same row parked twice is one dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadLetterId(pub RowCursor);

impl fmt::Display for DeadLetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A parked row, or a whole block that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it stood.
    pub id: DeadLetterId,
    /// Whose row it is.
    pub tenant: Tenant,
    /// The table it was for.
    pub table: Table,
    /// The row's own text; for an unreadable block its body as it was stored.
    pub body: Bytes,
    /// Why, in words: what ClickHouse said, or what was unreadable.
    pub reason: String,
    /// ClickHouse's exception code, or one of ours (`block.unreadable`).
    pub code: String,
    /// The column at fault, where the reason named one.
    pub column: Option<String>,
    /// When the insert was refused.
    pub attempted: Timestamp,
    /// When the row came in.
    pub received: Timestamp,
}

/// Which dead letters to list.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterQuery {
    /// Only this table's.
    pub table: Option<Table>,
    /// Only those after this one, in the order of parking.
    pub after: Option<DeadLetterId>,
    /// At most so many; 0 counts as 1.
    pub limit: usize,
}

/// Some dead letters, oldest first.
#[derive(Clone, Debug, Default)]
pub struct DeadLetterPage {
    /// At most `limit` of them.
    pub letters: Vec<DeadLetter>,
    /// Whether there are more after the last one.
    pub more: bool,
}
