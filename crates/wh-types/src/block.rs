//! The unit of queueing, delivery and settling: 0–500 rows of one tenant and table (decision D1).

use crate::{Entropy, Table, Tenant, Timestamp};
use bytes::Bytes;
use std::{fmt, str::FromStr, sync::Arc};

/// Most rows a block may hold.
pub const MAX_BLOCK_ROWS: u32 = 500;
/// Decoded bytes a block of many rows aims at; only a single large row may exceed it.
pub const TARGET_BLOCK_BYTES: usize = 512 * 1024;

/// How a block's body is compressed. Frames of one encoding concatenate; two encodings never share an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// One zstd frame (RFC 8878).
    Zstd,
    /// One LZ4 frame (the frame format, not the block format).
    Lz4,
}

impl Encoding {
    /// The value of `Content-Encoding` and of the header `Wh-Encoding`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }
}

impl FromStr for Encoding {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "zstd" => Ok(Self::Zstd),
            "lz4" => Ok(Self::Lz4),
            _ => Err(()),
        }
    }
}

/// 16 random bytes, drawn when a block is cut and kept for every resend of the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub [u8; 16]);

impl BlockId {
    /// Draws a fresh id.
    pub fn draw(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&entropy.next_u64().to_le_bytes());
        bytes[8..].copy_from_slice(&entropy.next_u64().to_le_bytes());
        Self(bytes)
    }

    /// Reads 32 hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 32];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which block of one publishing process and table this is (`Wh-Chain`): a jump in `n` on replay is a gap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    /// The publishing process.
    pub process: Arc<str>,
    /// Counts the blocks of this process and table that are known to be stored.
    pub n: u64,
}

/// A block as it is published and delivered.
///
/// `body` is one compressed frame of NDJSON, every row ending in a line feed, so bodies concatenate. A block of no
/// rows is the probe of decision D4: it is stored, never inserted.
#[derive(Clone, PartialEq, Eq)]
pub struct Block {
    /// Stable over resends: a broker stores one id once within its duplicate window.
    pub id: BlockId,
    /// Whose rows they are.
    pub tenant: Tenant,
    /// The table they go to.
    pub table: Table,
    /// When the first row came.
    pub received: Timestamp,
    /// Rows in the body, 0–[`MAX_BLOCK_ROWS`].
    pub rows: u32,
    /// Bytes of the decoded body.
    pub decoded_bytes: u32,
    /// How the body is compressed.
    pub encoding: Encoding,
    /// One frame.
    pub body: Bytes,
    /// The publisher's count, for finding gaps.
    pub chain: Option<Chain>,
    /// W3C `traceparent` of the first request, where it had one.
    pub trace: Option<Arc<str>>,
}

impl Block {
    /// The empty block of decision D4 under its id, whose outcome is unknown.
    #[must_use]
    pub fn probe(&self) -> Self {
        Self::empty(self.id, self.tenant.clone(), self.table.clone(), self.received)
    }

    /// The empty block of decision D4 under this id, where only that is left of the block.
    #[must_use]
    pub fn empty(id: BlockId, tenant: Tenant, table: Table, received: Timestamp) -> Self {
        Self {
            id,
            tenant,
            table,
            received,
            rows: 0,
            decoded_bytes: 0,
            encoding: Encoding::Zstd,
            body: Bytes::new(),
            chain: None,
            trace: None,
        }
    }

    /// Bytes this block is charged for in budgets: its body and a fixed sum for its envelope.
    #[must_use]
    pub fn charge(&self) -> usize {
        self.body.len() + 128
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, tenant, table, rows, body, .. } = self;
        write!(f, "Block({id} {tenant}.{table} rows={rows} bytes={})", body.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededEntropy;

    #[test]
    fn ids_are_drawn_from_the_given_entropy_and_read_back() {
        let (a, b) = (SeededEntropy::new(1), SeededEntropy::new(1));
        let id = BlockId::draw(&a);
        assert_eq!(id, BlockId::draw(&b), "the same seed draws the same id");
        assert_ne!(id, BlockId::draw(&a));
        assert_eq!(BlockId::parse(&id.to_string()), Some(id));
        assert_eq!(BlockId::parse("zz"), None);
        assert_eq!(BlockId::parse(&"é".repeat(16)), None);
    }
}
