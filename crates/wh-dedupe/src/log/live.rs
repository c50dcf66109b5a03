//! How much of each segment is still needed: counts, no keys.

use super::table::Holder;
use crate::when::NEVER;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Live(BTreeMap<u64, Segment>);

#[derive(Debug, Default)]
struct Segment {
    claims: u64,
    /// By the bucket in which they are forgotten.
    known: BTreeMap<u32, u64>,
}

impl Live {
    pub(super) fn claimed(&mut self, segment: u64, keys: u64) {
        self.0.entry(segment).or_default().claims += keys;
    }

    pub(super) fn resolved(&mut self, segment: u64, keys: u64) {
        if let Some(segment) = self.0.get_mut(&segment) {
            segment.claims = segment.claims.saturating_sub(keys);
        }
    }

    pub(super) fn committed(&mut self, segment: u64, bucket: u32, keys: u64) {
        *self.0.entry(segment).or_default().known.entry(bucket).or_default() += keys;
    }

    /// Open claims and known keys in a segment.
    pub(super) fn of(&self, segment: u64, now: u32) -> (u64, u64) {
        self.0.get(&segment).map_or((0, 0), |segment| (segment.claims, segment.known(now)))
    }

    /// Known keys in all.
    pub(super) fn known(&self, now: u32) -> u64 {
        self.0.values().map(|segment| segment.known(now)).sum()
    }

    /// Whether keys were forgotten since it was last asked.
    pub(super) fn expire(&mut self, now: u32) -> bool {
        let mut expired = false;
        for segment in self.0.values_mut() {
            while let Some(bucket) = segment.known.first_entry().filter(|bucket| *bucket.key() <= now) {
                bucket.remove();
                expired = true;
            }
        }
        expired
    }

    /// Adds what others counted.
    pub(super) fn join(&mut self, other: Self) {
        for (number, theirs) in other.0 {
            let ours = self.0.entry(number).or_default();
            ours.claims += theirs.claims;
            theirs.known.into_iter().for_each(|(bucket, keys)| *ours.known.entry(bucket).or_default() += keys);
        }
    }

    pub(super) fn retire(&mut self, segment: u64) {
        self.0.remove(&segment);
    }
}

/// Claims that ended, counted by the segment of their records: mostly one and the same.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) count: u64,
    segments: Vec<(u64, u64)>,
}

impl Ended {
    pub(super) fn note(&mut self, holder: &Holder) {
        self.count += 1;
        let Some(segment) = holder.segment() else { return };
        match self.segments.last_mut() {
            Some((last, count)) if *last == segment => *count += 1,
            _ => self.segments.push((segment, 1)),
        }
    }

    pub(super) fn tell(self, live: &mut Live) {
        self.segments.into_iter().for_each(|(segment, keys)| live.resolved(segment, keys));
    }
}

impl Segment {
    fn known(&self, now: u32) -> u64 {
        self.known.range(now.saturating_add(1)..=NEVER).map(|(_, keys)| keys).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_needed_until_its_claims_are_resolved_and_its_keys_forgotten() {
        let mut live = Live::default();
        live.claimed(1, 5);
        live.committed(1, 100, 3);
        live.committed(2, NEVER, 2);
        assert_eq!((live.of(1, 99), live.of(1, 100), live.of(3, 0)), ((5, 3), (5, 0), (0, 0)));
        live.resolved(1, 5);
        assert!(!live.expire(99) && live.expire(100) && !live.expire(100));
        assert_eq!((live.of(1, 100), live.known(100)), ((0, 0), 2));
        live.retire(2);
        assert_eq!(live.known(100), 0);
    }
}
