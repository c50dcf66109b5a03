//! The bytes of a segment: its header, groups and records. Pure; `docs/log-format.md` is the reference.

pub(crate) mod extent;
pub(crate) mod footer;
pub(crate) mod small;

use crate::record::{Head, Record};
use crc32c::{crc32c, crc32c_append};
use wh_types::Timestamp;

/// The format's version, in every file.
pub const FORMAT_VERSION: u32 = 1;
/// Bytes of a segment's header; the first group follows.
pub(crate) const SEGMENT_HEADER: u32 = 64;
/// Bytes of a group's header.
pub(crate) const GROUP_HEADER: u32 = 32;
/// Bytes of a record's header.
pub(crate) const RECORD_HEADER: u32 = 40;
/// Everything begins at a multiple of this.
pub(crate) const ALIGN: u32 = 8;

const SEGMENT_MAGIC: [u8; 8] = *b"WHLOGSEG";
const GROUP_MAGIC: u32 = u32::from_le_bytes(*b"WHGR");
const RECORD_MARK: u8 = 0xA5;

/// The group holds no records: it says that everything before it was durable when it was written.
pub(crate) const GROUP_MARK: u32 = 1;
/// The group is the segment's footer.
pub(crate) const GROUP_FOOTER: u32 = 2;

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_le_bytes)
}
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The next multiple of [`ALIGN`].
pub(crate) fn aligned(len: u64) -> u64 {
    len.next_multiple_of(u64::from(ALIGN))
}

/// Bytes a record takes in a group, padding included.
pub(crate) fn framed_len(meta: usize, body: usize) -> u64 {
    aligned(u64::from(RECORD_HEADER) + meta as u64 + body as u64)
}

/// What the checksums of one segment are masked with, so that bytes of another log, of another segment (the file's
/// earlier life) or at another offset never pass for bytes of this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn new(log: u64, segment: u64) -> Self {
        Self(mix(log ^ mix(segment)))
    }

    pub(crate) fn mask(self, offset: u32) -> u32 {
        (mix(self.0 ^ u64::from(offset)) >> 32) as u32
    }
}

/// splitmix64's finalizer, with its increment.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) log: u64,
    pub(crate) number: u64,
    pub(crate) created: Timestamp,
}

/// Why a file's first bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoHeader {
    /// Whole, but of another version.
    Version(u32),
    /// Not whole.
    Broken,
}

impl SegmentHeader {
    pub(crate) fn encode(self) -> [u8; SEGMENT_HEADER as usize] {
        let mut out = [0; SEGMENT_HEADER as usize];
        out[..8].copy_from_slice(&SEGMENT_MAGIC);
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.log.to_le_bytes());
        out[24..32].copy_from_slice(&self.number.to_le_bytes());
        out[32..40].copy_from_slice(&self.created.as_nanos().to_le_bytes());
        let crc = crc32c(&out);
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, NoHeader> {
        let bytes = bytes.first_chunk::<{ SEGMENT_HEADER as usize }>().ok_or(NoHeader::Broken)?;
        let mut plain = *bytes;
        plain[12..16].fill(0);
        if bytes[..8] != SEGMENT_MAGIC || crc32c(&plain) != u32_at(bytes, 12) {
            return Err(NoHeader::Broken);
        }
        match u32_at(bytes, 8) {
            FORMAT_VERSION => Ok(Self {
                log: u64_at(bytes, 16),
                number: u64_at(bytes, 24),
                created: Timestamp::from_nanos(u64_at(bytes, 32).cast_signed()),
            }),
            version => Err(NoHeader::Version(version)),
        }
    }
}

/// A group's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// Grows from group to group of a segment.
    pub(crate) number: u64,
    /// Bytes that follow the header.
    pub(crate) len: u32,
    /// Records in it.
    pub(crate) records: u32,
    /// CRC over the checksums of its records' headers, in order; of a footer, over its bytes.
    pub(crate) digest: u32,
    /// [`GROUP_MARK`], [`GROUP_FOOTER`].
    pub(crate) flags: u32,
}

impl GroupHeader {
    pub(crate) const MAGIC: u32 = GROUP_MAGIC;

    /// A mark's header.
    pub(crate) fn mark(number: u64) -> Self {
        Self { number, len: 0, records: 0, digest: 0, flags: GROUP_MARK }
    }

    pub(crate) fn encode(self, mask: u32) -> [u8; GROUP_HEADER as usize] {
        let mut out = [0; GROUP_HEADER as usize];
        out[4..8].copy_from_slice(&GROUP_MAGIC.to_le_bytes());
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..20].copy_from_slice(&self.len.to_le_bytes());
        out[20..24].copy_from_slice(&self.records.to_le_bytes());
        out[24..28].copy_from_slice(&self.digest.to_le_bytes());
        out[28..32].copy_from_slice(&self.flags.to_le_bytes());
        let crc = crc32c(&out[4..]) ^ mask;
        out[..4].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a header that stands at the offset the mask was made for.
    pub(crate) fn decode(bytes: &[u8], mask: u32) -> Option<Self> {
        let bytes = bytes.first_chunk::<{ GROUP_HEADER as usize }>()?;
        if u32_at(bytes, 4) != GROUP_MAGIC || crc32c(&bytes[4..]) ^ mask != u32_at(bytes, 0) {
            return None;
        }
        Some(Self {
            number: u64_at(bytes, 8),
            len: u32_at(bytes, 16),
            records: u32_at(bytes, 20),
            digest: u32_at(bytes, 24),
            flags: u32_at(bytes, 28),
        })
    }

    /// Bytes of header and content.
    pub(crate) fn extent(self) -> u64 {
        u64::from(GROUP_HEADER) + u64::from(self.len)
    }
}

/// A record's header before it has a place: the checksum is not masked yet.
pub(crate) fn record_header(record: &Record<'_>, meta_len: u16, body_len: u32) -> [u8; RECORD_HEADER as usize] {
    let mut out = [0; RECORD_HEADER as usize];
    let body = record.body.iter().fold(0, |crc, part| crc32c_append(crc, part));
    out[4..8].copy_from_slice(&body.to_le_bytes());
    out[8..12].copy_from_slice(&body_len.to_le_bytes());
    out[12] = record.kind;
    out[13] = RECORD_MARK;
    out[14..16].copy_from_slice(&meta_len.to_le_bytes());
    out[16..24].copy_from_slice(&record.stream.to_le_bytes());
    out[24..32].copy_from_slice(&record.sequence.to_le_bytes());
    out[32..40].copy_from_slice(&record.time.as_nanos().to_le_bytes());
    let crc = crc32c_append(crc32c(&out[4..]), record.meta);
    out[..4].copy_from_slice(&crc.to_le_bytes());
    out
}

/// A record's header as it was read. `head` is only to be trusted once [`RawRecord::verify_head`] agreed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRecord {
    pub(crate) crc: u32,
    pub(crate) body_crc: u32,
    pub(crate) head: Head,
}

impl RawRecord {
    /// Reads the fields. `None`: it is none for sure.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<{ RECORD_HEADER as usize }>()?;
        (bytes[13] == RECORD_MARK).then(|| Self {
            crc: u32_at(bytes, 0),
            body_crc: u32_at(bytes, 4),
            head: Head {
                kind: bytes[12],
                stream: u64_at(bytes, 16),
                sequence: u64_at(bytes, 24),
                time: Timestamp::from_nanos(u64_at(bytes, 32).cast_signed()),
                meta_len: u16_at(bytes, 14),
                body_len: u32_at(bytes, 8),
            },
        })
    }

    /// Bytes without padding.
    pub(crate) fn len(&self) -> u64 {
        u64::from(RECORD_HEADER) + u64::from(self.head.meta_len) + u64::from(self.head.body_len)
    }

    /// Where the body begins.
    pub(crate) fn body_at(&self) -> usize {
        RECORD_HEADER as usize + usize::from(self.head.meta_len)
    }

    /// Whether header and meta are as they were written. `bytes` begins with the header and has the meta.
    pub(crate) fn verify_head(&self, bytes: &[u8], mask: u32) -> bool {
        bytes.get(4..self.body_at()).is_some_and(|covered| crc32c(covered) ^ mask == self.crc)
    }

    /// Whether the body is as it was written.
    pub(crate) fn verify_body(&self, body: &[u8]) -> bool {
        body.len() == self.head.body_len as usize && crc32c(body) == self.body_crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record<'a>(meta: &'a [u8], body: &'a [&'a [u8]]) -> Record<'a> {
        Record { kind: 3, stream: 9, sequence: 11, time: Timestamp::from_millis(5), meta, body }
    }

    #[test]
    fn headers_are_read_back_only_where_they_were_written() {
        let header = SegmentHeader { log: 1, number: 2, created: Timestamp::from_millis(3) };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        let mut newer = bytes;
        newer[8] = 2;
        newer[12..16].fill(0);
        let crc = crc32c(&newer);
        newer[12..16].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&newer), Err(NoHeader::Version(2)));

        let seed = Seed::new(1, 2);
        let group = GroupHeader { number: 7, len: 80, records: 2, digest: 5, flags: 0 };
        let bytes = group.encode(seed.mask(64));
        assert_eq!(GroupHeader::decode(&bytes, seed.mask(64)), Some(group));
        for other in [seed.mask(72), Seed::new(1, 3).mask(64), Seed::new(2, 2).mask(64)] {
            assert_eq!(GroupHeader::decode(&bytes, other), None);
        }
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_noticed() {
        let parts: [&[u8]; 2] = [b"bo", b"dy"];
        let record = record(b"meta", &parts);
        let mask = Seed::new(1, 2).mask(96);
        let mut bytes = record_header(&record, 4, 4).to_vec();
        let crc = u32_at(&bytes, 0) ^ mask;
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(b"metabody");
        let whole = |bytes: &[u8]| {
            RawRecord::parse(bytes).is_some_and(|raw| {
                raw.verify_head(bytes, mask) && bytes.get(raw.body_at()..).is_some_and(|body| raw.verify_body(body))
            })
        };
        assert!(whole(&bytes));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!whole(&bytes), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
