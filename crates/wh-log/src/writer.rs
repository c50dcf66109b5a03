//! Writing groups: which segment they go to, when it is sealed, and what a failure does. One at a time, on one thread.

use crate::{
    batch::Batch,
    disk::{DiskFile, write_all},
    error::{Error, Kind, Result},
    format::{GROUP_FOOTER, GROUP_HEADER, GroupHeader, SegmentHeader, footer::Summary},
    names::Name,
    record::Position,
    segments::{FIRST, Segment, Segments},
};
use crc32c::crc32c;
use std::sync::Arc;

const OP: &str = "append";

/// The segment that is written.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) segment: Arc<Segment>,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Where the next group goes.
    pub(crate) end: u32,
    /// Its number.
    pub(crate) next_group: u64,
    pub(crate) summary: Summary,
    /// The end is marked.
    pub(crate) marked: bool,
    /// The list of segments was written since it was begun.
    pub(crate) listed: bool,
}

/// Writes groups.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) segments: Arc<Segments>,
    pub(crate) active: Option<Active>,
    /// A segment that is written no more but not yet named so.
    pub(crate) unnamed: Option<Arc<Segment>>,
    /// The next segment's number. Never given twice, also when making the segment fails.
    pub(crate) next_segment: u64,
}

impl Writer {
    /// Where the next group will be, or later.
    pub(crate) fn position(&self) -> Position {
        match (&self.active, &self.unnamed) {
            (Some(active), _) => Position { segment: active.segment.number, offset: active.end },
            // a group that failed may stand behind its end, and be shown after a crash
            (None, Some(segment)) => Position { segment: segment.number, offset: segment.end() },
            (None, None) => Position { segment: self.next_segment, offset: FIRST },
        }
    }

    /// Whether the end of the log needs no mark.
    pub(crate) fn marked(&self) -> bool {
        self.active.as_ref().is_none_or(|active| active.marked)
    }

    /// Writes a group and makes it durable; gives where it begins.
    pub(crate) fn commit(&mut self, batch: &mut Batch) -> Result<Position> {
        let room = self.segments.options.segment_bytes;
        if self.active.as_ref().is_some_and(|a| a.end > FIRST && a.end.saturating_add(batch.len()) > room) {
            self.seal();
        }
        if self.active.is_none() {
            self.begin()?;
        }
        let Some(mut active) = self.active.take() else {
            return Err(Error::new(Kind::Write, OP, "there is no segment to write to"));
        };
        match active.write(batch, &self.segments) {
            Ok(()) => {
                let begins = Position { segment: active.segment.number, offset: active.end };
                active.end += batch.len();
                active.next_group += 1;
                active.marked = false;
                active.segment.set_end(active.end);
                self.active = Some(active);
                Ok(begins)
            }
            Err(error) => {
                // numbers grow also over groups that failed
                active.next_group += 1;
                if error.kind() == Kind::NoSpace {
                    // part of the group may stand there; it has no end, and the next group overwrites it
                    self.active = Some(active);
                } else {
                    tracing::error!(segment = active.segment.number, %error, "writing failed, the segment is closed");
                    self.abandon(active);
                }
                Err(error)
            }
        }
    }

    /// Notes a durable group for the footer and in the extent. Apart from `commit`, so that those who wait need not wait
    /// for it.
    pub(crate) fn note(&mut self, begins: Position, batch: &Batch) {
        if let Some(active) = self.active.as_mut().filter(|a| a.segment.number == begins.segment) {
            active.summary.group(begins.offset);
            let mut top = 0;
            batch.heads().for_each(|head| {
                top = head.sequence.max(top);
                active.summary.record(&head);
            });
            active.segment.raise_top(top);
            if !std::mem::replace(&mut active.listed, true)
                && let Err(error) = self.segments.write_extent().and_then(|()| self.segments.sync_dir(OP))
            {
                // without it less is known of what should be there, and nothing else
                tracing::warn!(%error, "the list of segments could not be written");
            }
            self.segments.extent.note(self.segments.log, begins.segment, active.segment.held());
        }
    }

    /// Begins a new segment. Nothing is written to it before its name, and the end of the one before, are durable.
    fn begin(&mut self) -> Result<()> {
        if let Some(segment) = &self.unnamed {
            match segment.end() {
                // nothing in it was acknowledged
                FIRST => self.segments.retire(&[segment.number])?,
                end => self.segments.rename(segment, Name::Sealed(segment.number, end))?,
            }
        }
        let number = self.next_segment;
        self.next_segment += 1;
        let file = self.segments.new_file(number)?;
        let segment = self.segments.add(number, Name::Open(number), FIRST, Some(Arc::clone(&file)));
        if let Err(error) = self.segments.sync_dir(OP) {
            self.segments.discard(&segment);
            return Err(error);
        }
        self.unnamed = None;
        self.active = Some(Active {
            segment,
            file,
            end: FIRST,
            next_group: 1,
            summary: Summary::default(),
            marked: true,
            listed: false,
        });
        Ok(())
    }

    /// Ends the segment with its footer. A footer that cannot be written is done without.
    pub(crate) fn seal(&mut self) {
        let Some(active) = self.active.take_if(|active| active.end > FIRST) else { return };
        if let Err(error) = active.write_footer() {
            tracing::warn!(segment = active.segment.number, %error, "segment is sealed without its footer");
        }
        self.abandon(active);
    }

    /// Writes to this segment no more.
    fn abandon(&mut self, active: Active) {
        active.segment.seal();
        self.unnamed = Some(active.segment);
    }

    /// Marks the end of the log: what is before it was durable. `sync`: and the mark is.
    pub(crate) fn mark(&mut self, sync: bool) {
        let Some(active) = &mut self.active else { return };
        let (segments, segment) = (&self.segments, &active.segment);
        if sync {
            segments.extent.settle(segments.log, segment.number, segment.held());
        } else {
            segments.extent.note(segments.log, segment.number, segment.held());
        }
        if active.end > FIRST {
            let marked = active.write_mark().and_then(|()| if sync { active.file.sync_data() } else { Ok(()) });
            if let Err(error) = marked {
                tracing::debug!(segment = active.segment.number, %error, "the end of the log could not be marked");
            }
            active.next_group += 1;
        }
        active.marked = true;
    }
}

impl Active {
    fn write(&mut self, batch: &mut Batch, segments: &Segments) -> Result<()> {
        let path = || self.segment.name().unwrap_or(Name::Open(self.segment.number)).path(&segments.options.dir);
        let unwritten = |e: std::io::Error| Error::path(Kind::Write, OP, &path(), e);
        if self.end == FIRST {
            let created = segments.options.clock.wall();
            let header = SegmentHeader { log: segments.log, number: self.segment.number, created };
            write_all(&*self.file, &header.encode(), 0).map_err(unwritten)?;
        }
        let bytes = batch.stamp(self.segment.seed, self.end, self.next_group);
        write_all(&*self.file, bytes, u64::from(self.end)).map_err(unwritten)?;
        self.file.sync_data().map_err(|e| Error::path(Kind::Sync, OP, &path(), e))
    }

    fn write_mark(&self) -> std::io::Result<()> {
        let bytes = GroupHeader::mark(self.next_group).encode(self.segment.seed.mask(self.end));
        write_all(&*self.file, &bytes, u64::from(self.end))
    }

    fn write_footer(&self) -> std::io::Result<()> {
        let content = self.summary.footer().encode();
        let header = GroupHeader {
            number: self.next_group,
            len: content.len() as u32,
            records: 0,
            digest: crc32c(&content),
            flags: GROUP_FOOTER,
        };
        let mut bytes = Vec::with_capacity(GROUP_HEADER as usize + content.len());
        bytes.extend_from_slice(&header.encode(self.segment.seed.mask(self.end)));
        bytes.extend_from_slice(&content);
        write_all(&*self.file, &bytes, u64::from(self.end))?;
        self.file.sync_data()
    }
}
