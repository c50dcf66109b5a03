//! Opening a log: the lock, what is in the folder, and replaying it to the owner.

mod folder;
mod missing;

pub use missing::Missing;

use crate::{
    checkpoint::{self, Checkpoint},
    disk::{Guard, Lock, read_most, write_all},
    error::{Error, Kind, Result},
    extent,
    format::{
        GroupHeader, NoHeader, SEGMENT_HEADER, SegmentHeader,
        extent::{Extent, Held},
        footer::Summary,
    },
    log::Log,
    names::{self, Name},
    options::Options,
    record::{Place, Position, RecordRef},
    scan::{Damage, Detail, Event, Found, Plan},
    segments::{FIRST, Segment, SegmentInfo, Segments},
    writer::{Active, Writer},
};
use folder::{Listing, identity, owner, unreadable};
use std::{fmt, io, path::Path, sync::Arc};

const OP: &str = "open";
/// Most damages a report lists one by one.
const MAX_DAMAGES: usize = 1_000;

/// What replaying found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records shown.
    pub records: u64,
    /// Segments read.
    pub segments: u64,
    /// A group that was never acknowledged was cut short by the crash; it is gone, as it should be.
    pub torn: bool,
    /// What cannot be read any more, at most the first 1,000.
    pub damages: Vec<Damage>,
    /// All there are.
    pub damage_count: u64,
    /// What is missing, those told of at an earlier opening included, as long as segments from that time are kept. What
    /// is missing of a segment that is there is among the damages too.
    pub missing: Vec<Missing>,
}

impl Recovered {
    fn damage(&mut self, damage: Damage) {
        self.damage_count += 1;
        if self.damages.len() < MAX_DAMAGES {
            self.damages.push(damage);
        }
    }
}

/// A log whose folder is locked and listed, before its records are replayed.
///
/// Blocking, as is everything about opening: on an async runtime, open on a thread where blocking is allowed.
pub struct Opening {
    segments: Arc<Segments>,
    guard: Guard,
    checkpoint: Option<Checkpoint>,
    checkpoint_lost: Option<Error>,
    extent: Option<Extent>,
    extent_lost: Option<Error>,
    created: bool,
    next_segment: u64,
}

impl Opening {
    /// Locks the folder and looks what is in it.
    ///
    /// # Errors
    /// `Held` (the text names the owner), `Path` (the text names path and cause), `Version`, `Invalid` (an option, or
    /// files of another log), `Io`, `NoSpace`.
    pub fn begin(options: Options) -> Result<Self> {
        options.check()?;
        let (disk, dir) = (Arc::clone(&options.disk), options.dir.clone());
        let path = |at: &Path, e: io::Error| Error::path(Kind::Path, OP, at, e);
        disk.make_dir(&dir).map_err(|e| path(&dir, e))?;
        let lock = dir.join(names::LOCK);
        let guard = match disk.lock(&lock, &owner(&options)).map_err(|e| path(&lock, e))? {
            Lock::Taken(guard) => guard,
            Lock::Held(owner) => {
                let owner = if owner.is_empty() { "another process" } else { owner.as_str() };
                let text = format!("{} is used by {owner}", dir.display());
                return Err(Error::new(Kind::Held, OP, text));
            }
        };
        let listing = Listing::read(&*disk, &dir)?;
        let (log, created) = identity(&options, &listing)?;
        let checkpoint = checkpoint::read(&*disk, &dir, log);
        let (checkpoint, checkpoint_lost) = match checkpoint {
            Ok(checkpoint) => (checkpoint, None),
            Err(error) if error.kind() == Kind::Corrupt => (None, Some(error)),
            Err(error) => return Err(error),
        };
        let (extent, extent_lost) = match extent::read(&*disk, &dir, log) {
            Ok(extent) => (extent, None),
            Err(error) if error.kind() == Kind::Corrupt => (None, Some(error)),
            Err(error) => return Err(error),
        };
        let stands = checkpoint.as_ref().map_or(0, |c| c.position.segment);
        let named = extent.as_ref().map_or(0, Extent::highest);
        let next_segment = listing.highest.max(stands).max(named).saturating_add(1);
        let segments = Arc::new(Segments::new(options, log, listing.free, listing.bad));
        for (number, name) in listing.live {
            let end = if let Name::Sealed(_, end) = name { end } else { FIRST };
            segments.add(number, name, end, None);
        }
        segments.trim();
        segments.reserve.found(&*disk, &dir);
        Ok(Self { segments, guard, checkpoint, checkpoint_lost, extent, extent_lost, created, next_segment })
    }

    /// The log's id, drawn when it was made.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.segments.log
    }

    /// Whether the log was made just now.
    #[must_use]
    pub fn created(&self) -> bool {
        self.created
    }

    /// The checkpoint, if one was written.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_ref()
    }

    /// Why there is no checkpoint although one was written: it is damaged.
    #[must_use]
    pub fn checkpoint_lost(&self) -> Option<&Error> {
        self.checkpoint_lost.as_ref()
    }

    /// Whether it is known which segments there should be. `false`: the log is older than that note, or the note is
    /// lost; what is missing cannot be told.
    #[must_use]
    pub fn listed(&self) -> bool {
        self.created || self.extent.is_some()
    }

    /// Why it is not known which segments there should be although that was noted: the note is damaged.
    #[must_use]
    pub fn list_lost(&self) -> Option<&Error> {
        self.extent_lost.as_ref()
    }

    /// No record that was ever known to be durable had a higher sequence, those that are gone included; as far as was
    /// noted.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        let Some(extent) = &self.extent else { return 0 };
        let losses = extent.losses.iter().map(|loss| loss.top);
        extent.segments.values().map(|held| held.top).chain(losses).fold(extent.mark.held.top, u64::max)
    }

    /// The segments there are, oldest first. Where the last one ends is known after the replay.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentInfo> {
        self.segments.infos()
    }

    /// Shows every record from `from` on, in the order of the log, and opens the log for writing.
    ///
    /// # Errors
    /// `Io`, `Path`, `Version`, `Invalid` (a segment of another log). Damage is no error: it is in the report.
    pub fn replay(
        self,
        from: Position,
        detail: Detail,
        on_record: impl FnMut(RecordRef<'_>),
    ) -> Result<(Log, Recovered)> {
        let (writer, guard, recovered) = self.recover(from, detail, on_record)?;
        Ok((Log::start(writer, guard)?, recovered))
    }

    /// As [`Opening::replay`], but the log writes only when [`Log::step`] is called. For tests that decide when.
    ///
    /// # Errors
    /// As `replay`.
    #[cfg(any(test, feature = "sim-disk"))]
    pub fn replay_stepped(
        self,
        from: Position,
        detail: Detail,
        on_record: impl FnMut(RecordRef<'_>),
    ) -> Result<(Log, Recovered)> {
        let (writer, guard, recovered) = self.recover(from, detail, on_record)?;
        Ok((Log::stepped(writer, guard), recovered))
    }

    fn recover(
        self,
        from: Position,
        detail: Detail,
        mut on_record: impl FnMut(RecordRef<'_>),
    ) -> Result<(Writer, Guard, Recovered)> {
        let all = self.segments.all();
        let tail = all.last().map_or(0, |segment| segment.number);
        let mut recovered = Recovered::default();
        let known = self.extent.as_ref().map(Extent::known).unwrap_or_default();
        for (number, held) in &known {
            if let Some(segment) = self.segments.get(*number) {
                segment.raise_top(held.top);
            }
        }
        let mut losses = self.missing(&known);
        let mut writer = Writer {
            segments: Arc::clone(&self.segments),
            active: None,
            unnamed: None,
            next_segment: self.next_segment,
        };
        for segment in all {
            // one that was being written is read whole, whatever is wanted of it
            if segment.sealed() && segment.number < from.segment {
                continue;
            }
            recovered.segments += 1;
            let begins = if segment.number < from.segment { u32::MAX } else { 0 };
            let begins = if segment.number == from.segment { from.offset } else { begins };
            let header = self.header(&segment)?;
            let held = known.get(&segment.number).copied().unwrap_or_default();
            let mut summary = Summary::default();
            let found = self.scan(&segment, held, detail, &mut |event| match event {
                Event::Group(at) => summary.group(at),
                Event::Record(record) => {
                    summary.record(&record.head);
                    segment.raise_top(record.head.sequence);
                    if record.place.offset >= begins {
                        recovered.records += 1;
                        on_record(record);
                    }
                }
                Event::Damage(damage) => recovered.damage(damage),
            })?;
            let nothing = found.end == FIRST && found.footer.is_none();
            if header.is_none() && !nothing {
                let place = Place { segment: segment.number, offset: 0, len: SEGMENT_HEADER };
                recovered.damage(Damage { place, head: None });
            }
            if found.damaged || (header.is_none() && !nothing) {
                segment.mark_damaged();
            }
            losses.extend(self.cut_short(&segment, held, found.end)?);
            recovered.torn |= found.torn;
            segment.set_end(found.end);
            if segment.sealed() {
                continue;
            }
            if nothing {
                // its first group was never acknowledged; the file is used again under another number
                segment.seal();
                self.segments.retire(&[segment.number])?;
                continue;
            }
            self.settle(&segment, &found)?;
            if segment.number == tail && found.footer.is_none() {
                writer.active = Some(Active {
                    file: self.segments.file(&segment, OP)?,
                    segment,
                    end: found.end,
                    next_group: found.last_number + 2,
                    summary,
                    marked: false,
                    listed: true,
                });
            } else {
                segment.seal();
                self.segments.rename(&segment, Name::Sealed(segment.number, found.end))?;
            }
        }
        self.note(losses, &mut recovered)?;
        self.segments.sync_dir(OP)?;
        self.reserve();
        for damage in recovered.damages.iter().take(10) {
            tracing::error!(place = %damage.place, head = ?damage.head, "damage in the log at {}", damage.place);
        }
        Ok((writer, self.guard, recovered))
    }

    /// A segment's header; `None`: there is none or it is damaged, and the file's name has to do.
    fn header(&self, segment: &Segment) -> Result<Option<SegmentHeader>> {
        let file = self.segments.file(segment, OP)?;
        let mut bytes = [0; SEGMENT_HEADER as usize];
        let name = || segment.name().unwrap_or(Name::Open(segment.number)).path(&self.segments.options.dir);
        let n = read_most(&*file, &mut bytes, 0).map_err(|e| Error::path(Kind::Io, OP, &name(), e))?;
        match SegmentHeader::decode(bytes.get(..n).unwrap_or_default()) {
            Ok(header) if header.log != self.segments.log && header.number == segment.number => {
                let (path, of, this) = (name(), header.log, self.segments.log);
                let text = format!("{} is of log {of:016x}, this is {this:016x}", path.display());
                Err(Error::new(Kind::Invalid, OP, text))
            }
            // of the file's earlier life
            Ok(header) if header.number != segment.number => Ok(None),
            Ok(header) => Ok(Some(header)),
            Err(NoHeader::Broken) => Ok(None),
            Err(NoHeader::Version(version)) => Err(unreadable(&name(), version)),
        }
    }

    fn scan(&self, segment: &Segment, held: Held, detail: Detail, on: &mut dyn FnMut(Event<'_>)) -> Result<Found> {
        let confirmed = self.checkpoint.as_ref().filter(|c| c.position.segment == segment.number);
        let plan = Plan {
            segment: segment.number,
            seed: segment.seed,
            end: segment.sealed().then(|| segment.end()),
            confirmed: confirmed.map_or(0, |c| c.position.offset).max(held.end),
            detail,
        };
        self.segments.scan(segment, plan, OP, on)
    }

    /// Makes the reserve where there is none. The log does without where it cannot.
    fn reserve(&self) {
        let bytes = u64::from(self.segments.options.reserve_bytes);
        if self.segments.reserve.bytes() < bytes
            && let Err(error) = self.segments.refill_reserve(0)
        {
            tracing::warn!(%error, "there is no room for the log's reserve");
        }
    }

    /// Makes what was found out durable, before anything follows from it.
    ///
    /// The last group may be in the page cache only, left there by a process that died before its sync, or after a sync
    /// that failed and let the pages go: it is written again where it stands. A group that was cut short is there only
    /// up to its header; later bytes could complete it: a mark takes its header's place.
    fn settle(&self, segment: &Segment, found: &Found) -> Result<()> {
        let file = self.segments.file(segment, OP)?;
        let name = segment.name().unwrap_or(Name::Open(segment.number)).path(&self.segments.options.dir);
        let wrap = |e| Error::path(Kind::Io, OP, &name, e);
        if let Some(at) = found.in_doubt {
            let mut bytes = vec![0; found.end.saturating_sub(at) as usize];
            read_most(&*file, &mut bytes, u64::from(at)).map_err(wrap)?;
            write_all(&*file, &bytes, u64::from(at)).map_err(wrap)?;
        }
        if found.torn {
            let mark = GroupHeader::mark(found.last_number + 1).encode(segment.seed.mask(found.end));
            write_all(&*file, &mark, u64::from(found.end)).map_err(wrap)?;
        }
        if found.in_doubt.is_some() || found.torn {
            file.sync_data().map_err(wrap)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("dir", &self.segments.options.dir).finish_non_exhaustive()
    }
}
