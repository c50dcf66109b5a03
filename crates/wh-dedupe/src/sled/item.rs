//! What stands in the two trees, under the first 16 bytes of the SHA-256 of a key's text. All numbers are little-endian.
//!
//! * `claims`: token (16 bytes), stream u32, epoch u32, block id (16 bytes), at i64 in ms, lease u32 in ms, then what the
//!   key was claimed with.
//! * `known`: the second since 1970 from which on it is forgotten as u32 (4,294,967,295 is never), the token of who
//!   committed it (16 bytes), then what it was claimed with.

use crate::{Origin, Token};
use bytes::Bytes;
use std::time::Duration;
use wh_types::{BlockId, Epoch, Timestamp};

/// A committed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) until: u32,
    pub(super) token: Token,
    pub(super) payload: Bytes,
}

impl Known {
    pub(super) fn encode(&self) -> Vec<u8> {
        [&self.until.to_le_bytes()[..], &self.token.0, &self.payload].concat()
    }

    /// `None`: it is none of ours.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (until, rest) = bytes.split_first_chunk()?;
        let (token, payload) = rest.split_first_chunk()?;
        let payload = Bytes::copy_from_slice(payload);
        Some(Self { until: u32::from_le_bytes(*until), token: Token(*token), payload })
    }
}

pub(super) fn claim(token: Token, origin: &Origin, payload: &[u8]) -> Vec<u8> {
    let lease = u32::try_from(origin.lease.as_millis()).unwrap_or(u32::MAX);
    let at = origin.at.as_nanos().div_euclid(1_000_000);
    [
        &token.0[..],
        &origin.stream.to_le_bytes(),
        &origin.epoch.0.to_le_bytes(),
        &origin.block.0,
        &at.to_le_bytes(),
        &lease.to_le_bytes(),
        payload,
    ]
    .concat()
}

/// `None`: it is none of ours.
pub(super) fn read_claim(bytes: &[u8]) -> Option<(Token, Origin, Bytes)> {
    let (token, rest) = bytes.split_first_chunk()?;
    let (stream, rest) = rest.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (block, rest) = rest.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let (lease, payload) = rest.split_first_chunk()?;
    let origin = Origin {
        stream: u32::from_le_bytes(*stream),
        epoch: Epoch(u32::from_le_bytes(*epoch)),
        block: BlockId(*block),
        at: Timestamp::from_millis(i64::from_le_bytes(*at)),
        lease: Duration::from_millis(u64::from(u32::from_le_bytes(*lease))),
    };
    Some((Token(*token), origin, Bytes::copy_from_slice(payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_they_are_written() {
        let known = Known { until: 7, token: Token([4; 16]), payload: Bytes::from_static(b"p") };
        let written = known.encode();
        assert_eq!(Known::decode(&written), Some(known));
        assert_eq!(Known::decode(&written[..19]), None);
        let origin = Origin {
            stream: 1,
            epoch: Epoch(2),
            block: BlockId([3; 16]),
            at: Timestamp::from_millis(1_750_000_000_123),
            lease: Duration::from_millis(600),
        };
        let written = claim(Token([5; 16]), &origin, b"q");
        assert_eq!(read_claim(&written), Some((Token([5; 16]), origin, Bytes::from_static(b"q"))));
        assert_eq!(read_claim(&written[..51]), None);
    }
}
