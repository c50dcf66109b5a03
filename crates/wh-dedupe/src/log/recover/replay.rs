//! What the records did when they were written, done again. The order of the log is the order in which each key's states
//! came, but for keys that were copied forward while they expired; a key is one thread's, which keeps that order.

use super::super::{
    live::{Ended, Live},
    record::{Read, Said},
    table::{Holder, SHARDS, Shard, Table},
};
use crate::{hash::KeyHash, stir::Stir, when};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    sync::{Arc, mpsc},
    thread,
};
use wh_log::RecordRef;
use wh_types::{Mono, Timestamp};

/// Keys that are handed over together: so many that a shard's are some hundreds, which then find its table in the
/// processor's cache.
const TOGETHER: usize = 256 * 1_024;
/// Such lots that may wait for a thread.
const AHEAD: usize = 2;
/// Threads that fill the table, at most.
const THREADS: usize = 8;

/// What a record says of its keys.
#[derive(Clone, Debug)]
enum Say {
    Claimed(Arc<Holder>),
    Committed { until: u32, written: Timestamp },
    Released,
}

/// A record: what it says and where it stands.
#[derive(Clone, Debug)]
struct Line {
    say: Say,
    segment: u64,
}

/// A record's key.
#[derive(Clone, Copy, Debug)]
struct Named {
    hash: KeyHash,
    /// Its shard, among the thread's.
    shard: u16,
    /// Its record, among the lot's.
    line: u32,
    /// Its payload, among the lot's; 0: none.
    payload: u32,
}

/// Keys of one thread's shards, in the order of the log.
#[derive(Debug)]
struct Lot {
    lines: Vec<Line>,
    keys: Vec<Named>,
    /// The first is none.
    payloads: Vec<Bytes>,
}

impl Lot {
    fn new() -> Self {
        Self { lines: Vec::new(), keys: Vec::new(), payloads: vec![Bytes::new()] }
    }

    /// The keys shard by shard, those of a shard in the order of the log.
    fn by_shard(&self, shards: usize) -> Vec<Named> {
        let mut next = vec![0; shards + 1];
        self.keys.iter().for_each(|key| next[usize::from(key.shard) + 1] += 1);
        (0..shards).for_each(|shard| next[shard + 1] += next[shard]);
        let nothing = Named { hash: KeyHash([0; 16]), shard: 0, line: 0, payload: 0 };
        let mut sorted = vec![nothing; self.keys.len()];
        for key in &self.keys {
            let place = &mut next[usize::from(key.shard)];
            sorted[*place] = *key;
            *place += 1;
        }
        sorted
    }
}

/// Takes records and spreads their keys over the threads.
#[derive(Debug)]
pub(super) struct Replay {
    lots: Vec<Lot>,
    to: Vec<mpsc::SyncSender<Lot>>,
    /// Shards of a thread.
    each: usize,
    stir: Stir,
    mono: Mono,
}

impl Replay {
    /// Fills a table with what `read` takes; gives what that gave, and what is needed of each segment.
    pub(super) fn run<T>(table: &mut Table, mono: Mono, now: u32, read: impl FnOnce(&mut Self) -> T) -> (T, Live) {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let each = SHARDS.div_ceil(threads);
        let stir = table.stir();
        thread::scope(|scope| {
            let (mut to, mut filling) = (Vec::new(), Vec::new());
            for shards in table.shards_mut().chunks_mut(each) {
                let (sender, lots) = mpsc::sync_channel(AHEAD);
                to.push(sender);
                filling.push(scope.spawn(move || fill(shards, &lots, now)));
            }
            let lots = to.iter().map(|_| Lot::new()).collect();
            let mut replay = Self { lots, to, each, stir, mono };
            let given = read(&mut replay);
            replay.end();
            let mut live = Live::default();
            for thread in filling {
                match thread.join() {
                    Ok(theirs) => live.join(theirs),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            (given, live)
        })
    }

    /// `None`: it is none of ours.
    pub(super) fn take(&mut self, record: &RecordRef<'_>) -> Option<()> {
        let read = Read::decode(record.head.kind, record.meta, record.body?)?;
        let say = match read.said {
            Said::Claimed(token, origin) => {
                let holder = Holder::new(token, origin, self.mono);
                holder.written(record.place.segment);
                Say::Claimed(Arc::new(holder))
            }
            Said::Committed { until } => Say::Committed { until, written: record.head.time },
            Said::Released => Say::Released,
        };
        let line = Line { say, segment: record.place.segment };
        // a lot has a line when a key of it is there
        let mut at = vec![None; self.lots.len()];
        for (hash, payload) in read.keys() {
            let shard = Table::index(self.stir, hash);
            let (thread, own) = (shard / self.each, shard % self.each);
            let lot = &mut self.lots[thread];
            let line = *at[thread].get_or_insert_with(|| {
                lot.lines.push(line.clone());
                u32::try_from(lot.lines.len() - 1).unwrap_or(u32::MAX)
            });
            let mut named = Named { hash, shard: u16::try_from(own).unwrap_or(u16::MAX), line, payload: 0 };
            if !payload.is_empty() {
                named.payload = u32::try_from(lot.payloads.len()).unwrap_or(0);
                lot.payloads.push(payload);
            }
            lot.keys.push(named);
        }
        for thread in 0..self.lots.len() {
            if self.lots[thread].keys.len() >= TOGETHER {
                self.hand_over(thread);
            }
        }
        Some(())
    }

    fn hand_over(&mut self, thread: usize) {
        let lot = std::mem::replace(&mut self.lots[thread], Lot::new());
        self.lots[thread].keys.reserve(lot.keys.len());
        // it ends before we do only when it panics, which joining tells
        drop(self.to[thread].send(lot));
    }

    fn end(mut self) {
        (0..self.lots.len()).for_each(|thread| self.hand_over(thread));
    }
}

/// What a thread does: its shards are nobody else's.
fn fill(shards: &mut [Mutex<Shard>], lots: &mpsc::Receiver<Lot>, now: u32) -> Live {
    let mut live = Live::default();
    while let Ok(lot) = lots.recv() {
        let mut counts = vec![0; lot.lines.len()];
        let mut ended = Ended::default();
        for Named { hash, shard, line, payload } in lot.by_shard(shards.len()) {
            let payload = lot.payloads[payload as usize].clone();
            let shard = shards[usize::from(shard)].get_mut();
            let (line, counted) = (line as usize, &mut counts[line as usize]);
            let before = match &lot.lines[line].say {
                Say::Claimed(holder) => {
                    let claimed = shard.claimed(hash, payload, holder);
                    *counted += u64::from(claimed.is_ok());
                    claimed
                }
                Say::Committed { until, .. } => {
                    let committed = shard.committed(hash, *until, payload, now);
                    *counted += u64::from(committed.is_ok() && *until > now);
                    committed
                }
                Say::Released => Ok(shard.free(hash)),
            };
            if let Ok(Some(holder)) = before {
                ended.note(&holder);
            }
        }
        for (line, count) in lot.lines.iter().zip(counts).filter(|(_, count)| *count > 0) {
            match line.say {
                Say::Claimed(_) => live.claimed(line.segment, count),
                Say::Committed { until, written } => {
                    live.committed(line.segment, when::bucket(when::second(written), until), count);
                }
                Say::Released => {}
            }
        }
        // after what they ended was counted
        ended.tell(&mut live);
    }
    live
}
