//! The log as the local broker's store.

use super::{
    batch::Batch,
    cache::Cache,
    checkpoint::KeptId,
    commit::{Append, Job},
    error::kind_of,
    record,
    usage::Usage,
};
use crate::{
    DeadLetter, Kind,
    core::{Core, TableIndex},
    local::{Change, Finished, Pending, Shared, Store, letter_charge},
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::sync::mpsc;
use wh_log::{Log, Place, Room, Stored};
use wh_types::{Block, Stop, Table, Tasks, Tenant, Throttle, Timestamp};

/// A body's handle: where its record stands, and when it was stored.
pub(crate) type Body = Place;

/// What changes while the queue is open, beside the state machine. Locked after it, never before.
#[derive(Debug)]
pub(super) struct Inner {
    /// Each table's number in the log.
    pub(super) tables: Vec<Named>,
    /// The names behind a number.
    pub(super) names: HashMap<u64, (Tenant, Table)>,
    pub(super) next_number: u64,
    pub(super) usage: Usage,
    pub(super) cache: Cache,
    /// Where submitted appends are waited for; `None` once closing.
    pub(super) jobs: Option<mpsc::UnboundedSender<Job>>,
    /// Appends that failed.
    pub(super) failed: Throttle,
    /// Ids that only the checkpoint has any more.
    pub(super) kept_ids: Vec<KeptId>,
    /// Bytes of the last checkpoint; 0: none was written yet.
    pub(super) checkpoint_bytes: u64,
}

/// A failed append is logged this often.
pub(super) const TELL_FAILED: Duration = Duration::from_secs(10);

/// A table's number, and the segment with the record that says so; `None` until one is known to be durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) number: u64,
    pub(super) segment: Option<u64>,
}

/// The log, and what is known of its content.
#[derive(Clone, Debug)]
pub(crate) struct Disk(pub(super) Arc<Parts>);

#[derive(Debug)]
pub(crate) struct Parts {
    pub(super) log: Log,
    pub(super) inner: Mutex<Inner>,
    pub(super) max_body: usize,
    pub(super) segment_bytes: u32,
    /// One at a time frees segments.
    pub(super) freeing: Mutex<()>,
    pub(super) duplicate_window: Duration,
    pub(super) tasks: Tasks,
    pub(super) stop: Stop,
}

impl Inner {
    /// A table's number; one it has not yet is drawn.
    pub(super) fn number<B: Clone>(&mut self, core: &Core<B>, at: TableIndex) -> Named {
        let index = at.0 as usize;
        while self.tables.len() <= index {
            let next = TableIndex(u32::try_from(self.tables.len()).unwrap_or(u32::MAX));
            let (tenant, table) = core.names(next);
            self.names.insert(self.next_number, (tenant.clone(), table.clone()));
            self.tables.push(Named { number: self.next_number, segment: None });
            self.next_number += 1;
        }
        self.tables[index]
    }
}

impl Parts {
    /// Hands settled ranges to the log. They ride on the next group; a crash before it only delivers them again.
    pub(super) fn write_settled(&self, core: &mut Core<Body>, time: Timestamp) {
        if !core.has_settled() {
            return;
        }
        let mut inner = self.inner.lock();
        for (at, ranges) in core.take_settled() {
            let number = inner.number(core, at).number;
            let mut batch = Batch::default();
            for part in ranges.chunks(record::LIST) {
                batch.push(record::SETTLED, number, 0, time, |out| record::encode_settled(out, part));
            }
            if let Err(error) = batch.with(|records| self.log.append_lazy(records)) {
                tracing::warn!(%error, "settled ranges wait for the log");
                core.return_settled(at, ranges);
                return;
            }
        }
    }

    /// Reads records back as blocks.
    fn read_blocks(&self, places: &[Place]) -> Vec<Result<Block, Kind>> {
        let read = self.log.read_many(places);
        // mostly they are all of one table
        let mut known: Option<(u64, Tenant, Table)> = None;
        let block = |(place, stored): (&Place, wh_log::Result<Stored>)| {
            let stored = stored.map_err(|error| kind_of(&error))?;
            let unreadable = || Kind::Corrupt(format!("{place}: no block of ours").into());
            let stream = stored.head.stream;
            if known.as_ref().is_none_or(|(number, ..)| *number != stream) {
                let (tenant, table) = self.inner.lock().names.get(&stream).cloned().ok_or_else(unreadable)?;
                known = Some((stream, tenant, table));
            }
            let (_, tenant, table) = known.as_ref().ok_or_else(unreadable)?;
            let meta = record::BlockMeta::decode(&stored.meta).filter(|_| stored.head.kind == record::BLOCK);
            meta.and_then(|meta| meta.block(tenant.clone(), table.clone(), stored.body)).ok_or_else(unreadable)
        };
        places.iter().zip(read).map(block).collect()
    }

    fn read_letters(&self, places: &[Place]) -> Vec<Result<DeadLetter, Kind>> {
        let letter = |(place, stored): (&Place, wh_log::Result<Stored>)| {
            let stored = stored.map_err(|error| kind_of(&error))?;
            let ours = stored.head.kind == record::LETTER;
            let letter = ours.then(|| record::decode_letter(&stored.meta, &stored.body)).flatten();
            letter.ok_or_else(|| Kind::Corrupt(format!("{place}: no dead letter of ours").into()))
        };
        places.iter().zip(self.log.read_many(places)).map(letter).collect()
    }
}

/// One outcome for each that was asked for.
type Outcomes<T> = Vec<Result<T, Kind>>;

/// Reads that may wait for the disk, away from the runtime's own threads.
async fn blocking<T: Send + 'static>(
    parts: &Arc<Parts>,
    places: Vec<Place>,
    read: fn(&Parts, &[Place]) -> Outcomes<T>,
) -> Vec<Result<T, Kind>> {
    let (parts, count) = (Arc::clone(parts), places.len());
    let read = tokio::task::spawn_blocking(move || read(&parts, &places)).await;
    read.unwrap_or_else(|_| (0..count).map(|_| Err(Kind::Stopping)).collect())
}

impl Store for Disk {
    type Body = Body;
    type Room<'a> = Room<'a>;

    fn max_body(&self) -> usize {
        self.0.max_body
    }

    async fn room(&self, bytes: usize) -> Result<Room<'_>, Kind> {
        // the log counts in 32 bits; nothing that large passes the bounds before
        self.0.log.room(u32::try_from(bytes).unwrap_or(u32::MAX)).await.map_err(|error| kind_of(&error))
    }

    fn submit<'a>(
        shared: &'a Arc<Shared<Self>>,
        room: Room<'a>,
        core: &mut Core<Body>,
        change: Change,
        pending: Pending,
    ) -> Option<Finished<Body>> {
        let parts = &shared.store.0;
        let time = shared.clock.wall();
        parts.write_settled(core, time);
        let mut inner = parts.inner.lock();
        let Some(jobs) = inner.jobs.clone() else { return Some((pending, Err(Kind::Stopping))) };
        let mut batch = Batch::default();
        let mut job = Job::new(pending);
        match change {
            Change::Blocks { stored, blocks } => {
                for (ticket, block) in blocks {
                    let named = inner.number(core, ticket.table);
                    if named.segment.is_none() && !job.tables.contains(&ticket.table) {
                        job.tables.push(ticket.table);
                        batch.push(record::TABLE, named.number, 0, stored, |out| {
                            record::encode_table(out, &block.tenant, &block.table);
                        });
                    }
                    batch.push(record::BLOCK, named.number, ticket.sequence, stored, |out| {
                        record::encode_block(out, &block);
                    });
                    batch.body(|_| {}, &block.body);
                    job.blocks.push((stored, block));
                }
            }
            Change::Letters { letters } => {
                for (number, letter) in &letters {
                    let charge = letter_charge(letter);
                    batch.push(record::LETTER, 0, *number, letter.attempted, |out| {
                        record::encode_letter_meta(out, letter, charge);
                    });
                    batch.body(|out| record::encode_letter_head(out, letter), &letter.body);
                }
            }
            Change::Purge { tenant, numbers } => {
                for part in numbers.chunks(record::LIST) {
                    batch.push(record::PURGE, 0, 0, time, |out| record::encode_purge(out, &tenant, None, part));
                }
            }
            Change::Allowance { tenant, allowance, revision } => {
                batch.push(record::ALLOWANCE, 0, revision, time, |out| {
                    record::encode_allowance(out, &tenant, allowance);
                });
            }
        }
        // a publish that only waits for another's end has nothing to write, but its turn comes after that one's
        if !batch.is_empty() {
            match batch.with(|records| parts.log.submit(room, records)) {
                Ok(append) => job.append = Append::Waiting(append),
                Err(error) => return Some((job.pending, Err(kind_of(&error)))),
            }
        }
        // kept, so that it can be written again when room was made
        job.batch = batch;
        match jobs.send(job) {
            Ok(()) => None,
            Err(back) => Some((back.0.pending, Err(Kind::Unknown))),
        }
    }

    fn note_gone(&self, tenant: &Tenant, numbers: &[u64], dropped: u64) {
        let mut batch = Batch::default();
        for part in numbers.chunks(record::LIST) {
            batch.push(record::PURGE, 0, 0, Timestamp::default(), |out| {
                record::encode_purge(out, tenant, Some(dropped), part);
            });
        }
        // without the note they are found again at the next opening
        if let Err(error) = batch.with(|records| self.0.log.append_lazy(records)) {
            tracing::warn!(%error, "dead letters that are gone could not be written down");
        }
    }

    fn weight(body: &Body) -> usize {
        body.len as usize
    }

    fn at_hand(&self, body: &Body) -> Option<Block> {
        self.0.inner.lock().cache.get(*body)
    }

    async fn blocks(&self, bodies: Vec<Body>) -> Vec<Result<Block, Kind>> {
        let mut found: Vec<Option<Block>> = {
            let inner = self.0.inner.lock();
            bodies.iter().map(|place| inner.cache.get(*place)).collect()
        };
        let missing: Vec<Place> =
            bodies.iter().zip(&found).filter(|(_, block)| block.is_none()).map(|(place, _)| *place).collect();
        if missing.is_empty() {
            return found.into_iter().flatten().map(Ok).collect();
        }
        if missing.len() == found.len() {
            return blocking(&self.0, missing, Parts::read_blocks).await;
        }
        let mut read = blocking(&self.0, missing, Parts::read_blocks).await.into_iter();
        let lost = || Err(Kind::Bug("a read without an answer".into()));
        found.iter_mut().map(|block| block.take().map_or_else(|| read.next().unwrap_or_else(lost), Ok)).collect()
    }

    async fn letters(&self, bodies: Vec<Body>) -> Vec<Result<DeadLetter, Kind>> {
        if bodies.is_empty() {
            return Vec::new();
        }
        blocking(&self.0, bodies, Parts::read_letters).await
    }

    fn freed(&self, bodies: Vec<Body>) {
        let mut inner = self.0.inner.lock();
        for place in bodies {
            inner.usage.remove(place);
            inner.cache.remove(place);
        }
    }

    fn disk_bytes(&self) -> Option<u64> {
        Some(self.0.log.segments().iter().map(|segment| u64::from(segment.bytes)).sum())
    }

    fn trouble(&self) -> Option<String> {
        self.0.log.stats().full.then(|| "the disk is full".to_owned())
    }

    async fn close(shared: &Arc<Shared<Self>>) {
        let parts = &shared.store.0;
        parts.stop.give();
        {
            let mut state = shared.lock();
            let time = shared.clock.wall();
            parts.write_settled(&mut state.core, time);
            let mut batch = Batch::default();
            batch.push(record::SEAL, 0, state.core.draw_sequence(), time, |_| {});
            if let Err(error) = batch.with(|records| parts.log.append_lazy(records)) {
                tracing::warn!(%error, "the end of the queue could not be written down");
            }
            // the task that waits for appends ends with the last of them
            parts.inner.lock().jobs = None;
        }
        parts.tasks.wait().await;
        parts.log.close().await;
    }
}
