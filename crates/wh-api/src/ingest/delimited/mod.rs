//! CSV and TSV: lines of cells that become the JSON text of a row, by the type of each cell's column.
//!
//! A body is walked twice: first each record is judged and only the first piece of rows is kept, and when all of it was
//! read the other rows are made, a piece at a time. So a body is checked to its end before anything of it is published,
//! and what is held stays small however long the columns' names are.

mod cell;
mod csv;
mod layout;
mod split;
#[cfg(test)]
mod tests;
mod tsv;
mod walk;

pub(crate) use walk::{Piece, Sheet};

/// How a body of cells is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) syntax: Syntax,
    pub(crate) header: Header,
}

/// How cells are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// RFC 4180.
    Csv,
    /// Tabs between cells, escapes with a backslash, as ClickHouse writes `TabSeparated`.
    Tsv,
}

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Present,
    Absent,
    /// The sender did not say. It is one if all of its cells are names of columns; where only some are, nobody can
    /// tell, and the body is refused.
    Unsaid,
}
