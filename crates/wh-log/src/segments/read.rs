//! Reading records by their places.

mod shelf;

use super::{Segment, Segments, retired};
use crate::{
    disk::read_most,
    error::{Error, Kind, Result},
    format::{RECORD_HEADER, RawRecord},
    record::{Place, Stored},
};
use bytes::Bytes;
use shelf::Shelf;

const OP: &str = "read";
/// Records this near to each other are read together: passing over the bytes between costs less than another call.
const NEAR_BYTES: u32 = 16 * 1024;
/// Most bytes read by one call for several records.
const TOGETHER_BYTES: u32 = 256 * 1024;

impl Segments {
    /// Reads one record.
    pub(crate) fn read(&self, place: Place) -> Result<Stored> {
        let segment = self.get(place.segment).ok_or_else(|| retired(OP, place.segment))?;
        let mut bytes = vec![0; place.len as usize];
        let n = self.read_into(&segment, &mut bytes, place.offset)?;
        match whole(&segment, place, bytes.get(..n).unwrap_or_default()) {
            Some(raw) => {
                let mut meta = Bytes::from(bytes).split_off(RECORD_HEADER as usize);
                let body = meta.split_off(usize::from(raw.head.meta_len));
                Ok(Stored { head: raw.head, meta, body })
            }
            // it was overwritten while we read
            None if self.get(place.segment).is_none() => Err(retired(OP, place.segment)),
            None => {
                segment.mark_damaged();
                Err(Error::new(Kind::Corrupt, OP, place.to_string()))
            }
        }
    }

    /// Reads records, those that stand near each other with one call. One outcome each.
    pub(crate) fn read_many(&self, places: &[Place]) -> Vec<Result<Stored>> {
        let mut all = Vec::with_capacity(places.len());
        let mut rest = places;
        let mut buffer = Vec::new();
        let mut shelf = Shelf::default();
        while let Some(first) = rest.first() {
            let (run, later) = rest.split_at(together(rest));
            rest = later;
            let segment = self.get(first.segment).filter(|_| run.len() > 1);
            let (Some(segment), Some(last)) = (segment, run.last()) else {
                all.extend(run.iter().map(|place| self.read(*place)));
                continue;
            };
            let span = (last.offset + last.len - first.offset) as usize;
            if buffer.len() < span {
                buffer.resize(span, 0);
            }
            let n = self.read_into(&segment, &mut buffer[..span], first.offset).unwrap_or(0);
            for place in run {
                let at = (place.offset - first.offset) as usize;
                let bytes = buffer.get(at..(at + place.len as usize).min(n)).unwrap_or_default();
                match whole(&segment, *place, bytes) {
                    Some(raw) => shelf.put(raw.head, bytes, &mut all),
                    // what is wrong with one is told by reading it alone
                    None => all.push(self.read(*place)),
                }
            }
        }
        shelf.give(&mut all);
        all
    }

    fn read_into(&self, segment: &Segment, into: &mut [u8], offset: u32) -> Result<usize> {
        let file = self.file(segment, OP)?;
        let n = read_most(&*file, into, u64::from(offset));
        n.map_err(|e| Error::new(Kind::Io, OP, format!("segment {} offset {offset}: {e}", segment.number)))
    }
}

/// How many of the first places are to be read with one call.
fn together(places: &[Place]) -> usize {
    let Some(first) = places.first() else { return 0 };
    let near = |pair: &&[Place]| {
        let [before, next] = pair else { return false };
        let end = before.offset.saturating_add(before.len);
        next.segment == first.segment
            && next.offset >= end
            && next.offset - end <= NEAR_BYTES
            && next.offset.saturating_add(next.len) - first.offset <= TOGETHER_BYTES
    };
    1 + places.windows(2).take_while(near).count()
}

/// A record's header, where the bytes are the whole record as it was written.
fn whole(segment: &Segment, place: Place, bytes: &[u8]) -> Option<RawRecord> {
    let raw = RawRecord::parse(bytes)?;
    let whole = bytes.len() == place.len as usize
        && raw.len() == bytes.len() as u64
        && raw.verify_head(bytes, segment.seed.mask(place.offset))
        && bytes.get(raw.body_at()..).is_some_and(|body| raw.verify_body(body));
    whole.then_some(raw)
}
