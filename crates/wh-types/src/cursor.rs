//! A place in one history: epoch and sequence, and the row within the block.

use std::{fmt, str::FromStr};

/// Which history a sequence counts in. 32 bits, written as 8 hex digits. A stream that is made anew has a new epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// Orders the blocks of one history and survives restarts; a client may hold one for days (decision D21).
///
/// Sequences begin at 1; 0 is "before the first block".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The history it counts in.
    pub epoch: Epoch,
    /// The block's place.
    pub sequence: u64,
}

/// One row's place: `<epoch>-<sequence>.<row>`, the `id:` of a live event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowCursor {
    /// The block.
    pub block: Cursor,
    /// The row in it, from 0.
    pub row: u32,
}

/// The text is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cursor has the form <8 hex digits>-<sequence>[.<row>]")]
pub struct CursorError;

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.sequence)
    }
}

impl fmt::Display for RowCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.block, self.row)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Debug for RowCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;
    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (epoch, sequence) = text.split_once('-').ok_or(CursorError)?;
        // from_str_radix and parse would also take a sign
        let digits =
            |t: &str, hex: bool| t.bytes().all(|b| if hex { b.is_ascii_hexdigit() } else { b.is_ascii_digit() });
        if epoch.len() != 8 || !digits(epoch, true) || !digits(sequence, false) {
            return Err(CursorError);
        }
        Ok(Self {
            epoch: Epoch(u32::from_str_radix(epoch, 16).map_err(|_| CursorError)?),
            sequence: sequence.parse().map_err(|_| CursorError)?,
        })
    }
}

impl FromStr for RowCursor {
    type Err = CursorError;
    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (block, row) = text.split_once('.').ok_or(CursorError)?;
        if !row.bytes().all(|b| b.is_ascii_digit()) {
            return Err(CursorError);
        }
        Ok(Self { block: block.parse()?, row: row.parse().map_err(|_| CursorError)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_written_and_read_back() {
        let row = RowCursor { block: Cursor { epoch: Epoch(0xab), sequence: 17 }, row: 3 };
        assert_eq!(row.to_string(), "000000ab-17.3");
        assert_eq!("000000ab-17.3".parse(), Ok(row));
        assert_eq!("000000ab-17".parse(), Ok(row.block));
        for bad in
            ["", "-1.0", "ab-1.0", "000000ab-1.", "000000ab-+1.0", "+00000ab-1.0", "000000ab-99999999999999999999.0"]
        {
            assert_eq!(bad.parse::<RowCursor>(), Err(CursorError), "{bad:?}");
        }
    }
}
