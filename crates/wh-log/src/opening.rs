//! Opening a log: the lock, what is in the folder, and replaying it to the owner.

use crate::{
    checkpoint::{self, Checkpoint},
    disk::{Disk, Guard, Lock, Mode, read_file, read_most, replace_file, write_all},
    error::{Error, Kind, Result},
    extent,
    format::{
        FORMAT_VERSION, GroupHeader, NoHeader, SEGMENT_HEADER, SegmentHeader,
        extent::{Extent, Held, Loss},
        footer::Summary,
        small,
    },
    log::Log,
    names::{self, Name},
    options::Options,
    record::{Place, Position, RecordRef},
    scan::{Damage, Detail, Event, Found, Plan},
    segments::{FIRST, Segment, SegmentInfo, Segments},
    writer::{Active, Writer},
};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    path::Path,
    sync::Arc,
};
use wh_types::Timestamp;

const OP: &str = "open";
/// Most damages a report lists one by one.
const MAX_DAMAGES: usize = 1_000;

/// A stretch of a segment that was durable once and is not there any more: its file is gone, or shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The segment's number, and which bytes of it.
    pub place: Place,
    /// The segment's file is gone.
    pub whole: bool,
    /// No record of the segment had a higher sequence.
    pub last_sequence: u64,
    /// When it was first noticed.
    pub noticed: Timestamp,
}

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

impl Missing {
    fn of(loss: &Loss) -> Self {
        let len = loss.to.saturating_sub(loss.from);
        Self {
            place: Place { segment: loss.segment, offset: loss.from, len },
            whole: loss.from == FIRST,
            last_sequence: loss.top,
            noticed: loss.noticed,
        }
    }
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

    fn loss(&self, segment: u64, from: u32, held: Held) -> Loss {
        let (noticed, until) = (self.segments.options.clock.wall(), self.next_segment);
        Loss { segment, from, to: held.end, top: held.top, noticed, until }
    }

    /// Segments that were there and are not.
    fn missing(&self, known: &BTreeMap<u64, Held>) -> Vec<Loss> {
        let gone = known.iter().filter(|(number, _)| self.segments.get(**number).is_none());
        gone.map(|(number, held)| self.loss(*number, FIRST, *held)).collect()
    }

    /// What is missing at the end of a segment.
    fn cut_short(&self, segment: &Segment, held: Held, end: u32) -> Result<Option<Loss>> {
        let size = self.segments.file(segment, OP)?.size();
        let size = size.map_err(|e| Error::new(Kind::Io, OP, format!("segment {}: {e}", segment.number)))?;
        let held = Held { end: held.end.max(if segment.sealed() { end } else { 0 }), ..held };
        let from = u32::try_from(size).unwrap_or(u32::MAX).max(FIRST).min(end);
        Ok((from < held.end).then(|| self.loss(segment.number, from, Held { top: segment.top(), ..held })))
    }

    /// Reports what is missing, and writes down which segments there are.
    fn note(&self, losses: Vec<Loss>, recovered: &mut Recovered) -> Result<()> {
        let (mark, mut told) = self.extent.as_ref().map(|e| (e.mark, e.losses.clone())).unwrap_or_default();
        for loss in losses {
            // noticed before, and still so
            let before = |old: &Loss| (old.segment, old.from, old.to) == (loss.segment, loss.from, loss.to);
            if !told.iter().any(before) {
                told.push(loss);
            }
        }
        recovered.missing = told.iter().map(Missing::of).collect();
        self.segments.extent.adopt(mark, told);
        match self.segments.write_extent() {
            // a full disk is served from; what is missing is found again the next time
            Err(error) if error.kind() == Kind::NoSpace => {
                tracing::warn!(%error, "the list of segments could not be written");
                self.segments.extent.keep(&*self.segments.options.disk, &self.segments.options.dir);
                Ok(())
            }
            written => written,
        }
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

fn unreadable(path: &Path, version: u32) -> Error {
    let text = format!("{} has format version {version}, this reads {FORMAT_VERSION}", path.display());
    Error::new(Kind::Version, OP, text)
}

/// Who we are, for the one who finds the folder locked.
fn owner(options: &Options) -> String {
    let host = rustix::system::uname();
    let (pid, host) = (std::process::id(), host.nodename().to_string_lossy());
    format!("process {pid} on {host} since {}", options.clock.wall())
}

/// What is in the folder.
struct Listing {
    live: BTreeMap<u64, Name>,
    free: Vec<u64>,
    bad: VecDeque<u64>,
    highest: u64,
}

impl Listing {
    fn read(disk: &dyn Disk, dir: &Path) -> Result<Self> {
        let mut listing = Self { live: BTreeMap::new(), free: Vec::new(), bad: VecDeque::new(), highest: 0 };
        let names = disk.list(dir).map_err(|e| Error::path(Kind::Path, OP, dir, e))?;
        for file in names {
            let Some(name) = Name::parse(&file) else { continue };
            listing.highest = listing.highest.max(name.segment().unwrap_or(0));
            match name {
                Name::Sealed(number, _) => {
                    listing.live.insert(number, name);
                }
                // both names can only be there if someone copied files; the one with the end says more
                Name::Open(number) => {
                    listing.live.entry(number).or_insert(name);
                }
                Name::Free(number) => listing.free.push(number),
                Name::Bad(number) => listing.bad.push_back(number),
                Name::Temp => {
                    let path = dir.join(&file);
                    disk.remove(&path).map_err(|e| Error::path(Kind::Path, OP, &path, e))?;
                }
            }
        }
        listing.free.sort_unstable();
        listing.bad.make_contiguous().sort_unstable();
        Ok(listing)
    }
}

/// The log's id: from its file, or from a segment where that is lost, or drawn for a new log.
fn identity(options: &Options, listing: &Listing) -> Result<(u64, bool)> {
    let (disk, dir) = (&*options.disk, &options.dir);
    let path = dir.join(names::IDENTITY);
    match read_file(disk, &path, small::IDENTITY as u64).map(|bytes| small::decode_identity(&bytes)) {
        Ok(Ok((log, _))) => return Ok((log, false)),
        Ok(Err(NoHeader::Version(version))) => return Err(unreadable(&path, version)),
        Ok(Err(NoHeader::Broken)) => {}
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {}
        Err(e) => return Err(Error::path(Kind::Path, OP, &path, e)),
    }
    let from_segment = listing.live.values().find_map(|name| {
        let file = disk.open(&name.path(dir), Mode::Read).ok()?;
        let mut bytes = [0; SEGMENT_HEADER as usize];
        read_most(&*file, &mut bytes, 0).ok()?;
        SegmentHeader::decode(&bytes).ok().filter(|header| Some(header.number) == name.segment())
    });
    let (log, created) = match from_segment {
        Some(header) => {
            tracing::warn!(path = %path.display(), "the log's identity was lost, it is taken from a segment");
            (header.log, false)
        }
        None => (options.entropy.next_u64(), true),
    };
    let bytes = small::encode_identity(log, options.clock.wall());
    replace_file(disk, &path, &[&bytes]).map_err(|e| Error::path(Kind::Path, OP, &path, e))?;
    Ok((log, created))
}
