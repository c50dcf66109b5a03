//! What is stored: versions, and answers with the versions they stand on.
//!
//! A version is eight random bytes. An answer: format byte 2, flag byte (bit 0: zstd), when it was put and when its time
//! is over (each eight bytes, big-endian milliseconds of Unix time), the count of versions (two bytes), the versions, the
//! payload. A packed payload begins with its unpacked size (four bytes).

use crate::{Error, Kind, Result};
use bytes::{BufMut as _, Bytes, BytesMut};
use std::time::Duration;

const FORMAT: u8 = 2;
const ZSTD: u8 = 1;
const HEAD: usize = 1 + 1 + 8 + 8 + 2;
/// How much larger than the largest answer a stored one may become when it is decoded.
const GROWTH: usize = 8;

/// An answer as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) versions: Vec<u64>,
    /// Milliseconds of Unix time.
    pub(super) put: u64,
    pub(super) until: u64,
    packed: bool,
    payload: Bytes,
}

pub(super) fn version(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

pub(super) fn encode(versions: &[u64], put: u64, ttl: Duration, value: &[u8], pack_from: usize) -> Bytes {
    let packed = (value.len() >= pack_from).then(|| zstd::bulk::compress(value, 1).ok()).flatten();
    let packed = packed.filter(|packed| packed.len() < value.len());
    let payload = packed.as_deref().unwrap_or(value);
    let mut to = BytesMut::with_capacity(HEAD + 8 * versions.len() + payload.len());
    to.put_u8(FORMAT);
    to.put_u8(if packed.is_some() { ZSTD } else { 0 });
    to.put_u64(put);
    to.put_u64(put.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)));
    // a view has at most 1 + 2 × 64
    to.put_u16(u16::try_from(versions.len()).unwrap_or(u16::MAX));
    versions.iter().for_each(|version| to.put_u64(*version));
    if packed.is_some() {
        to.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
    }
    to.put_slice(payload);
    to.freeze()
}

pub(super) fn decode(bytes: &Bytes) -> Result<Stored> {
    let corrupt = |why: &'static str| Error::new("decode", Kind::Corrupt(why.into()));
    let head = bytes.first_chunk::<HEAD>().ok_or_else(|| corrupt("an answer is cut short"))?;
    let u64_at = |at: usize| head[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    if head[0] != FORMAT || head[1] & !ZSTD != 0 {
        return Err(corrupt("an answer is of another format"));
    }
    let count = usize::from(u16::from_be_bytes([head[18], head[19]]));
    let end = HEAD + 8 * count;
    let versions = bytes.get(HEAD..end).ok_or_else(|| corrupt("an answer is cut short"))?;
    let versions = versions.chunks_exact(8).filter_map(version).collect();
    Ok(Stored { versions, put: u64_at(2), until: u64_at(10), packed: head[1] & ZSTD != 0, payload: bytes.slice(end..) })
}

impl Stored {
    /// The answer itself.
    pub(super) fn value(self, largest: usize) -> Result<Bytes> {
        if !self.packed {
            return Ok(self.payload);
        }
        let cut = || Error::new("decode", Kind::Corrupt("an answer is cut short".into()));
        let (size, packed) = self.payload.split_first_chunk().ok_or_else(cut)?;
        // as much as is needed is taken, not as much as is allowed
        let size = usize::try_from(u32::from_be_bytes(*size)).unwrap_or(usize::MAX);
        let unpacked = zstd::bulk::decompress(packed, size.min(largest.saturating_mul(GROWTH)));
        unpacked.map(Bytes::from).map_err(|error| {
            Error::new("decode", Kind::Corrupt("an answer cannot be unpacked".into())).with_source(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TTL: Duration = Duration::from_secs(60);

    proptest! {
        #[test]
        fn an_answer_comes_back_as_it_was(
            value: Vec<u8>, versions in prop::collection::vec(any::<u64>(), 0..129), pack_from in 0..2_000_usize
        ) {
            let stored = decode(&encode(&versions, 1_000, TTL, &value, pack_from)).unwrap();
            prop_assert_eq!((&stored.versions, stored.put, stored.until), (&versions, 1_000, 61_000));
            prop_assert_eq!(stored.value(1 << 20).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_an_answer_or_an_error(mut bytes: Vec<u8>, magic: bool) {
            if magic && bytes.len() > 1 {
                bytes[0] = FORMAT;
                bytes[1] = ZSTD;
            }
            if let Ok(stored) = decode(&bytes.into()) {
                _ = stored.value(1_000);
            }
        }
    }

    #[test]
    fn what_would_grow_too_large_is_refused() {
        let stored = || decode(&encode(&[1], 0, TTL, &vec![0; 100_000], 0)).unwrap();
        assert!(stored().packed && stored().payload.len() < 1_000);
        assert_eq!(stored().value(12_500).unwrap().len(), 100_000);
        assert_eq!(stored().value(12_000).unwrap_err().code(), "cache.corrupt");
    }
}
