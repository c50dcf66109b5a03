//! Places in the stream of a table, as clients hold them. Pure.

use std::{fmt, str::FromStr};
use wh_types::{Cursor, CursorError, RowCursor, Timestamp};

/// Up to where a client has every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// A block, of this table or of another one in the same history.
    pub(super) block: Cursor,
    /// The last row of it that the client has.
    row: Option<u32>,
    /// It is known that no more rows of the block follow.
    whole: bool,
}

impl Position {
    /// Behind a block, or behind everything up to its place.
    pub(super) fn behind(block: Cursor) -> Self {
        Self { block, row: None, whole: true }
    }

    /// Behind a block that had so many rows.
    pub(super) fn behind_rows(block: Cursor, rows: u32) -> Self {
        Self { block, row: rows.checked_sub(1), whole: true }
    }

    /// After which block the first one may have rows that are new.
    pub(super) fn before(self) -> Cursor {
        let sequence = self.block.sequence.saturating_sub(u64::from(!self.whole));
        Cursor { sequence, ..self.block }
    }

    /// The first row of this block that is beyond; `None`: the whole block is not. Blocks of another epoch are beyond.
    pub(super) fn first_row(self, block: Cursor) -> Option<u32> {
        if block.epoch != self.block.epoch || block.sequence > self.block.sequence {
            Some(0)
        } else if block == self.block && !self.whole {
            Some(self.row.map_or(0, |row| row.saturating_add(1)))
        } else {
            None
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            Some(row) => RowCursor { block: self.block, row }.fmt(f),
            None => self.block.fmt(f),
        }
    }
}

impl FromStr for Position {
    type Err = CursorError;
    fn from_str(text: &str) -> Result<Self, CursorError> {
        let row = |at: RowCursor| Self { block: at.block, row: Some(at.row), whole: false };
        text.parse().map(row).or_else(|_| text.parse().map(Self::behind))
    }
}

/// Where a client's reading of a table begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// With what is stored from now on.
    Now,
    /// After what it has.
    After(Position),
    /// With what was received at or after this time.
    Since(Timestamp),
    /// It was here before, and nobody knows where.
    Lost,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(position) => position.fmt(f),
            Self::Since(time) => time.fmt(f),
            Self::Now | Self::Lost => Ok(()),
        }
    }
}

/// Most characters that can be a place in one table: anything longer is none.
const LONGEST: usize = 64;

impl Origin {
    /// One table's part of an id.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::Lost);
        }
        if text.len() > LONGEST {
            return None;
        }
        text.parse().map(Self::After).ok().or_else(|| text.parse().map(Self::Since).ok())
    }

    /// An id over so many tables.
    pub(super) fn parse_all(text: &str, tables: usize) -> Option<Vec<Self>> {
        let all: Vec<_> = text.split(',').take(tables + 1).map(Self::parse).collect::<Option<_>>()?;
        (all.len() == tables).then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::Epoch;

    fn cursor(epoch: u32, sequence: u64) -> Cursor {
        Cursor { epoch: Epoch(epoch), sequence }
    }

    #[test]
    fn ids_are_written_and_read_back() {
        let row = Origin::After("000000ab-7.3".parse().unwrap());
        let block = Origin::After(Position::behind(cursor(0xab, 7)));
        for (text, origin) in [
            ("000000ab-7.3", row),
            ("000000ab-7", block),
            ("2026-01-01T00:00:00.000000000Z", Origin::Since("2026-01-01T00:00:00Z".parse().unwrap())),
            ("", Origin::Lost),
        ] {
            assert_eq!(Origin::parse(text), Some(origin), "{text}");
            assert_eq!(origin.to_string(), text);
        }
        for text in ["yesterday", "ab-7.3", "000000ab-7.", "000000ab-7.3 ", "5m", &"0".repeat(65)] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
        assert_eq!(Origin::parse_all("000000ab-7.3,,000000ab-7", 3), Some(vec![row, Origin::Lost, block]));
        for (text, tables) in [("000000ab-7.3", 2), ("000000ab-7.3,", 1), ("a,b", 2)] {
            assert_eq!(Origin::parse_all(text, tables), None, "{text}");
        }
    }

    #[test]
    fn a_position_knows_what_is_beyond_it() {
        let row: Position = "00000001-7.3".parse().unwrap();
        assert_eq!(row.before(), cursor(1, 6));
        let first = |at: Position, blocks: [(u32, u64); 4]| blocks.map(|(e, s)| at.first_row(cursor(e, s)));
        let blocks = [(1, 6), (1, 7), (1, 8), (2, 1)];
        assert_eq!(first(row, blocks), [None, Some(4), Some(0), Some(0)]);
        for whole in [Position::behind(cursor(1, 7)), Position::behind_rows(cursor(1, 7), 4)] {
            assert_eq!(whole.before(), cursor(1, 7));
            assert_eq!(first(whole, blocks), [None, None, Some(0), Some(0)]);
        }
        assert_eq!(Position::behind_rows(cursor(1, 7), 4).to_string(), "00000001-7.3", "as its last row's id");
    }
}
