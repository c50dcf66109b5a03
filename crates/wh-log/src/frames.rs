//! An append's records with their headers and checksums, made before any lock is taken.

use crate::{
    error::{Error, Kind, Result},
    format::{RECORD_HEADER, framed_len, record_header},
    record::{MAX_META_BYTES, Record},
    ticket::Lens,
};

/// A record's header with its checksum.
pub(crate) type Framed = [u8; RECORD_HEADER as usize];

/// Frames a record; `None`: meta or body is too long for the format.
fn frame(record: &Record<'_>) -> Option<(Framed, u32)> {
    let body: usize = record.body.iter().map(|part| part.len()).sum();
    let len = u32::try_from(framed_len(record.meta.len(), body)).ok()?;
    if record.meta.len() > MAX_META_BYTES {
        return None;
    }
    let header = record_header(record, record.meta.len() as u16, body as u32);
    Some((header, len))
}

/// An append's records, framed.
pub(crate) struct Frames<'a> {
    pub(crate) records: &'a [Record<'a>],
    one: Option<(Framed, u32)>,
    many: Vec<(Framed, u32)>,
    /// Bytes they take in a group.
    pub(crate) bytes: u32,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(records: &'a [Record<'a>]) -> Result<Self> {
        let too_long = || Error::new(Kind::Invalid, "append", "a record's meta or body is too long for the format");
        let mut frames = Self { records, one: None, many: Vec::new(), bytes: 0 };
        match records {
            [] => return Err(Error::new(Kind::Invalid, "append", "no record was given")),
            [record] => {
                let one = frame(record).ok_or_else(too_long)?;
                (frames.one, frames.bytes) = (Some(one), one.1);
            }
            many => {
                frames.many = many.iter().map(frame).collect::<Option<_>>().ok_or_else(too_long)?;
                let bytes: u64 = frames.many.iter().map(|(_, len)| u64::from(*len)).sum();
                frames.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            }
        }
        Ok(frames)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Record<'a>, &Framed)> {
        self.records.iter().zip(self.one.iter().chain(&self.many).map(|(header, _)| header))
    }

    /// How long each record is without padding.
    pub(crate) fn lens(&self) -> Lens {
        let len = |record: &Record<'_>| {
            let body: usize = record.body.iter().map(|part| part.len()).sum();
            (RECORD_HEADER as usize + record.meta.len() + body) as u32
        };
        match self.records {
            [one] => Lens::One(len(one)),
            many => Lens::Many(many.iter().map(len).collect()),
        }
    }
}
