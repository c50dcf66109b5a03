//! What stands in the log. `docs/dedupe-format.md` has the bytes.
//!
//! Every record has a list of key hashes; claims and commits have what was claimed with them. The last record that
//! names a key says what the key is.

use crate::{Origin, Token, hash::KeyHash};
use bytes::Bytes;
use std::time::Duration;
use wh_types::{BlockId, Epoch, Timestamp};

/// Keys were claimed.
pub(super) const CLAIMED: u8 = 1;
/// Keys were committed.
pub(super) const COMMITTED: u8 = 2;
/// Keys were released.
pub(super) const RELEASED: u8 = 3;

const CLAIM_META: usize = 4 + 16 + 4 + 4 + 16 + 8 + 4;

/// A list of keys on its way into a record.
#[derive(Debug, Default)]
pub(super) struct Keys {
    count: u32,
    hashes: Vec<u8>,
    payloads: Vec<u8>,
}

impl Keys {
    pub(super) fn with_capacity(keys: usize) -> Self {
        Self { hashes: Vec::with_capacity(keys * 16), ..Self::default() }
    }

    pub(super) fn push(&mut self, hash: KeyHash, payload: &[u8]) {
        if !payload.is_empty() {
            self.payloads.extend_from_slice(&self.count.to_le_bytes());
            // at most MAX_PAYLOAD
            self.payloads.push(u8::try_from(payload.len()).unwrap_or(u8::MAX));
            self.payloads.extend_from_slice(payload);
        }
        self.hashes.extend_from_slice(&hash.0);
        self.count += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The record's body.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.hashes, &self.payloads]
    }

    pub(super) fn claimed(&self, token: Token, origin: &Origin) -> Vec<u8> {
        let mut meta = Vec::with_capacity(CLAIM_META);
        meta.extend_from_slice(&self.count.to_le_bytes());
        meta.extend_from_slice(&token.0);
        meta.extend_from_slice(&origin.stream.to_le_bytes());
        meta.extend_from_slice(&origin.epoch.0.to_le_bytes());
        meta.extend_from_slice(&origin.block.0);
        meta.extend_from_slice(&(origin.at.as_nanos() / 1_000_000).to_le_bytes());
        let lease = u32::try_from(origin.lease.as_millis()).unwrap_or(u32::MAX);
        meta.extend_from_slice(&lease.to_le_bytes());
        meta
    }

    pub(super) fn committed(&self, until: u32) -> Vec<u8> {
        [self.count.to_le_bytes(), until.to_le_bytes()].concat()
    }

    pub(super) fn released(&self) -> Vec<u8> {
        self.count.to_le_bytes().to_vec()
    }
}

/// What a record says of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Claimed(Token, Origin),
    Committed { until: u32 },
    Released,
}

/// A record as it was read.
#[derive(Debug)]
pub(super) struct Read<'a> {
    pub(super) said: Said,
    hashes: &'a [u8],
    payloads: &'a [u8],
}

impl<'a> Read<'a> {
    /// `None`: it is none of ours.
    pub(super) fn decode(kind: u8, meta: &[u8], body: &'a [u8]) -> Option<Self> {
        let mut meta = Bits(meta);
        let count = usize::try_from(meta.u32()?).ok()?;
        let said = match kind {
            CLAIMED => {
                let token = Token(meta.array()?);
                let (stream, epoch, block) = (meta.u32()?, Epoch(meta.u32()?), BlockId(meta.array()?));
                let at = Timestamp::from_millis(i64::from_le_bytes(meta.array()?));
                let lease = Duration::from_millis(u64::from(meta.u32()?));
                Said::Claimed(token, Origin { stream, epoch, block, at, lease })
            }
            COMMITTED => Said::Committed { until: meta.u32()? },
            RELEASED => Said::Released,
            _ => return None,
        };
        let (hashes, payloads) = body.split_at_checked(count.checked_mul(16)?)?;
        Some(Self { said, hashes, payloads })
    }

    /// Its keys, each with its payload.
    pub(super) fn keys(&self) -> impl Iterator<Item = (KeyHash, Bytes)> + use<'a> {
        let mut payloads = Bits(self.payloads);
        let mut next = payloads.payload();
        self.hashes.chunks_exact(16).enumerate().map(move |(index, hash)| {
            let mut own = [0; 16];
            own.copy_from_slice(hash);
            let payload = match next {
                Some((of, payload)) if of == index => {
                    next = payloads.payload();
                    Bytes::copy_from_slice(payload)
                }
                _ => Bytes::new(),
            };
            (KeyHash(own), payload)
        })
    }
}

struct Bits<'a>(&'a [u8]);

impl<'a> Bits<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn payload(&mut self) -> Option<(usize, &'a [u8])> {
        let index = usize::try_from(self.u32()?).ok()?;
        let len = usize::from(*self.take(1)?.first()?);
        Some((index, self.take(len)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let origin = Origin {
            stream: 7,
            epoch: Epoch(9),
            block: BlockId([3; 16]),
            at: Timestamp::from_millis(1_750_478_400_001),
            lease: Duration::from_millis(1_500),
        };
        let mut keys = Keys::default();
        let all = [([1; 16], &b""[..]), ([2; 16], b"two"), ([3; 16], b""), ([4; 16], &[9; 64])];
        for (hash, payload) in all {
            keys.push(KeyHash(hash), payload);
        }
        let body = keys.parts().concat();
        let metas = [
            (CLAIMED, keys.claimed(Token([5; 16]), &origin), Said::Claimed(Token([5; 16]), origin)),
            (COMMITTED, keys.committed(77), Said::Committed { until: 77 }),
            (RELEASED, keys.released(), Said::Released),
        ];
        for (kind, meta, said) in metas {
            let read = Read::decode(kind, &meta, &body).unwrap();
            assert_eq!(read.said, said);
            let keys: Vec<_> = read.keys().map(|(hash, payload)| (hash.0, payload.to_vec())).collect();
            let wanted: Vec<_> = all.iter().map(|(hash, payload)| (*hash, payload.to_vec())).collect();
            assert_eq!(keys, wanted);
            assert!(Read::decode(kind, &meta[..meta.len() - 1], &body).is_none());
            assert!(Read::decode(kind, &meta, &body[..63]).is_none());
        }
        assert!(Read::decode(9, &keys.released(), &body).is_none());
    }
}
