//! How much of each segment is still needed. Counts bytes; knows not which.

use std::collections::BTreeMap;
use wh_log::{Place, SegmentInfo};
use wh_types::Timestamp;

#[derive(Clone, Copy, Debug, Default)]
struct Use {
    live_bytes: u64,
    live_records: u64,
    /// When the latest block in it was stored: its ids are remembered for a window from then.
    newest: Timestamp,
    /// What is needed of it could not be moved: it stays as it is.
    stuck: bool,
}

/// The use of every segment.
#[derive(Debug, Default)]
pub(super) struct Usage(BTreeMap<u64, Use>);

impl Usage {
    pub(super) fn add(&mut self, place: Place) {
        let segment = self.0.entry(place.segment).or_default();
        segment.live_bytes += u64::from(place.len);
        segment.live_records += 1;
    }

    /// So many live records at once, and when the latest block there was stored.
    pub(super) fn add_many(&mut self, segment: u64, bytes: u64, records: u64, newest: Timestamp) {
        let used = self.0.entry(segment).or_default();
        used.live_bytes += bytes;
        used.live_records += records;
        used.newest = used.newest.max(newest);
    }

    pub(super) fn remove(&mut self, place: Place) {
        if let Some(segment) = self.0.get_mut(&place.segment) {
            segment.live_bytes = segment.live_bytes.saturating_sub(u64::from(place.len));
            segment.live_records = segment.live_records.saturating_sub(1);
        }
    }

    /// A block stored at that time has its record there.
    pub(super) fn note(&mut self, place: Place, stored: Timestamp) {
        let segment = self.0.entry(place.segment).or_default();
        segment.newest = segment.newest.max(stored);
    }

    /// Nothing of a segment could be moved.
    pub(super) fn give_up(&mut self, segment: u64) {
        self.0.entry(segment).or_default().stuck = true;
    }

    pub(super) fn forget(&mut self, segments: &[u64]) {
        self.0.retain(|segment, _| !segments.contains(segment));
    }

    /// Sealed segments nothing is needed of: no live record, and no id younger than `ids_before`.
    pub(super) fn dead(&self, segments: &[SegmentInfo], ids_before: Timestamp) -> Vec<u64> {
        let dead = |info: &&SegmentInfo| {
            let used = self.0.get(&info.number).copied().unwrap_or_default();
            info.sealed && used.live_records == 0 && used.newest < ids_before
        };
        segments.iter().filter(dead).map(|info| info.number).collect()
    }

    /// The sealed segment with the smallest live part, if that is under a quarter: worth copying forward.
    pub(super) fn sparse(&self, segments: &[SegmentInfo], ids_before: Timestamp) -> Option<u64> {
        let part = |info: &SegmentInfo| {
            let used = self.0.get(&info.number).copied().unwrap_or_default();
            let old = info.sealed && !used.stuck && used.live_records > 0 && used.newest < ids_before;
            (old && used.live_bytes * 4 < u64::from(info.bytes)).then_some((used.live_bytes, info.number))
        };
        segments.iter().filter_map(part).min().map(|(_, number)| number)
    }

    /// Records of a segment that are needed.
    pub(super) fn live_records_of(&self, segment: u64) -> u64 {
        self.0.get(&segment).map_or(0, |used| used.live_records)
    }

    /// When the latest block of a segment was stored.
    pub(super) fn newest_of(&self, segment: u64) -> Timestamp {
        self.0.get(&segment).map_or_else(Timestamp::default, |used| used.newest)
    }

    /// Bytes of a segment that are needed.
    pub(super) fn live_bytes_of(&self, segment: u64) -> u64 {
        self.0.get(&segment).map_or(0, |used| used.live_bytes)
    }
}
