//! The two small files beside the segments: the log's identity and its checkpoint.

use super::{FORMAT_VERSION, NoHeader, u32_at, u64_at};
use crate::record::Position;
use crc32c::{crc32c, crc32c_append};
use wh_types::Timestamp;

const IDENTITY_MAGIC: [u8; 8] = *b"WHLOG-ID";
const CHECKPOINT_MAGIC: [u8; 8] = *b"WHLOGCHK";
/// Bytes of the identity file.
pub(crate) const IDENTITY: usize = 32;
/// Bytes before a checkpoint's content.
pub(crate) const CHECKPOINT_HEADER: usize = 48;

pub(crate) fn encode_identity(log: u64, created: Timestamp) -> [u8; IDENTITY] {
    let mut out = [0; IDENTITY];
    out[..8].copy_from_slice(&IDENTITY_MAGIC);
    out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    out[16..24].copy_from_slice(&log.to_le_bytes());
    out[24..32].copy_from_slice(&created.as_nanos().to_le_bytes());
    let crc = crc32c(&out);
    out[12..16].copy_from_slice(&crc.to_le_bytes());
    out
}

pub(crate) fn decode_identity(bytes: &[u8]) -> Result<(u64, Timestamp), NoHeader> {
    let mut plain: [u8; IDENTITY] = bytes.try_into().map_err(|_| NoHeader::Broken)?;
    plain[12..16].fill(0);
    if plain[..8] != IDENTITY_MAGIC || crc32c(&plain) != u32_at(bytes, 12) {
        return Err(NoHeader::Broken);
    }
    match u32_at(bytes, 8) {
        FORMAT_VERSION => Ok((u64_at(bytes, 16), Timestamp::from_nanos(u64_at(bytes, 24).cast_signed()))),
        version => Err(NoHeader::Version(version)),
    }
}

pub(crate) fn checkpoint_header(log: u64, position: Position, parts: &[&[u8]]) -> [u8; CHECKPOINT_HEADER] {
    let mut out = [0; CHECKPOINT_HEADER];
    let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
    let content = parts.iter().fold(0, |crc, part| crc32c_append(crc, part));
    out[..8].copy_from_slice(&CHECKPOINT_MAGIC);
    out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    out[16..24].copy_from_slice(&log.to_le_bytes());
    out[24..32].copy_from_slice(&position.segment.to_le_bytes());
    out[32..36].copy_from_slice(&position.offset.to_le_bytes());
    out[36..40].copy_from_slice(&content.to_le_bytes());
    out[40..48].copy_from_slice(&len.to_le_bytes());
    let crc = crc32c(&out);
    out[12..16].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Reads a checkpoint file: the log it is of, where it stands, and its content.
pub(crate) fn decode_checkpoint(bytes: &[u8]) -> Result<(u64, Position, &[u8]), NoHeader> {
    let (header, content) = bytes.split_first_chunk::<CHECKPOINT_HEADER>().ok_or(NoHeader::Broken)?;
    let mut plain = *header;
    plain[12..16].fill(0);
    if plain[..8] != CHECKPOINT_MAGIC || crc32c(&plain) != u32_at(header, 12) {
        return Err(NoHeader::Broken);
    }
    match u32_at(header, 8) {
        FORMAT_VERSION => {}
        version => return Err(NoHeader::Version(version)),
    }
    if content.len() as u64 != u64_at(header, 40) || crc32c(content) != u32_at(header, 36) {
        return Err(NoHeader::Broken);
    }
    let position = Position { segment: u64_at(header, 24), offset: u32_at(header, 32) };
    Ok((u64_at(header, 16), position, content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identity_and_checkpoint_are_read_back_and_every_flipped_bit_is_noticed() {
        let identity = encode_identity(7, Timestamp::from_millis(1));
        assert_eq!(decode_identity(&identity), Ok((7, Timestamp::from_millis(1))));
        let position = Position { segment: 3, offset: 99 };
        let mut file = checkpoint_header(7, position, &[b"st", b"ate"]).to_vec();
        file.extend_from_slice(b"state");
        assert_eq!(decode_checkpoint(&file), Ok((7, position, &b"state"[..])));
        for bit in 0..file.len() * 8 {
            file[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_checkpoint(&file).is_err(), "bit {bit}");
            file[bit / 8] ^= 1 << (bit % 8);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(decode_checkpoint(&bytes).is_err());
            prop_assert!(decode_identity(&bytes).is_err());
        }
    }
}
