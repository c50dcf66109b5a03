//! How far the rows of a table are (decision D32): marks, what is known from them, and who reads it. Says nothing about
//! the queue's own order; the port is in `port.rs`.

#[cfg(any(feature = "embedded", feature = "sim", feature = "nats"))]
mod board;
#[cfg(any(feature = "embedded", feature = "sim", feature = "nats"))]
mod known;
mod none;
mod port;
mod reader;

#[cfg(any(feature = "embedded", feature = "sim", feature = "nats"))]
pub(crate) use board::Board;
pub(crate) use none::NoMarks;
pub use port::Marks;
pub use reader::Reader;

use wh_types::{Epoch, Table, Tenant};

/// Most parked rows that one mark names.
pub const MOST_PARKED: usize = 256;

/// A mark: how far one table is, as whoever inserts its rows says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Whose table.
    pub tenant: Tenant,
    /// Which.
    pub table: Table,
    /// The history its sequences count in.
    pub epoch: Epoch,
    /// Every block of the table up to here is inserted or parked.
    pub committed: u64,
    /// The highest block in any insert that was begun and not answered for good; never below `committed`. Between the
    /// two, nobody can say what a query sees.
    pub inserting: u64,
    /// Rows parked of late, by place. In a mark at most [`MOST_PARKED`]; what is known from many has some more.
    pub parked: Vec<ParkedRow>,
    /// Of blocks beyond this one and up to `committed`, every row that was parked is in `parked`.
    pub named_after: u64,
    /// Who says so: one term of one unit. 0: the queue itself.
    pub owner: u64,
    /// Counts the owner's marks.
    pub number: u64,
}

/// A row that is in the dead letters, or was dropped where there are none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParkedRow {
    /// Its block.
    pub sequence: u64,
    /// The row in it, from 0.
    pub row: u32,
    /// Why, as the dead letter has it.
    pub code: Box<str>,
}

/// How far a table is by what the queue itself knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// The history that the sequences count in.
    pub epoch: Epoch,
    /// Every block up to here is settled.
    pub settled: u64,
    /// No block beyond here was delivered; never below `settled`.
    pub delivered: u64,
}

/// A unit as it was when its feed took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// How far the unit's tables were.
    pub floor: Floor,
    /// Whether unsettled blocks come again before any other, in their order. Else one may come late, and only a new
    /// [`Marks::floor`] tells that there is none any more.
    pub in_order: bool,
}
