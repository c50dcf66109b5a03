//! A group in the making: records framed end to end, to be given their place when it is written.

use crate::{
    format::{GROUP_HEADER, GroupHeader, RawRecord, Seed, aligned, u32_at},
    frames::Framed,
    record::{Head, Record},
    ticket::Ticket,
};
use crc32c::crc32c_append;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where the record begins in `bytes`.
    at: u32,
    lazy: bool,
}

/// Records that will be one group.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Room for the group's header, then the records.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The place its records' checksums are masked for, once they are.
    stamped: Option<(Seed, u32)>,
    pub(crate) ticket: Arc<Ticket>,
    /// Somebody waits for it.
    pub(crate) urgent: bool,
    /// It may be written with what was reserved.
    pub(crate) reserved: bool,
    /// Appends that are waited for.
    pub(crate) appends: usize,
    /// Bytes of records that somebody waits for, and that nobody does.
    pub(crate) waited_bytes: u32,
    pub(crate) lazy_bytes: u32,
}

impl Batch {
    /// Empty, on a buffer that may have been used before.
    pub(crate) fn new(mut buffer: Vec<u8>, entries_hint: usize) -> Self {
        buffer.clear();
        buffer.resize(GROUP_HEADER as usize, 0);
        let (entries, ticket) = (Vec::with_capacity(entries_hint), Ticket::new());
        Self {
            bytes: buffer,
            entries,
            stamped: None,
            ticket,
            urgent: false,
            reserved: false,
            appends: 0,
            waited_bytes: 0,
            lazy_bytes: 0,
        }
    }

    /// Bytes it will take, the group's header included.
    pub(crate) fn len(&self) -> u32 {
        self.bytes.len() as u32
    }

    pub(crate) fn records(&self) -> usize {
        self.entries.len()
    }

    /// Adds a record; gives where it begins.
    pub(crate) fn push(&mut self, record: &Record<'_>, header: &Framed, lazy: bool) -> u32 {
        let at = self.len();
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(record.meta);
        record.body.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let padded = aligned(self.bytes.len() as u64) as usize;
        self.bytes.resize(padded, 0);
        self.note(at, lazy);
        at
    }

    fn note(&mut self, at: u32, lazy: bool) {
        self.entries.push(Entry { at, lazy });
        let len = self.len() - at;
        if lazy {
            self.lazy_bytes += len;
        } else {
            self.waited_bytes += len;
            self.urgent = true;
        }
    }

    /// Gives every record its place and the group its header: `bytes` is then what goes to the disk at `offset`.
    pub(crate) fn stamp(&mut self, seed: Seed, offset: u32, number: u64) -> &[u8] {
        self.stamped = Some((seed, offset));
        let mut digest = 0;
        for entry in &self.entries {
            let crc = mask(&mut self.bytes, entry.at, seed, offset);
            digest = crc32c_append(digest, &crc.to_le_bytes());
        }
        let header = GroupHeader {
            number,
            len: self.len() - GROUP_HEADER,
            records: self.entries.len() as u32,
            digest,
            flags: 0,
        };
        if let Some(to) = self.bytes.first_chunk_mut() {
            *to = header.encode(seed.mask(offset));
        }
        &self.bytes
    }

    /// The lazy records of a group that failed, to be written in another: nobody was told that they are lost.
    pub(crate) fn keep_lazy(&self) -> Self {
        let mut kept = Self::new(Vec::new(), 0);
        for entry in self.entries.iter().filter(|entry| entry.lazy) {
            let at = kept.len();
            kept.bytes.extend_from_slice(self.record_bytes(*entry));
            if let Some((seed, offset)) = self.stamped {
                let crc = u32_at(&kept.bytes, at as usize) ^ seed.mask(offset + entry.at);
                write_u32(&mut kept.bytes, at, crc);
            }
            kept.note(at, true);
        }
        kept
    }

    /// Puts another batch's records behind this one's.
    pub(crate) fn join(&mut self, other: &Self) {
        for entry in &other.entries {
            let at = self.len();
            self.bytes.extend_from_slice(other.record_bytes(*entry));
            self.note(at, entry.lazy);
        }
    }

    fn record_bytes(&self, entry: Entry) -> &[u8] {
        let bytes = self.bytes.get(entry.at as usize..).unwrap_or_default();
        let len = RawRecord::parse(bytes).map_or(0, |raw| aligned(raw.len()) as usize);
        bytes.get(..len).unwrap_or_default()
    }

    /// The records' heads.
    pub(crate) fn heads(&self) -> impl Iterator<Item = Head> {
        self.entries.iter().filter_map(|entry| Some(RawRecord::parse(self.bytes.get(entry.at as usize..)?)?.head))
    }

    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}

/// Masks the checksum of the record at `at`; gives the new one.
fn mask(bytes: &mut [u8], at: u32, seed: Seed, group: u32) -> u32 {
    let crc = u32_at(bytes, at as usize) ^ seed.mask(group + at);
    write_u32(bytes, at, crc);
    crc
}

fn write_u32(bytes: &mut [u8], at: u32, value: u32) {
    if let Some(to) = bytes.get_mut(at as usize..at as usize + 4) {
        to.copy_from_slice(&value.to_le_bytes());
    }
}
