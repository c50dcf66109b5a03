//! Reading a segment from its beginning: which records are in it, what is damaged, and where it ends.
//!
//! # Damage or the end?
//! Groups are written one at a time, the next only after the one before is durable. So whatever is followed by a whole
//! later group header, or stands before an end that was written down (the segment's name, a mark, the checkpoint's
//! position), was acknowledged: if it cannot be read it is damage, reported with its place, and what is around it is
//! served. What cannot be read and is followed by none of these is the group that a crash cut short: the log ends
//! before it, and no record of it is shown, readable or not.

mod window;

use crate::{
    disk::DiskFile,
    format::{
        ALIGN, GROUP_FOOTER, GROUP_HEADER, GROUP_MARK, GroupHeader, RECORD_HEADER, RawRecord, SEGMENT_HEADER, Seed,
        aligned, footer::Footer, u32_at,
    },
    record::{Head, Place, RecordRef},
};
use crc32c::{crc32c, crc32c_append};
use std::io;
use window::Window;

/// How much of each record a scan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Everything; bodies are verified.
    Full,
    /// Heads and metas of sealed segments: bodies are neither read nor verified, which is for the read of each record
    /// then. The last segment is always read whole.
    Heads,
}

/// Bytes in the log that are not what was written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which bytes.
    pub place: Place,
    /// Whose body it is, where that can still be read. `None`: whatever was there cannot be told.
    pub head: Option<Head>,
}

/// What a scan met, in the order of the file.
pub(crate) enum Event<'a> {
    /// A group begins here.
    Group(u32),
    Record(RecordRef<'a>),
    Damage(Damage),
}

/// What to scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) segment: u64,
    pub(crate) seed: Seed,
    /// Where the groups end, where that was written down.
    pub(crate) end: Option<u32>,
    /// Everything before this was durable once.
    pub(crate) confirmed: u32,
    pub(crate) detail: Detail,
}

/// What a scan found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// Where the groups end, and the next would go.
    pub(crate) end: u32,
    /// The highest group number there.
    pub(crate) last_number: u64,
    /// Where the last group begins that has nothing behind it to prove that it was durable.
    pub(crate) in_doubt: Option<u32>,
    /// A group was cut short after the end.
    pub(crate) torn: bool,
    /// The segment was sealed.
    pub(crate) footer: Option<Footer>,
    pub(crate) damaged: bool,
}

/// Scans a segment.
pub(crate) fn scan(file: &dyn DiskFile, plan: Plan, on: &mut dyn FnMut(Event<'_>)) -> io::Result<Found> {
    let size = file.size()?.min(u64::from(u32::MAX));
    let limit = plan.end.map_or(size, u64::from);
    let confirmed = u64::from(plan.confirmed.max(plan.end.unwrap_or(0)));
    let window = Window::new(file, size);
    Scan { window, plan, limit, confirmed, number: 0, damaged: false, on }.run()
}

/// Reads the footer that stands where a sealed segment's groups end.
pub(crate) fn footer_at(file: &dyn DiskFile, seed: Seed, end: u32) -> io::Result<Option<Footer>> {
    let mut window = Window::new(file, file.size()?);
    let header = GroupHeader::decode(window.get(u64::from(end), GROUP_HEADER as usize)?, seed.mask(end));
    match header.filter(|header| header.flags & GROUP_FOOTER != 0) {
        Some(header) => read_footer(&mut window, u64::from(end), header),
        None => Ok(None),
    }
}

fn read_footer(window: &mut Window<'_>, at: u64, header: GroupHeader) -> io::Result<Option<Footer>> {
    let len = header.len as usize;
    let bytes = window.get(at + u64::from(GROUP_HEADER), len)?;
    // its content is a multiple of ALIGN by itself
    Ok((bytes.len() == len && crc32c(bytes) == header.digest).then(|| Footer::decode(bytes)).flatten())
}

struct Scan<'a> {
    window: Window<'a>,
    plan: Plan,
    /// No group reaches beyond this.
    limit: u64,
    /// Everything before this was durable once.
    confirmed: u64,
    /// The last group's number.
    number: u64,
    damaged: bool,
    on: &'a mut dyn FnMut(Event<'_>),
}

impl Scan<'_> {
    fn run(mut self) -> io::Result<Found> {
        let mut at = u64::from(SEGMENT_HEADER);
        let (mut last_at, mut torn, mut footer, mut marked) = (None, false, None, self.plan.end.is_some());
        while self.plan.end.is_none() || at < self.limit {
            let header = self.group_header(at)?;
            match header {
                Some(header) if header.flags & GROUP_MARK != 0 => {
                    self.number = header.number;
                    marked = true;
                    break;
                }
                Some(header) if header.flags & GROUP_FOOTER != 0 => {
                    footer = read_footer(&mut self.window, at, header)?;
                    torn = footer.is_none();
                    break;
                }
                Some(header) if self.shown(at, header)? => {
                    self.number = header.number;
                    last_at = Some(at);
                    at += header.extent();
                }
                Some(header) => {
                    self.number = header.number;
                    torn = true;
                    break;
                }
                None => {
                    let next = self.find_group(at + u64::from(ALIGN))?;
                    let Some(to) = next.or((at < self.confirmed).then_some(self.confirmed)) else { break };
                    self.salvage(at, to)?;
                    at = to;
                }
            }
        }
        let proven = marked || footer.is_some() || last_at.is_none_or(|at| at < self.confirmed);
        Ok(Found {
            end: offset(at),
            last_number: self.number,
            in_doubt: last_at.filter(|_| !proven).map(offset),
            torn,
            footer,
            damaged: self.damaged,
        })
    }

    /// The header of the next group, if one stands here.
    fn group_header(&mut self, at: u64) -> io::Result<Option<GroupHeader>> {
        let mask = self.plan.seed.mask(offset(at));
        let header = GroupHeader::decode(self.window.get(at, GROUP_HEADER as usize)?, mask);
        Ok(header.filter(|header| {
            // a mark or footer cannot stand where more groups are known to follow
            let fits = self.plan.end.is_none() || at + header.extent() <= self.limit;
            header.number > self.number && fits && (header.flags == 0 || at >= self.confirmed)
        }))
    }

    /// The first later group header from here on.
    fn find_group(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = aligned(from);
        while at + u64::from(GROUP_HEADER) <= self.limit.min(self.window.size()) {
            let magic = u32_at(self.window.get(at, GROUP_HEADER as usize)?, 4);
            if magic == GroupHeader::MAGIC && self.group_header(at)?.is_some() {
                return Ok(Some(at));
            }
            at += u64::from(ALIGN);
        }
        Ok(None)
    }

    /// Shows a group's records, unless it is one that was cut short.
    fn shown(&mut self, at: u64, header: GroupHeader) -> io::Result<bool> {
        let to = at + header.extent();
        if to <= self.confirmed {
            self.show(at, to, true)?;
            return Ok(true);
        }
        if self.whole(at, header)? {
            self.show(at, to, false)?;
            return Ok(true);
        }
        match self.find_group(to)? {
            Some(next) => {
                self.confirmed = self.confirmed.max(next);
                self.show(at, to, true)?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Whether every byte of the group is as it was written.
    fn whole(&mut self, at: u64, header: GroupHeader) -> io::Result<bool> {
        let Ok(len) = usize::try_from(header.extent()) else { return Ok(false) };
        if at + header.extent() > self.window.size() {
            return Ok(false);
        }
        let group = self.window.get(at, len)?;
        let (mut pos, mut records, mut digest) = (GROUP_HEADER as usize, 0, 0);
        while pos < len {
            let Some(bytes) = group.get(pos..) else { return Ok(false) };
            let Some(raw) = RawRecord::parse(bytes) else { return Ok(false) };
            let (mask, size) = (self.plan.seed.mask(offset(at + pos as u64)), raw.len());
            let body = usize::try_from(size).ok().and_then(|end| bytes.get(raw.body_at()..end));
            if !raw.verify_head(bytes, mask) || !body.is_some_and(|body| raw.verify_body(body)) {
                return Ok(false);
            }
            digest = crc32c_append(digest, &raw.crc.to_le_bytes());
            records += 1;
            pos += usize::try_from(aligned(size)).unwrap_or(usize::MAX - pos);
        }
        Ok(pos == len && records == header.records && digest == header.digest)
    }

    /// Shows the records of a group; `verify`: each must prove itself.
    fn show(&mut self, at: u64, to: u64, verify: bool) -> io::Result<()> {
        (self.on)(Event::Group(offset(at)));
        let mut at = at + u64::from(GROUP_HEADER);
        while at < to {
            match self.show_record(at, to, verify)? {
                Some(next) => at = next,
                None => return self.salvage(at, to),
            }
        }
        Ok(())
    }

    /// Shows the record that stands here, or that its body is damaged; gives where the next is. `None`: none stands here.
    fn show_record(&mut self, at: u64, to: u64, verify: bool) -> io::Result<Option<u64>> {
        let Some(raw) = RawRecord::parse(self.window.get(at, RECORD_HEADER as usize)?) else { return Ok(None) };
        let next = at + aligned(raw.len());
        if next > to {
            return Ok(None);
        }
        let full = self.plan.detail == Detail::Full || self.plan.end.is_none();
        let wanted = if full { usize::try_from(raw.len()).unwrap_or(usize::MAX) } else { raw.body_at() };
        let bytes = self.window.get(at, wanted)?;
        if verify && !raw.verify_head(bytes, self.plan.seed.mask(offset(at))) {
            return Ok(None);
        }
        let place = Place { segment: self.plan.segment, offset: offset(at), len: offset(raw.len()) };
        let body = bytes.get(raw.body_at()..).unwrap_or_default();
        if full && verify && !raw.verify_body(body) {
            self.damaged = true;
            (self.on)(Event::Damage(Damage { place, head: Some(raw.head) }));
        } else {
            let meta = bytes.get(RECORD_HEADER as usize..raw.body_at()).unwrap_or_default();
            (self.on)(Event::Record(RecordRef { place, head: raw.head, meta, body: full.then_some(body) }));
        }
        Ok(Some(next))
    }

    /// Shows what can still be found in a stretch that has damage in it.
    fn salvage(&mut self, from: u64, to: u64) -> io::Result<()> {
        let (mut at, mut bad) = (from, from);
        while at < to.min(self.window.size()) {
            let here = RawRecord::parse(self.window.get(at, RECORD_HEADER as usize)?)
                .filter(|raw| at + aligned(raw.len()) <= to);
            let whole = match here {
                Some(raw) => raw.verify_head(self.window.get(at, raw.body_at())?, self.plan.seed.mask(offset(at))),
                None => false,
            };
            if whole {
                self.lost(bad, at);
                at = self.show_record(at, to, true)?.unwrap_or(at + u64::from(ALIGN));
                bad = at;
            } else {
                at += u64::from(ALIGN);
            }
        }
        self.lost(bad, to);
        Ok(())
    }

    fn lost(&mut self, from: u64, to: u64) {
        if from < to {
            self.damaged = true;
            let place = Place { segment: self.plan.segment, offset: offset(from), len: offset(to - from) };
            (self.on)(Event::Damage(Damage { place, head: None }));
        }
    }
}

/// Offsets fit by the bound on a segment's size; what a damaged file claims beyond it is never reached.
fn offset(at: u64) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
