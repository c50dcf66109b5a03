//! A sealed segment's footer: which streams and times are in it.

use super::{SEGMENT_HEADER, u32_at, u64_at};
use crate::record::Head;
use std::collections::HashMap;
use wh_types::Timestamp;

/// More streams than this are not listed one by one.
const MAX_STREAMS: usize = 65_536;
/// Bytes of segment between two entries of the time index.
const TIME_STEP: u32 = 256 * 1024;
const HEAD: usize = 40;
const STREAM: usize = 32;
const TIME: usize = 16;

/// What a segment holds of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The stream.
    pub stream: u64,
    /// Lowest sequence.
    pub first: u64,
    /// Highest sequence.
    pub last: u64,
    /// Records.
    pub records: u32,
}

/// What a sealed segment holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Records.
    pub records: u32,
    /// Bytes of metas and bodies.
    pub payload_bytes: u64,
    /// Earliest and latest time of a record; `None` without records.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Per stream, by stream; `None` when there are too many to list.
    pub streams: Option<Vec<Span>>,
    /// Sparse: (offset of a group, latest time of all records before it), by offset.
    pub time_index: Vec<(u32, Timestamp)>,
}

impl Footer {
    /// Where to begin reading for records at or after `time`: none before it can be.
    #[must_use]
    pub fn seek(&self, time: Timestamp) -> u32 {
        let after = self.time_index.partition_point(|&(_, before)| before < time);
        after.checked_sub(1).and_then(|i| self.time_index.get(i)).map_or(SEGMENT_HEADER, |&(offset, _)| offset)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let streams = self.streams.as_deref().unwrap_or_default();
        let mut out = Vec::with_capacity(HEAD + streams.len() * STREAM + self.time_index.len() * TIME);
        let (from, to) = self.times.unwrap_or_default();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
        out.extend_from_slice(&self.records.to_le_bytes());
        out.extend_from_slice(&u32::from(self.streams.is_none()).to_le_bytes());
        out.extend_from_slice(&self.payload_bytes.to_le_bytes());
        out.extend_from_slice(&from.as_nanos().to_le_bytes());
        out.extend_from_slice(&to.as_nanos().to_le_bytes());
        out.extend_from_slice(&count(streams.len()));
        out.extend_from_slice(&count(self.time_index.len()));
        for span in streams {
            out.extend_from_slice(&span.stream.to_le_bytes());
            out.extend_from_slice(&span.first.to_le_bytes());
            out.extend_from_slice(&span.last.to_le_bytes());
            out.extend_from_slice(&u64::from(span.records).to_le_bytes());
        }
        for (offset, before) in &self.time_index {
            out.extend_from_slice(&u64::from(*offset).to_le_bytes());
            out.extend_from_slice(&before.as_nanos().to_le_bytes());
        }
        out
    }

    /// Reads a footer whose checksum was right. `None`: its counts do not fit its length.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let time_at = |at: usize| Timestamp::from_nanos(u64_at(bytes, at).cast_signed());
        let (streams, times) = (u32_at(bytes, 32) as usize, u32_at(bytes, 36) as usize);
        let streams_end = streams.checked_mul(STREAM)?.checked_add(HEAD)?;
        if bytes.len() != times.checked_mul(TIME)?.checked_add(streams_end)? {
            return None;
        }
        let records = u32_at(bytes, 0);
        let span = |i: usize| {
            let at = HEAD + i * STREAM;
            Span {
                stream: u64_at(bytes, at),
                first: u64_at(bytes, at + 8),
                last: u64_at(bytes, at + 16),
                records: u32_at(bytes, at + 24),
            }
        };
        let mark = |i: usize| (u32_at(bytes, streams_end + i * TIME), time_at(streams_end + i * TIME + 8));
        Some(Self {
            records,
            payload_bytes: u64_at(bytes, 8),
            times: (records > 0).then(|| (time_at(16), time_at(24))),
            streams: (u32_at(bytes, 4) == 0).then(|| (0..streams).map(span).collect()),
            time_index: (0..times).map(mark).collect(),
        })
    }
}

/// A footer in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    records: u32,
    payload_bytes: u64,
    times: Option<(Timestamp, Timestamp)>,
    streams: HashMap<u64, Span>,
    overflow: bool,
    time_index: Vec<(u32, Timestamp)>,
}

impl Summary {
    /// Notes that a group begins here.
    pub(crate) fn group(&mut self, offset: u32) {
        let Some((_, latest)) = self.times else { return };
        let last = self.time_index.last().map_or(SEGMENT_HEADER, |&(at, _)| at);
        if offset >= last.saturating_add(TIME_STEP) {
            self.time_index.push((offset, latest));
        }
    }

    /// Notes a record.
    pub(crate) fn record(&mut self, head: &Head) {
        self.records = self.records.saturating_add(1);
        self.payload_bytes += u64::from(head.meta_len) + u64::from(head.body_len);
        self.times = Some(match self.times {
            None => (head.time, head.time),
            Some((from, to)) => (from.min(head.time), to.max(head.time)),
        });
        if self.overflow {
            return;
        }
        let span = self.streams.entry(head.stream).or_insert(Span {
            stream: head.stream,
            first: head.sequence,
            last: head.sequence,
            records: 0,
        });
        span.first = span.first.min(head.sequence);
        span.last = span.last.max(head.sequence);
        span.records += 1;
        if self.streams.len() > MAX_STREAMS {
            self.overflow = true;
            self.streams = HashMap::new();
        }
    }

    pub(crate) fn footer(&self) -> Footer {
        let streams = (!self.overflow).then(|| {
            let mut spans: Vec<Span> = self.streams.values().copied().collect();
            spans.sort_unstable_by_key(|span| span.stream);
            spans
        });
        Footer {
            records: self.records,
            payload_bytes: self.payload_bytes,
            times: self.times,
            streams,
            time_index: self.time_index.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(stream: u64, sequence: u64, millis: i64) -> Head {
        Head { kind: 0, stream, sequence, time: Timestamp::from_millis(millis), meta_len: 1, body_len: 2 }
    }

    #[test]
    fn a_footer_names_streams_and_times() {
        let mut summary = Summary::default();
        for i in 0..4_u32 {
            summary.group(SEGMENT_HEADER + i * TIME_STEP);
            summary.record(&head(u64::from(i % 2), u64::from(10 - i), 100 + i64::from(i)));
        }
        let footer = summary.footer();
        assert_eq!(Footer::decode(&footer.encode()), Some(footer.clone()));
        assert_eq!((footer.records, footer.payload_bytes), (4, 12));
        let streams = footer.streams.clone().unwrap();
        assert_eq!(streams[0], Span { stream: 0, first: 8, last: 10, records: 2 });
        assert_eq!(streams[1], Span { stream: 1, first: 7, last: 9, records: 2 });
        // the record of 102 ms is in the third group, all before it are earlier
        assert_eq!(footer.seek(Timestamp::from_millis(102)), SEGMENT_HEADER + 2 * TIME_STEP);
        assert_eq!(footer.seek(Timestamp::from_millis(0)), SEGMENT_HEADER);
        assert_eq!(footer.seek(Timestamp::from_millis(999)), SEGMENT_HEADER + 3 * TIME_STEP);
    }

    #[test]
    fn too_many_streams_are_not_listed() {
        let mut summary = Summary::default();
        (0..=MAX_STREAMS as u64).for_each(|stream| summary.record(&head(stream, 1, 1)));
        let footer = summary.footer();
        assert_eq!((footer.records as usize, footer.streams.clone()), (MAX_STREAMS + 1, None));
        assert_eq!(Footer::decode(&footer.encode()), Some(footer));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Footer::decode(&bytes);
        }
    }
}
