//! What is stored, and where.

use bytes::Bytes;
use std::fmt;
use wh_types::Timestamp;

/// Most bytes of [`Record::meta`].
pub const MAX_META_BYTES: usize = u16::MAX as usize;

/// A record to append. Borrowed: it is copied into its group when it is submitted.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The caller's own kinds.
    pub kind: u8,
    /// Which stream it belongs to, in the caller's numbering. Footers say for each stream of a segment which sequences
    /// are in it.
    pub stream: u64,
    /// Its place in the stream, in the caller's counting. The log orders by append, not by this.
    pub sequence: u64,
    /// The caller's time of it, for the footers' time index.
    pub time: Timestamp,
    /// What is needed to rebuild an index without reading bodies. At most [`MAX_META_BYTES`].
    pub meta: &'a [u8],
    /// The rest, as one or more pieces that are stored end to end.
    pub body: &'a [&'a [u8]],
}

/// A record's fixed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The caller's kind.
    pub kind: u8,
    /// The stream.
    pub stream: u64,
    /// The place in the stream.
    pub sequence: u64,
    /// The caller's time.
    pub time: Timestamp,
    /// Bytes of meta.
    pub meta_len: u16,
    /// Bytes of body.
    pub body_len: u32,
}

/// Where a record stands. Stays valid until its segment is retired.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The segment's number. Grows for ever; never used twice.
    pub segment: u64,
    /// Where the record begins in the segment's file.
    pub offset: u32,
    /// Bytes it takes there, header included, padding not.
    pub len: u32,
}

/// A boundary in the log: everything before it, or from it on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The segment's number.
    pub segment: u64,
    /// Where in its file.
    pub offset: u32,
}

impl Position {
    /// Before the first record.
    pub const START: Self = Self { segment: 0, offset: 0 };
}

impl Place {
    /// Where the record begins.
    #[must_use]
    pub fn position(self) -> Position {
        Position { segment: self.segment, offset: self.offset }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} offset {} ({} bytes)", self.segment, self.offset, self.len)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}+{}", self.segment, self.offset, self.len)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} offset {}", self.segment, self.offset)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}

/// A record met while scanning. Borrowed from the scan's buffer.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    /// Where it stands.
    pub place: Place,
    /// Its fixed fields.
    pub head: Head,
    /// Its meta, verified.
    pub meta: &'a [u8],
    /// Its body, verified; `None` where the scan leaves bodies out.
    pub body: Option<&'a [u8]>,
}

/// A record read back by its place, verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its fixed fields.
    pub head: Head,
    /// Its meta.
    pub meta: Bytes,
    /// Its body.
    pub body: Bytes,
}
