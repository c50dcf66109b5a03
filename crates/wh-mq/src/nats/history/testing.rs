//! A history in memory whose copies lag, and messages to put into it.

use super::{
    archive::{Archive, Begin, Ends, Stored},
    core::Core,
    mend::{End, Partitions},
    message::Message,
    ring::{Ring, Seen},
};
use crate::{Error, Kind, Result};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use wh_topology::{Choices, Spec};
use wh_types::{
    Block, BlockId, Chain, Clock as _, Encoding, Mono, Stop, SystemClock, Table, Tenant, Timestamp, TopicKey,
};

/// The one partition's stream.
pub(super) const STREAM: &str = "P0";
/// When it was made.
pub(super) const MADE: Timestamp = Timestamp::from_millis(1_000);

pub(super) fn now() -> Mono {
    SystemClock.now()
}

pub(super) fn key(table: &str) -> TopicKey {
    TopicKey::new(Tenant::default(), Table::new(table).unwrap())
}

/// When a sequence was stored.
pub(super) fn at(sequence: u64) -> Timestamp {
    Timestamp::from_millis(1_000 + i64::try_from(sequence).unwrap())
}

pub(super) fn block(table: &str, sequence: u64, rows: u32) -> Block {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&sequence.to_be_bytes());
    Block {
        id: BlockId(id),
        tenant: Tenant::default(),
        table: Table::new(table).unwrap(),
        received: at(sequence),
        rows,
        decoded_bytes: rows,
        encoding: Encoding::Zstd,
        body: Bytes::from(vec![0; rows as usize]),
        chain: None,
        trace: None,
    }
}

/// A block of 100 rows that a partition sent.
pub(super) fn message(table: &str, sequence: u64) -> Message {
    with(block(table, sequence, 100), sequence)
}

pub(super) fn with(block: Block, sequence: u64) -> Message {
    let key = Some(TopicKey::new(block.tenant.clone(), block.table.clone()));
    Message { stream: Arc::from(STREAM), sequence, stored: at(sequence), key, block: Some(Arc::new(block)) }
}

pub(super) fn chained(table: &str, sequence: u64, n: u64) -> Message {
    with(Block { chain: Some(Chain { process: Arc::from("p"), n }), ..block(table, sequence, 1) }, sequence)
}

#[derive(Debug, Default)]
struct State {
    created: Timestamp,
    entries: Vec<Stored>,
    first: u64,
    last: u64,
    /// How many of the last entries a copy does not have, at every second answer.
    lag: usize,
    down: bool,
}

/// The history in memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    state: Mutex<State>,
    answers: AtomicUsize,
}

impl Memory {
    pub(super) fn new() -> Self {
        let state = State { created: MADE, first: 1, ..State::default() };
        Self { state: Mutex::new(state), answers: AtomicUsize::new(0) }
    }

    pub(super) fn store(&self, message: Message) {
        let mut state = self.state.lock();
        state.last += 1;
        let entry = Stored { at: state.last, time: message.stored, message: Some(message) };
        state.entries.push(entry);
    }

    /// Everything before this sequence is removed.
    pub(super) fn purge(&self, before: u64) {
        let mut state = self.state.lock();
        state.entries.retain(|entry| entry.at >= before);
        state.first = state.entries.first().map_or(state.last + 1, |first| first.at);
    }

    /// The stream is deleted and made anew.
    pub(super) fn anew(&self) {
        *self.state.lock() = State { created: Timestamp::from_millis(2_000), first: 1, ..State::default() };
    }

    pub(super) fn lag(&self, entries: usize) {
        self.state.lock().lag = entries;
    }

    pub(super) fn down(&self, down: bool) {
        self.state.lock().down = down;
    }

    pub(super) fn answers(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }

    fn up(&self) -> Result<parking_lot::MutexGuard<'_, State>> {
        let state = self.state.lock();
        if state.down { Err(Error::new("history", Kind::Unavailable)) } else { Ok(state) }
    }

    /// What some copy has of a subject.
    fn copy(&self, subject: &str) -> Result<(u64, Vec<Stored>)> {
        let state = self.up()?;
        let lags = self.answers.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        let known = state.entries.len() - if lags { state.lag.min(state.entries.len()) } else { 0 };
        let of = |entry: &&Stored| {
            let key = entry.message.as_ref().and_then(|message| message.key.as_ref());
            subject.ends_with(".>") || key.is_some_and(|key| subject.ends_with(&format!(".hist.{key}")))
        };
        let up_to = if known == state.entries.len() { state.last } else { state.last - state.lag as u64 };
        Ok((up_to, state.entries[..known].iter().filter(of).cloned().collect()))
    }
}

impl Archive for Memory {
    async fn ends(&self) -> Result<Ends> {
        let state = self.up()?;
        let (first, last) = (state.entries.first(), state.entries.last());
        Ok(Ends {
            created: state.created,
            first: state.first,
            last: state.last,
            first_stored: first.map(|first| first.time),
            last_stored: last.map_or(Timestamp::default(), |last| last.time),
        })
    }

    async fn has(&self, subject: &str) -> Result<(Ends, bool)> {
        let lag = std::mem::take(&mut self.state.lock().lag);
        let has = self.copy(subject).map(|(_, entries)| !entries.is_empty());
        self.state.lock().lag = lag;
        Ok((self.ends().await?, has?))
    }

    async fn last(&self, subject: &str) -> Result<Option<(u64, Stored)>> {
        let (known, mut entries) = self.copy(subject)?;
        Ok(entries.pop().map(|last| (known, last)))
    }

    async fn next(&self, subject: &str, from: u64) -> Result<Option<Stored>> {
        Ok(self.copy(subject)?.1.into_iter().find(|entry| entry.at >= from))
    }

    async fn read(&self, subject: &str, begin: Begin) -> Result<Vec<Stored>> {
        let follows = |entry: &Stored| match begin {
            Begin::Sequence(from) => entry.at >= from,
            Begin::Time(from) => entry.time >= from,
        };
        Ok(self.copy(subject)?.1.into_iter().filter(follows).take(4).collect())
    }
}

/// One partition, whose tables' blocks are stored, heard and kept as a test says.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) core: Arc<Core<Arc<Memory>>>,
    pub(super) memory: Arc<Memory>,
    partition: Arc<Mutex<(Timestamp, u64)>>,
}

impl World {
    /// A ring of so many bytes, begun when the partition had `last`.
    pub(super) fn new(bytes: usize, last: u64) -> Self {
        let spec = Spec::new(Choices { partitions: 1, ..Choices::default() }).unwrap();
        let (memory, stop) = (Arc::new(Memory::new()), Stop::new());
        let mut ring = Ring::new([STREAM.to_owned()], bytes, now());
        ring.saw(0, Seen { created: MADE, last, position: 0 }, now());
        let core = Core::new(ring, Arc::clone(&memory), stop, Arc::new(SystemClock), spec);
        Self { core: Arc::new(core), memory, partition: Arc::new(Mutex::new((MADE, last))) }
    }

    /// A block is stored by the partition, and by the history, and heard.
    pub(super) fn publish(&self, message: Message, stored: bool, heard: bool) {
        self.partition.lock().1 = message.sequence;
        if stored {
            self.memory.store(message.clone());
        }
        if heard {
            self.core.hear(message);
        }
    }

    /// Where the partition ends.
    pub(super) fn seam(&self) -> End {
        let (created, last) = *self.partition.lock();
        End { created, last, stored: (last > 0).then(|| at(last)) }
    }

    /// The partition's stream is made anew, and empty.
    pub(super) fn anew(&self, created: Timestamp) {
        *self.partition.lock() = (created, 0);
    }

    /// The partition is asked.
    pub(super) fn ask(&self) {
        let (created, last) = *self.partition.lock();
        let mut ring = self.core.ring.lock();
        let position = ring.partition(0).position();
        ring.saw(0, Seen { created, last, position }, now());
    }
}

impl Partitions for World {
    async fn end(&self, _: usize) -> Result<End> {
        Ok(self.seam())
    }
}

impl<A: Archive> Archive for Arc<A> {
    async fn ends(&self) -> Result<Ends> {
        (**self).ends().await
    }
    async fn has(&self, subject: &str) -> Result<(Ends, bool)> {
        (**self).has(subject).await
    }
    async fn last(&self, subject: &str) -> Result<Option<(u64, Stored)>> {
        (**self).last(subject).await
    }
    async fn next(&self, subject: &str, from: u64) -> Result<Option<Stored>> {
        (**self).next(subject, from).await
    }
    async fn read(&self, subject: &str, begin: Begin) -> Result<Vec<Stored>> {
        (**self).read(subject, begin).await
    }
}
