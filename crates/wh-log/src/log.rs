//! The log as its owner sees it.

mod reserve;

use crate::{
    checkpoint::{self, Checkpoint},
    committer::{self, Progress},
    disk::Guard,
    error::{Error, Kind, Result},
    format::{footer::Footer, footer::Summary, framed_len},
    opening::{Opening, Recovered},
    options::Options,
    queue::{Queue, Room},
    record::{Place, Position, Record, RecordRef, Stored},
    scan::{Damage, Detail, Event, Plan, footer_at},
    segments::{SegmentInfo, Segments, retired},
    stats::Stats,
    ticket::{Pending, Places},
    writer::Writer,
};
use parking_lot::Mutex;
use std::{fmt, sync::Arc, thread::JoinHandle};

/// What the committer and the log's methods share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) segments: Arc<Segments>,
    pub(crate) queue: Queue,
    pub(crate) progress: Mutex<Progress>,
    pub(crate) stats: Mutex<Stats>,
    pub(crate) guard: Mutex<Option<Guard>>,
    pub(crate) ended: tokio::sync::watch::Sender<bool>,
}

/// A segmented append-only log. Dropping it writes what is queued and waits for that; prefer [`Log::close`].
///
/// Methods that are not `async` block on the file system, for microseconds where the page cache has what they need.
pub struct Log {
    shared: Arc<Shared>,
    committer: Mutex<Option<JoinHandle<()>>>,
    #[cfg(any(test, feature = "sim-disk"))]
    writer: Mutex<Option<Writer>>,
}

impl Log {
    /// Opens a log and shows every record in it, oldest first. An owner with a checkpoint uses [`Opening`].
    ///
    /// Blocking.
    ///
    /// # Errors
    /// As [`Opening::begin`] and [`Opening::replay`].
    pub fn open(options: Options, on_record: impl FnMut(RecordRef<'_>)) -> Result<(Self, Recovered)> {
        Opening::begin(options)?.replay(Position::START, Detail::Full, on_record)
    }

    pub(crate) fn start(writer: Writer, guard: Guard) -> Result<Self> {
        let log = Self::assemble(&writer, guard);
        let shared = Arc::clone(&log.shared);
        let thread = std::thread::Builder::new().name("wh-log".into());
        let thread = thread.spawn(move || committer::run(&shared, writer));
        let thread = thread.map_err(|e| Error::new(Kind::Io, "open", format!("no thread for the committer: {e}")))?;
        *log.committer.lock() = Some(thread);
        Ok(log)
    }

    #[cfg(any(test, feature = "sim-disk"))]
    pub(crate) fn stepped(writer: Writer, guard: Guard) -> Self {
        let log = Self::assemble(&writer, guard);
        *log.writer.lock() = Some(writer);
        log
    }

    fn assemble(writer: &Writer, guard: Guard) -> Self {
        let segments = Arc::clone(&writer.segments);
        let shared = Shared {
            queue: Queue::new(&segments.options),
            segments,
            progress: Mutex::new(Progress::at(writer.position())),
            stats: Mutex::default(),
            guard: Mutex::new(Some(guard)),
            ended: tokio::sync::watch::Sender::new(false),
        };
        Self {
            shared: Arc::new(shared),
            committer: Mutex::new(None),
            #[cfg(any(test, feature = "sim-disk"))]
            writer: Mutex::new(None),
        }
    }

    /// Writes one group, or marks or seals, whatever is next; `false`: nothing to do. Lazy records count as due.
    #[cfg(any(test, feature = "sim-disk"))]
    pub fn step(&self) -> bool {
        let mut writer = self.writer.lock();
        let Some(active) = writer.as_mut() else { return false };
        let Some(work) = self.shared.queue.take_now() else { return false };
        if !committer::turn(&self.shared, active, work) {
            *writer = None;
            self.shared.end();
        }
        true
    }

    /// The log's id, drawn when it was made.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.segments.log
    }

    /// Bytes that records take in the log: what [`Log::room`] is to be asked for.
    #[must_use]
    pub fn bytes_of(records: &[Record<'_>]) -> u32 {
        let one = |record: &Record<'_>| framed_len(record.meta.len(), record.body.iter().map(|part| part.len()).sum());
        u32::try_from(records.iter().map(one).sum::<u64>()).unwrap_or(u32::MAX)
    }

    /// Most bytes one append may take.
    #[must_use]
    pub fn max_append_bytes(&self) -> u32 {
        self.shared.segments.options.max_append_bytes()
    }

    /// Stores records, all or none of them, and resolves when they are durable. Waits while the queue is full.
    ///
    /// Not to be confused with order: two appends that run at the same time are stored in either order. An owner that
    /// counts sequences takes [`Log::room`] first, then counts and calls [`Log::submit`] under its own lock.
    ///
    /// # Errors
    /// `Invalid` (none, too many or too large), `NoSpace` and `Write` (nothing was stored), `Sync` (not known),
    /// `Closed`.
    ///
    /// # Cancel safety
    /// Detached: once queued, the records are stored although nobody waits.
    pub async fn append(&self, records: &[Record<'_>]) -> Result<Places> {
        self.shared.queue.append(records, false).await?.await
    }

    /// Waits until `bytes` may be queued ([`Log::bytes_of`]).
    ///
    /// # Errors
    /// `Invalid` (more than one append may have), `Closed`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn room(&self, bytes: u32) -> Result<Room<'_>> {
        self.shared.queue.room(bytes).await
    }

    /// Queues records, all of one group, in the room that was made for them. Calls are stored in their order. Never
    /// blocks.
    ///
    /// # Errors
    /// `Invalid` (none, or more than there is room for), `Closed`. What becomes of them is what the [`Pending`] says.
    pub fn submit(&self, room: Room<'_>, records: &[Record<'_>]) -> Result<Pending> {
        self.shared.queue.submit(room, records)
    }

    /// As [`Log::submit`], if there is room now.
    ///
    /// # Errors
    /// As `submit`, and `QueueFull`.
    pub fn try_submit(&self, records: &[Record<'_>]) -> Result<Pending> {
        self.shared.queue.try_submit(records)
    }

    /// Queues records that ride on the next group, or are written by themselves after [`Options::lazy_after`]. A crash
    /// before that loses them. They survive failed groups, in which case they come after records queued later. Never
    /// blocks.
    ///
    /// # Errors
    /// `Invalid`, `QueueFull` (too many wait already), `Closed`.
    pub fn append_lazy(&self, records: &[Record<'_>]) -> Result<()> {
        self.shared.queue.push_lazy(records)
    }

    /// Resolves when everything queued before is durable, lazy records too.
    ///
    /// # Errors
    /// The last group's.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn flush(&self) -> Result<()> {
        match self.shared.queue.flush() {
            Some(finished) => finished.await,
            None => Ok(()),
        }
    }

    /// Seals the segment that is written, so that it can be retired; the next group begins another.
    ///
    /// # Errors
    /// `Closed`.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn seal(&self) -> Result<()> {
        self.shared.queue.seal()?.await
    }

    /// Reads a record, verified. Blocking.
    ///
    /// # Errors
    /// `Retired` (its segment is gone), `Corrupt` (the text names the place), `Io`.
    pub fn read(&self, place: Place) -> Result<Stored> {
        self.shared.segments.read(place)
    }

    /// Reads records, one outcome each, those that stand near each other with one call to the disk: in the order of the
    /// log it is much faster than one by one. Blocking.
    #[must_use]
    pub fn read_many(&self, places: &[Place]) -> Vec<Result<Stored>> {
        self.shared.segments.read_many(places)
    }

    /// Shows the records of a segment up to its durable end, from an offset on, and what is damaged in it. Blocking.
    ///
    /// # Errors
    /// `Retired`, `Io`.
    pub fn scan(
        &self,
        from: Position,
        detail: Detail,
        mut on_record: impl FnMut(RecordRef<'_>),
        mut on_damage: impl FnMut(Damage),
    ) -> Result<()> {
        const OP: &str = "scan";
        let segment = self.shared.segments.get(from.segment).ok_or_else(|| retired(OP, from.segment))?;
        let end = segment.end();
        let plan = Plan { segment: from.segment, seed: segment.seed, end: Some(end), confirmed: end, detail };
        let found = self.shared.segments.scan(&segment, plan, OP, &mut |event| match event {
            Event::Record(record) if record.place.offset >= from.offset => on_record(record),
            Event::Damage(damage) => on_damage(damage),
            Event::Record(_) | Event::Group(_) => {}
        })?;
        if found.damaged {
            if self.shared.segments.get(from.segment).is_none() {
                return Err(retired(OP, from.segment));
            }
            segment.mark_damaged();
        }
        Ok(())
    }

    /// What a segment holds, from its footer where it has one, else by scanning it. Blocking.
    ///
    /// # Errors
    /// `Retired`, `Io`.
    pub fn footer(&self, segment: u64) -> Result<Footer> {
        const OP: &str = "read footer";
        let found = self.shared.segments.get(segment).ok_or_else(|| retired(OP, segment))?;
        if found.sealed() {
            let file = self.shared.segments.file(&found, OP)?;
            let footer = footer_at(&*file, found.seed, found.end());
            let footer = footer.map_err(|e| Error::new(Kind::Io, OP, format!("segment {segment}: {e}")))?;
            if let Some(footer) = footer {
                return Ok(footer);
            }
        }
        let mut summary = Summary::default();
        let end = found.end();
        let plan = Plan { segment, seed: found.seed, end: Some(end), confirmed: end, detail: Detail::Heads };
        self.shared.segments.scan(&found, plan, OP, &mut |event| match event {
            Event::Group(at) => summary.group(at),
            Event::Record(record) => summary.record(&record.head),
            Event::Damage(_) => {}
        })?;
        Ok(summary.footer())
    }

    /// The segments, oldest first.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentInfo> {
        self.shared.segments.infos()
    }

    /// Takes sealed segments out of the log: nothing in them is needed. Returns once that is durable; their files are
    /// overwritten later. One that is gone already is fine. Blocking.
    ///
    /// # Errors
    /// `Invalid` (it is still written: [`Log::seal`]), `Io`. Those before the one that failed may be gone.
    pub fn retire(&self, segments: &[u64]) -> Result<()> {
        self.shared.segments.retire(segments)
    }

    /// Where the log ends: every durable record is before it, every later one will be after.
    #[must_use]
    pub fn position(&self) -> Position {
        self.shared.progress.lock().end()
    }

    /// Up to where the log's records were given to their owner: the end of the log, or where the oldest group begins
    /// whose [`Places`] or [`Pending`] somebody still holds. A checkpoint of a state that is changed before the `Places`
    /// are dropped stands for this position. It may be a group behind for a moment. A `Pending` that was dropped before it resolved holds
    /// nothing back: an owner whose state follows from the log sees every one of them through.
    #[must_use]
    pub fn applied(&self) -> Position {
        self.shared.progress.lock().applied()
    }

    /// Replaces the checkpoint. Returns once that is durable. Blocking.
    ///
    /// # Errors
    /// `Invalid` (beyond 4 GiB), `NoSpace`, `Io`: the checkpoint before is still there.
    pub fn write_checkpoint(&self, position: Position, content: &[&[u8]]) -> Result<()> {
        let segments = &self.shared.segments;
        checkpoint::write(&*segments.options.disk, &segments.options.dir, segments.log, position, content)
    }

    /// Reads the checkpoint. Blocking.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn read_checkpoint(&self) -> Result<Option<Checkpoint>> {
        let segments = &self.shared.segments;
        checkpoint::read(&*segments.options.disk, &segments.options.dir, segments.log)
    }

    /// What the log did since it was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        *self.shared.stats.lock()
    }

    /// Writes what is queued, marks the end, gives the lock back. Every later call that writes is `Closed`. Again is a
    /// no-op.
    ///
    /// # Cancel safety
    /// Detached: the log closes all the same.
    pub async fn close(&self) {
        self.shared.queue.close();
        #[cfg(any(test, feature = "sim-disk"))]
        while self.step() {}
        let mut ended = self.shared.ended.subscribe();
        // an error means that the sender is gone, and we hold it
        if ended.wait_for(|ended| *ended).await.is_ok() {
            self.join();
        }
    }

    fn join(&self) {
        if let Some(thread) = self.committer.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the log's committer panicked");
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.shared.segments.options;
        f.debug_struct("Log").field("dir", &options.dir).field("end", &self.position()).finish_non_exhaustive()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.join();
    }
}

impl Shared {
    /// Gives the folder up and tells who waits for it.
    pub(crate) fn end(&self) {
        self.guard.lock().take();
        self.ended.send_replace(true);
    }
}
