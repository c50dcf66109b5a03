//! The bytes of the `extent` file: what the log is known to hold.

use super::{FORMAT_VERSION, NoHeader, SEGMENT_HEADER, u32_at, u64_at};
use crc32c::{crc32c, crc32c_append};
use std::collections::BTreeMap;
use wh_types::Timestamp;

const MAGIC: [u8; 8] = *b"WHLOGEXT";
const SLOT_MAGIC: u32 = u32::from_le_bytes(*b"WHHW");
const HEADER: usize = 64;
/// Where the two slots of the high-water mark stand, each in a sector of its own, and where the lists begin.
const SLOTS: [usize; 2] = [512, 1024];
const LISTS: usize = 1536;
const SLOT: usize = 48;
const ENTRY: usize = 24;
const LOSS: usize = 48;

/// What is known of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Its groups were durable up to here.
    pub(crate) end: u32,
    /// The highest sequence of a record in it.
    pub(crate) top: u64,
}

/// A stretch of a segment that was durable once and is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) segment: u64,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) top: u64,
    pub(crate) noticed: Timestamp,
    /// It is remembered while a segment up to this number is in the log.
    pub(crate) until: u64,
}

/// How far the log was: the segment that was written, and what was durable of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) segment: u64,
    pub(crate) held: Held,
    /// Counts marks; the slot with the higher one counts.
    pub(crate) count: u64,
}

/// Everything the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) segments: BTreeMap<u64, Held>,
    pub(crate) losses: Vec<Loss>,
    pub(crate) mark: Mark,
}

impl Mark {
    /// Where its slot stands.
    pub(crate) fn offset(self) -> u64 {
        SLOTS[usize::from(!self.count.is_multiple_of(2))] as u64
    }

    pub(crate) fn encode(self, log: u64) -> [u8; SLOT] {
        let mut out = [0; SLOT];
        out[4..8].copy_from_slice(&SLOT_MAGIC.to_le_bytes());
        out[8..16].copy_from_slice(&self.count.to_le_bytes());
        out[16..24].copy_from_slice(&self.segment.to_le_bytes());
        out[24..32].copy_from_slice(&self.held.top.to_le_bytes());
        out[32..36].copy_from_slice(&self.held.end.to_le_bytes());
        out[40..48].copy_from_slice(&log.to_le_bytes());
        let crc = crc32c(&out);
        out[..4].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8], log: u64) -> Option<Self> {
        let mut plain = *bytes.first_chunk::<SLOT>()?;
        plain[..4].fill(0);
        let whole = u32_at(bytes, 4) == SLOT_MAGIC && u64_at(bytes, 40) == log && crc32c(&plain) == u32_at(bytes, 0);
        whole.then(|| Self {
            count: u64_at(bytes, 8),
            segment: u64_at(bytes, 16),
            held: Held { top: u64_at(bytes, 24), end: u32_at(bytes, 32) },
        })
    }
}

impl Extent {
    pub(crate) fn encode(&self, log: u64) -> Vec<u8> {
        let mut lists = Vec::with_capacity(self.segments.len() * ENTRY + self.losses.len() * LOSS);
        for (number, held) in &self.segments {
            lists.extend_from_slice(&number.to_le_bytes());
            lists.extend_from_slice(&held.top.to_le_bytes());
            lists.extend_from_slice(&u64::from(held.end).to_le_bytes());
        }
        for loss in &self.losses {
            lists.extend_from_slice(&loss.segment.to_le_bytes());
            lists.extend_from_slice(&loss.from.to_le_bytes());
            lists.extend_from_slice(&loss.to.to_le_bytes());
            lists.extend_from_slice(&loss.top.to_le_bytes());
            lists.extend_from_slice(&loss.noticed.as_nanos().to_le_bytes());
            lists.extend_from_slice(&loss.until.to_le_bytes());
            lists.extend_from_slice(&0_u64.to_le_bytes());
        }
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
        let mut out = vec![0; LISTS];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&log.to_le_bytes());
        out[24..28].copy_from_slice(&count(self.segments.len()));
        out[28..32].copy_from_slice(&count(self.losses.len()));
        out[32..36].copy_from_slice(&crc32c(&lists).to_le_bytes());
        let crc = crc32c(&out[..HEADER]);
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        for slot in SLOTS {
            out[slot..slot + SLOT].copy_from_slice(&self.mark.encode(log));
        }
        out.extend_from_slice(&lists);
        out
    }

    /// Reads the file of a log. A mark that cannot be read is one less to go by.
    pub(crate) fn decode(bytes: &[u8], log: u64) -> Result<Self, NoHeader> {
        let header = bytes.first_chunk::<HEADER>().ok_or(NoHeader::Broken)?;
        let mut plain = *header;
        plain[12..16].fill(0);
        if plain[..8] != MAGIC || crc32c(&plain) != u32_at(header, 12) || u64_at(header, 16) != log {
            return Err(NoHeader::Broken);
        }
        match u32_at(header, 8) {
            FORMAT_VERSION => {}
            version => return Err(NoHeader::Version(version)),
        }
        let (segments, losses) = (u32_at(header, 24) as usize, u32_at(header, 28) as usize);
        let lists = bytes.get(LISTS..).ok_or(NoHeader::Broken)?;
        let split = segments.checked_mul(ENTRY).ok_or(NoHeader::Broken)?;
        let whole = losses.checked_mul(LOSS).and_then(|len| len.checked_add(split));
        if whole != Some(lists.len()) || crc32c_append(0, lists) != u32_at(header, 32) {
            return Err(NoHeader::Broken);
        }
        let (segments, losses) = lists.split_at(split);
        let end = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
        let segment = |entry: &[u8]| (u64_at(entry, 0), Held { end: end(u64_at(entry, 16)), top: u64_at(entry, 8) });
        let loss = |entry: &[u8]| Loss {
            segment: u64_at(entry, 0),
            from: u32_at(entry, 8),
            to: u32_at(entry, 12),
            top: u64_at(entry, 16),
            noticed: Timestamp::from_nanos(u64_at(entry, 24).cast_signed()),
            until: u64_at(entry, 32),
        };
        let slots = SLOTS.iter().filter_map(|slot| Mark::decode(bytes.get(*slot..)?, log));
        Ok(Self {
            segments: segments.chunks_exact(ENTRY).map(segment).collect(),
            losses: losses.chunks_exact(LOSS).map(loss).collect(),
            mark: slots.max_by_key(|mark| mark.count).unwrap_or_default(),
        })
    }

    /// Every segment that was durable to some length, the one that was written included.
    pub(crate) fn known(&self) -> BTreeMap<u64, Held> {
        let mut known = self.segments.clone();
        let marked = known.entry(self.mark.segment).or_default();
        marked.end = marked.end.max(self.mark.held.end);
        marked.top = marked.top.max(self.mark.held.top);
        known.retain(|_, held| held.end > SEGMENT_HEADER);
        known
    }

    /// The highest number of a segment it names.
    pub(crate) fn highest(&self) -> u64 {
        self.segments.last_key_value().map_or(0, |(number, _)| *number).max(self.mark.segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extent() -> Extent {
        let held = |end, top| Held { end, top };
        let noticed = Timestamp::from_millis(5);
        let loss = Loss { segment: 1, from: 64, to: 900, top: 12, noticed, until: 4 };
        Extent {
            segments: BTreeMap::from([(2, held(4_000, 30)), (3, held(64, 0))]),
            losses: vec![loss],
            mark: Mark { segment: 4, held: held(128, 31), count: 7 },
        }
    }

    #[test]
    fn it_is_read_back_and_no_flipped_bit_says_something_else() {
        let mut bytes = extent().encode(9);
        assert_eq!(Extent::decode(&bytes, 9), Ok(extent()));
        assert_eq!(Extent::decode(&bytes, 8), Err(NoHeader::Broken));
        assert_eq!(extent().known().keys().copied().collect::<Vec<_>>(), [2, 4]);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(
                Extent::decode(&bytes, 9).is_ok_and(|read| read == extent()) || bit / 8 < HEADER || bit / 8 >= LISTS
            );
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for len in 0..bytes.len() {
            assert_eq!(Extent::decode(&bytes[..len], 9), Err(NoHeader::Broken), "{len}");
        }
    }

    #[test]
    fn the_later_mark_counts_and_a_torn_one_does_not() {
        let mut bytes = extent().encode(9);
        let later = Mark { held: Held { end: 256, top: 40 }, count: 8, ..extent().mark };
        let at = usize::try_from(later.offset()).unwrap();
        bytes[at..at + SLOT].copy_from_slice(&later.encode(9));
        assert_eq!(Extent::decode(&bytes, 9).unwrap().mark, later);
        bytes[at + 20] ^= 1;
        assert_eq!(Extent::decode(&bytes, 9).unwrap().mark, extent().mark);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            prop_assert!(Extent::decode(&bytes, 9).is_err());
        }
    }
}
