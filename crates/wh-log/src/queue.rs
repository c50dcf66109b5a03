//! What waits for the committer: batches in the order they were submitted.

mod gather;

use crate::{
    batch::Batch,
    error::{Error, Kind, Result},
    format::GROUP_HEADER,
    frames::Frames,
    options::Options,
    record::Record,
    ticket::{Finished, Pending, Ticket},
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Group buffers kept for the next groups.
const SPARE_BUFFERS: usize = 3;

/// What the committer does next.
#[derive(Debug)]
pub(crate) enum Work {
    /// Write a group.
    Group(Batch),
    /// Nothing came for a while: mark the end.
    Mark,
    /// Seal the segment, then tell.
    Seal(Arc<Ticket>),
    /// Everything was written: end.
    Close,
}

/// Whether the committer sleeps, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    No,
    Timed,
    Forever,
}

#[derive(Debug)]
struct Inner {
    batches: VecDeque<Batch>,
    spare: Vec<Vec<u8>>,
    lazy_bytes: u64,
    in_flight: Option<Arc<Ticket>>,
    seal: Option<Arc<Ticket>>,
    /// The last group failed: what nobody waits for is not tried again at once.
    stalled: bool,
    closing: bool,
    sleep: Sleep,
    entries_hint: usize,
}

/// Room in the queue, to be used by one submit. Dropping it gives it back.
#[derive(Debug)]
pub struct Room<'a>(SemaphorePermit<'a>);

#[derive(Debug)]
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    wake: Condvar,
    room: Semaphore,
    /// Appends and bytes that are queued, to be looked at without the lock.
    appends: AtomicUsize,
    bytes: AtomicUsize,
    group_bytes: u32,
    queue_bytes: u32,
    max_append: u32,
    lazy_after: Duration,
    mark_after: Duration,
}

impl Queue {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            inner: Mutex::new(Inner {
                batches: VecDeque::new(),
                spare: Vec::new(),
                lazy_bytes: 0,
                in_flight: None,
                seal: None,
                stalled: false,
                closing: false,
                sleep: Sleep::No,
                entries_hint: 0,
            }),
            wake: Condvar::new(),
            room: Semaphore::new(options.queue_bytes as usize),
            appends: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            group_bytes: options.group_bytes,
            queue_bytes: options.queue_bytes,
            max_append: options.max_append_bytes(),
            lazy_after: options.lazy_after,
            mark_after: options.mark_after,
        }
    }

    fn check(&self, bytes: u32) -> Result<()> {
        if bytes > self.max_append {
            let text = format!("the records take {bytes} bytes, at most {} fit into one append", self.max_append);
            return Err(Error::new(Kind::Invalid, "append", text));
        }
        Ok(())
    }

    pub(crate) async fn room(&self, bytes: u32) -> Result<Room<'_>> {
        self.check(bytes)?;
        self.room.acquire_many(bytes).await.map(Room).map_err(|_| Error::closed("append"))
    }

    pub(crate) async fn append(&self, records: &[Record<'_>], reserved: bool) -> Result<Pending> {
        let frames = Frames::new(records)?;
        let room = self.room(frames.bytes).await?;
        self.push(&frames, room, reserved)
    }

    pub(crate) fn submit(&self, room: Room<'_>, records: &[Record<'_>]) -> Result<Pending> {
        self.push(&Frames::new(records)?, room, false)
    }

    pub(crate) fn try_submit(&self, records: &[Record<'_>]) -> Result<Pending> {
        let frames = Frames::new(records)?;
        self.check(frames.bytes)?;
        match self.room.try_acquire_many(frames.bytes) {
            Ok(permit) => self.push(&frames, Room(permit), false),
            Err(tokio::sync::TryAcquireError::Closed) => Err(Error::closed("append")),
            Err(tokio::sync::TryAcquireError::NoPermits) => Err(self.full()),
        }
    }

    fn full(&self) -> Error {
        let text = format!("{} bytes already wait for the disk", self.queue_bytes);
        Error::new(Kind::QueueFull, "append", text)
    }

    fn push(&self, frames: &Frames<'_>, mut room: Room<'_>, reserved: bool) -> Result<Pending> {
        let Some(used) = room.0.split(frames.bytes as usize) else {
            let text = format!("the records take {} bytes, room was made for {}", frames.bytes, room.0.num_permits());
            return Err(Error::new(Kind::Invalid, "append", text));
        };
        let mut inner = self.inner.lock();
        if inner.closing {
            return Err(Error::closed("append"));
        }
        let pending = inner.push(frames, self.group_bytes, false, reserved);
        self.appends.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(frames.bytes as usize, Ordering::Relaxed);
        // given back when the group is done
        used.forget();
        self.rouse(inner, true);
        Ok(pending)
    }

    pub(crate) fn push_lazy(&self, records: &[Record<'_>]) -> Result<()> {
        let frames = Frames::new(records)?;
        self.check(frames.bytes)?;
        let mut inner = self.inner.lock();
        if inner.closing {
            return Err(Error::closed("append"));
        }
        if inner.lazy_bytes + u64::from(frames.bytes) > u64::from(self.queue_bytes) {
            return Err(self.full());
        }
        inner.lazy_bytes += u64::from(frames.bytes);
        drop(inner.push(&frames, self.group_bytes, true, false));
        self.rouse(inner, false);
        Ok(())
    }

    /// Wakes the committer if this is news to it.
    fn rouse(&self, mut inner: parking_lot::MutexGuard<'_, Inner>, urgent: bool) {
        let asleep = if urgent { inner.sleep != Sleep::No } else { inner.sleep == Sleep::Forever };
        if asleep {
            inner.sleep = Sleep::No;
            drop(inner);
            self.wake.notify_one();
        }
    }

    /// Resolves when everything submitted so far was written, lazy records too.
    pub(crate) fn flush(&self) -> Option<Finished> {
        let mut inner = self.inner.lock();
        let ticket = match inner.batches.back_mut() {
            Some(batch) => {
                batch.urgent = true;
                Arc::clone(&batch.ticket)
            }
            None => Arc::clone(inner.in_flight.as_ref()?),
        };
        self.rouse(inner, true);
        Some(Finished::of(ticket))
    }

    pub(crate) fn seal(&self) -> Result<Finished> {
        let mut inner = self.inner.lock();
        if inner.closing {
            return Err(Error::closed("seal"));
        }
        let ticket = Arc::clone(inner.seal.get_or_insert_with(Ticket::new));
        self.rouse(inner, true);
        Ok(Finished::of(ticket))
    }

    /// Takes no more; what is queued is still written.
    pub(crate) fn close(&self) {
        self.room.close();
        let mut inner = self.inner.lock();
        inner.closing = true;
        self.rouse(inner, true);
    }

    /// What to do now, waiting for something. `marked`: the end of the log needs no mark.
    pub(crate) fn take(&self, marked: bool) -> Work {
        let mut inner = self.inner.lock();
        loop {
            if let Some(work) = inner.ready() {
                self.taken(&work);
                return work;
            }
            let patience = match (inner.batches.is_empty(), marked) {
                (false, _) => Some(self.lazy_after),
                (true, false) => Some(self.mark_after),
                (true, true) => None,
            };
            inner.sleep = if patience.is_some() { Sleep::Timed } else { Sleep::Forever };
            let timed_out = match patience {
                Some(patience) => self.wake.wait_for(&mut inner, patience).timed_out(),
                None => {
                    self.wake.wait(&mut inner);
                    false
                }
            };
            inner.sleep = Sleep::No;
            if timed_out && inner.ready_is_none() {
                if let Some(work) = inner.pop() {
                    self.taken(&work);
                    return work;
                }
                if !marked {
                    return Work::Mark;
                }
            }
        }
    }

    fn taken(&self, work: &Work) {
        if let Work::Group(batch) = work {
            self.appends.fetch_sub(batch.appends, Ordering::Relaxed);
            self.bytes.fetch_sub(batch.waited_bytes as usize, Ordering::Relaxed);
        }
    }

    /// What to do now, without waiting; lazy records count as due.
    #[cfg(any(test, feature = "sim-disk"))]
    pub(crate) fn take_now(&self) -> Option<Work> {
        let mut inner = self.inner.lock();
        let work = inner.ready().or_else(|| inner.pop())?;
        self.taken(&work);
        Some(work)
    }

    /// Tells everyone who waits that the log ended without doing what they wait for. Nobody waits after a clean close.
    pub(crate) fn fail_all(&self) {
        self.close();
        let mut inner = self.inner.lock();
        let queued: Vec<_> = inner.batches.drain(..).map(|batch| batch.ticket).collect();
        let rest = [inner.in_flight.take(), inner.seal.take()];
        drop(inner);
        queued.into_iter().chain(rest.into_iter().flatten()).for_each(|t| t.finish(Err(Error::closed("append"))));
    }

    /// Ends a group: gives its room back, keeps its buffer, and its lazy records if it failed.
    pub(crate) fn done(&self, batch: Batch, failed: bool) {
        if batch.waited_bytes > 0 {
            self.room.add_permits(batch.waited_bytes as usize);
        }
        let kept = (failed && batch.lazy_bytes > 0).then(|| batch.keep_lazy());
        let mut inner = self.inner.lock();
        inner.in_flight = None;
        inner.stalled = failed;
        inner.entries_hint = batch.records();
        match kept {
            None => inner.lazy_bytes -= u64::from(batch.lazy_bytes),
            Some(kept) => match inner.batches.back_mut() {
                Some(back) if !back.reserved && back.len() + kept.len() <= self.group_bytes => back.join(&kept),
                Some(_) | None => inner.batches.push_back(kept),
            },
        }
        let buffer = batch.into_buffer();
        if inner.spare.len() < SPARE_BUFFERS && buffer.capacity() <= 2 * self.group_bytes as usize {
            inner.spare.push(buffer);
        }
    }
}

impl Inner {
    fn push(&mut self, frames: &Frames<'_>, group_bytes: u32, lazy: bool, reserved: bool) -> Pending {
        let small = |batch: &Batch| batch.records() == 0 || batch.len().saturating_add(frames.bytes) <= group_bytes;
        if !self.batches.back().is_some_and(|batch| batch.reserved == reserved && small(batch)) {
            let mut batch = Batch::new(self.spare.pop().unwrap_or_default(), self.entries_hint);
            batch.reserved = reserved;
            self.batches.push_back(batch);
        }
        let mut at = GROUP_HEADER;
        let mut ticket = None;
        if let Some(batch) = self.batches.back_mut() {
            at = batch.len();
            ticket = Some(Arc::clone(&batch.ticket));
            batch.appends += usize::from(!lazy);
            frames.iter().for_each(|(record, header)| {
                batch.push(record, header, lazy);
            });
        }
        Pending { ticket: ticket.unwrap_or_else(Ticket::new), at, lens: frames.lens(), slot: None }
    }

    fn ready_is_none(&self) -> bool {
        !self.due() && !self.closing && self.seal.is_none()
    }

    fn due(&self) -> bool {
        self.batches.iter().any(|batch| batch.urgent) || (self.batches.len() > 1 && !self.stalled)
    }

    fn ready(&mut self) -> Option<Work> {
        if self.due() {
            return self.pop();
        }
        if self.closing {
            // one try for what nobody waits for; if that failed it is given up
            let last = if self.stalled { None } else { self.pop() };
            return Some(last.unwrap_or_else(|| match self.seal.take() {
                Some(ticket) => Work::Seal(ticket),
                None => Work::Close,
            }));
        }
        self.seal.take().map(Work::Seal)
    }

    fn pop(&mut self) -> Option<Work> {
        let batch = self.batches.pop_front()?;
        self.in_flight = Some(Arc::clone(&batch.ticket));
        Some(Work::Group(batch))
    }
}
