//! The segments a log has: their files and names.

mod read;

use crate::{
    disk::{DiskFile, Mode},
    error::{Error, Kind, Result},
    extent::Keeper,
    format::{SEGMENT_HEADER, Seed, extent::Held},
    names::{self, Name},
    options::Options,
    reserve::Reserve,
    scan::{Event, Found, Plan, scan},
};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

/// What [`Log::segments`](crate::Log::segments) says of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number. Older segments have lower ones.
    pub number: u64,
    /// Bytes from its beginning to the end of its last durable group.
    pub bytes: u32,
    /// It is written no more.
    pub sealed: bool,
    /// Damage was met in it.
    pub damaged: bool,
    /// The highest sequence of a record in it.
    pub last_sequence: u64,
}

#[derive(Debug)]
struct Handle {
    /// `None`: retired.
    name: Option<Name>,
    file: Option<Arc<dyn DiskFile>>,
}

/// One segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) seed: Seed,
    end: AtomicU32,
    /// The highest sequence of a record in it.
    top: AtomicU64,
    sealed: AtomicBool,
    damaged: AtomicBool,
    /// Held while its file is renamed, so that nobody opens it by a name it just lost.
    handle: Mutex<Handle>,
}

impl Segment {
    pub(crate) fn end(&self) -> u32 {
        self.end.load(Ordering::Acquire)
    }
    pub(crate) fn set_end(&self, end: u32) {
        self.end.store(end, Ordering::Release);
    }
    pub(crate) fn top(&self) -> u64 {
        self.top.load(Ordering::Acquire)
    }
    pub(crate) fn raise_top(&self, top: u64) {
        self.top.fetch_max(top, Ordering::AcqRel);
    }
    pub(crate) fn held(&self) -> Held {
        Held { end: self.end(), top: self.top() }
    }
    pub(crate) fn sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }
    pub(crate) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }
    pub(crate) fn mark_damaged(&self) {
        self.damaged.store(true, Ordering::Release);
    }
    pub(crate) fn name(&self) -> Option<Name> {
        self.handle.lock().name
    }
}

/// All segments of a log, and the retired ones that wait to be overwritten.
#[derive(Debug)]
pub(crate) struct Segments {
    pub(crate) options: Options,
    pub(crate) log: u64,
    live: RwLock<BTreeMap<u64, Arc<Segment>>>,
    pool: Mutex<Vec<u64>>,
    /// Retired with damage, oldest first.
    bad: Mutex<VecDeque<u64>>,
    /// Which segments' files are open, in the order of opening.
    opened: Mutex<VecDeque<u64>>,
    pub(crate) extent: Keeper,
    pub(crate) reserve: Reserve,
}

impl Segments {
    pub(crate) fn new(options: Options, log: u64, pool: Vec<u64>, bad: VecDeque<u64>) -> Self {
        Self {
            options,
            log,
            live: RwLock::default(),
            pool: Mutex::new(pool),
            bad: Mutex::new(bad),
            opened: Mutex::default(),
            extent: Keeper::default(),
            reserve: Reserve::default(),
        }
    }

    /// Adds a segment.
    pub(crate) fn add(&self, number: u64, name: Name, end: u32, file: Option<Arc<dyn DiskFile>>) -> Arc<Segment> {
        let segment = Arc::new(Segment {
            number,
            seed: Seed::new(self.log, number),
            end: AtomicU32::new(end),
            top: AtomicU64::new(0),
            sealed: AtomicBool::new(matches!(name, Name::Sealed(..))),
            damaged: AtomicBool::new(false),
            handle: Mutex::new(Handle { name: Some(name), file: None }),
        });
        if let Some(file) = file {
            self.keep_open(&segment, &mut segment.handle.lock(), file);
        }
        self.live.write().insert(number, Arc::clone(&segment));
        segment
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<Segment>> {
        self.live.read().get(&number).cloned()
    }

    /// All, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Segment>> {
        self.live.read().values().cloned().collect()
    }

    pub(crate) fn infos(&self) -> Vec<SegmentInfo> {
        let live = self.live.read();
        let info = |segment: &Arc<Segment>| SegmentInfo {
            number: segment.number,
            bytes: segment.end(),
            sealed: segment.sealed(),
            damaged: segment.damaged.load(Ordering::Acquire),
            last_sequence: segment.top(),
        };
        live.values().map(info).collect()
    }

    /// A segment's file, opened where it is not.
    pub(crate) fn file(&self, segment: &Segment, op: &'static str) -> Result<Arc<dyn DiskFile>> {
        let mut handle = segment.handle.lock();
        if let Some(file) = &handle.file {
            return Ok(Arc::clone(file));
        }
        let path = handle.name.ok_or_else(|| retired(op, segment.number))?.path(&self.options.dir);
        let file = self.options.disk.open(&path, Mode::Write).map_err(|e| Error::path(Kind::Io, op, &path, e))?;
        self.keep_open(segment, &mut handle, Arc::clone(&file));
        Ok(file)
    }

    fn keep_open(&self, segment: &Segment, handle: &mut Handle, file: Arc<dyn DiskFile>) {
        handle.file = Some(file);
        let mut opened = self.opened.lock();
        opened.push_back(segment.number);
        while opened.len() > self.options.open_files {
            // one that is in use stays open: its user has it
            let Some(oldest) = opened.pop_front().and_then(|number| self.get(number)) else { continue };
            if let Some(mut other) = oldest.handle.try_lock() {
                other.file = None;
            }
        }
    }

    /// Gives a segment another name. Durable with the next sync of the folder.
    pub(crate) fn rename(&self, segment: &Segment, to: Name) -> Result<()> {
        let mut handle = segment.handle.lock();
        let Some(from) = handle.name.filter(|&from| from != to) else { return Ok(()) };
        let (from, path) = (from.path(&self.options.dir), to.path(&self.options.dir));
        self.options.disk.rename(&from, &path).map_err(|e| Error::path(Kind::Io, "rename", &from, e))?;
        handle.name = Some(to);
        Ok(())
    }

    pub(crate) fn sync_dir(&self, op: &'static str) -> Result<()> {
        let dir = &self.options.dir;
        self.options.disk.sync_dir(dir).map_err(|e| Error::path(Kind::Io, op, dir, e))
    }

    /// A file for a new segment, from the pool or made. Its name is durable with the next sync of the folder.
    pub(crate) fn new_file(&self, number: u64) -> Result<Arc<dyn DiskFile>> {
        let (dir, disk) = (&self.options.dir, &self.options.disk);
        let path = Name::Open(number).path(dir);
        let free = self.pool.lock().pop();
        let opened = match free {
            Some(free) => disk.rename(&Name::Free(free).path(dir), &path).and_then(|()| disk.open(&path, Mode::Write)),
            None => disk.open(&path, Mode::Create),
        };
        opened.map_err(|e| Error::path(Kind::Write, "append", &path, e))
    }

    /// Takes a segment that nothing was ever stored in out of the log.
    pub(crate) fn discard(&self, segment: &Segment) {
        self.live.write().remove(&segment.number);
        let mut handle = segment.handle.lock();
        if let Some(name) = handle.name.take() {
            remove(self, name);
        }
        handle.file = None;
    }

    /// Takes segments out of the log. Returns once that is durable.
    pub(crate) fn retire(&self, numbers: &[u64]) -> Result<()> {
        const OP: &str = "retire";
        let going: Vec<Arc<Segment>> = numbers.iter().filter_map(|number| self.get(*number)).collect();
        if let Some(Segment { number, .. }) = going.iter().map(|segment| &**segment).find(|segment| !segment.sealed()) {
            let text = format!("segment {number} is still written");
            return Err(Error::new(Kind::Invalid, OP, text));
        }
        going.iter().for_each(|segment| drop(self.live.write().remove(&segment.number)));
        // taken off the list before they go: what is on it and not there is missing
        if going.iter().any(|segment| segment.end() > FIRST) {
            let listed = self.write_extent().and_then(|()| self.sync_dir(OP));
            if let Err(error) = listed {
                self.live.write().extend(going.into_iter().map(|segment| (segment.number, segment)));
                return Err(error);
            }
        }
        let done = self.give_up(&going);
        if done.is_err() {
            let kept = going.into_iter().filter(|segment| segment.name().is_some());
            self.live.write().extend(kept.map(|segment| (segment.number, segment)));
        }
        done
    }

    /// Gives the files of segments away that are on no list any more.
    fn give_up(&self, going: &[Arc<Segment>]) -> Result<()> {
        const OP: &str = "retire";
        let mut freed = Vec::new();
        for segment in going {
            let number = segment.number;
            let mut handle = segment.handle.lock();
            let Some(name) = handle.name else { continue };
            let (dir, disk) = (&self.options.dir, &self.options.disk);
            let from = name.path(dir);
            let damaged = segment.damaged.load(Ordering::Acquire);
            let done = if damaged {
                disk.rename(&from, &Name::Bad(number).path(dir))
            } else if !self.reserve.spent() && self.pool.lock().len() + freed.len() < self.options.pool_segments {
                freed.push(number);
                disk.rename(&from, &Name::Free(number).path(dir))
            } else {
                disk.remove(&from)
            };
            if let Err(e) = done {
                freed.retain(|&n| n != number);
                self.pool.lock().extend(freed);
                return Err(Error::path(Kind::Io, OP, &from, e));
            }
            if damaged {
                self.bad.lock().push_back(number);
            }
            handle.name = None;
            handle.file = None;
        }
        self.sync_dir(OP)?;
        self.pool.lock().extend(freed);
        self.trim_bad();
        Ok(())
    }

    /// Writes down which segments there are. Certain with the next sync of the folder.
    pub(crate) fn write_extent(&self) -> Result<()> {
        const OP: &str = "write extent";
        let (disk, dir) = (&*self.options.disk, &self.options.dir);
        let held = || {
            let live = self.live.read();
            let begun = live.values().filter(|segment| segment.end() > FIRST);
            begun.map(|segment| (segment.number, segment.held())).collect()
        };
        let written = self.extent.replace(disk, dir, self.log, held);
        written.map_err(|e| Error::path(Kind::Write, OP, &dir.join(names::EXTENT), e))
    }

    /// Gives up the reserve and every file that waits to be overwritten.
    pub(crate) fn spend_reserve(&self) -> Result<()> {
        let free: Vec<u64> = self.pool.lock().drain(..).collect();
        free.into_iter().for_each(|number| remove(self, Name::Free(number)));
        self.reserve.spend(&*self.options.disk, &self.options.dir)
    }

    /// Makes the reserve, or finds out whether there is room for another.
    pub(crate) fn refill_reserve(&self, at_least: u64) -> Result<()> {
        let bytes = u64::from(self.options.reserve_bytes);
        let bytes = if bytes == 0 { 0 } else { bytes.max(at_least) };
        self.reserve.refill(&*self.options.disk, &self.options.dir, bytes)
    }

    /// Removes what is kept beyond its bound.
    pub(crate) fn trim(&self) {
        let mut pool = self.pool.lock();
        while pool.len() > self.options.pool_segments {
            if let Some(free) = pool.pop() {
                remove(self, Name::Free(free));
            }
        }
        drop(pool);
        self.trim_bad();
    }

    /// Scans a segment's file.
    pub(crate) fn scan(
        &self,
        segment: &Segment,
        plan: Plan,
        op: &'static str,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Found> {
        let file = self.file(segment, op)?;
        scan(&*file, plan, on).map_err(|e| Error::new(Kind::Io, op, format!("segment {}: {e}", segment.number)))
    }

    /// Removes the oldest of the segments kept for inspection beyond the bound.
    fn trim_bad(&self) {
        let mut bad = self.bad.lock();
        while bad.len() > self.options.quarantine_segments {
            if let Some(oldest) = bad.pop_front() {
                tracing::warn!(segment = oldest, "removing damaged segment {oldest}, newer ones are kept");
                remove(self, Name::Bad(oldest));
            }
        }
    }
}

/// Removes a file that nothing depends on.
fn remove(segments: &Segments, name: Name) {
    let path = name.path(&segments.options.dir);
    if let Err(error) = segments.options.disk.remove(&path) {
        tracing::warn!(path = %path.display(), %error, "{} is not needed and cannot be removed", path.display());
    }
}

pub(crate) fn retired(op: &'static str, number: u64) -> Error {
    Error::new(Kind::Retired, op, format!("segment {number} is not in the log"))
}

/// Where the first group of a segment begins.
pub(crate) const FIRST: u32 = SEGMENT_HEADER;
