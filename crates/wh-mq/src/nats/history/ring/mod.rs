//! Recent blocks of all tables, in the order of their partitions, within a bound of bytes. Pure: what to ask the server
//! for, and when to stop looking for what is missing, is for others.
//!
//! A table's log either has everything after a sequence ([`TableLog::lost_through`]) or says where something is lost, so
//! a reader that stands behind it knows that it must ask the history.

mod partition;
mod table;

use super::{eras::Eras, message::Message, tracker::Hole};
use partition::Saw;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use table::{Kept, TableLog};
use tokio::sync::Notify;
use wh_types::{Block, BlockId, Cursor, Mono, Timestamp, TopicKey};

pub(super) use partition::{Partition, Seen};

/// Every partition's recent blocks.
#[derive(Debug)]
pub(super) struct Ring {
    partitions: Vec<Partition>,
    tables: HashMap<Arc<TopicKey>, TableLog>,
    /// What is kept, the oldest first: table and ticket.
    order: VecDeque<(Arc<TopicKey>, u64)>,
    tickets: u64,
    /// Bytes of what is kept.
    kept: usize,
    most: usize,
    eras: Eras,
}

/// A reader's place in the ring.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) key: Arc<TopicKey>,
    pub(super) partition: usize,
    /// Which counting of the partition's sequences it is in.
    pub(super) turn: u32,
    /// Everything up to here was shown, or is known not to be of this table.
    pub(super) after: u64,
    /// When that was stored, where it is known.
    pub(super) stored: Option<Timestamp>,
}

/// What a reader sees from its place.
#[derive(Clone, Debug)]
pub(super) enum Look {
    /// The next block.
    Block(u64, Arc<Block>),
    /// Something is lost here.
    Gap,
    /// The ring no longer has what follows: the history may.
    Behind,
    /// The partition's sequences count anew; the place now is where they began.
    Renewed,
    /// Nothing follows so far.
    Wait,
}

/// What a reader waits for.
#[derive(Clone, Debug)]
pub(super) struct Bells {
    /// Something of its table came.
    pub(super) table: Arc<Notify>,
    /// Its partition moved on.
    pub(super) partition: Arc<Notify>,
}

/// From where on the ring has everything of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) turn: u32,
    /// What is not here is up to this sequence.
    pub(super) lost_through: u64,
    /// When the last of that was heard, or given up.
    pub(super) since: Mono,
}

/// A block that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) id: BlockId,
    pub(super) rows: u32,
}

impl Ring {
    /// An empty ring for streams of these names, by index.
    pub(super) fn new(streams: impl IntoIterator<Item = String>, most: usize, now: Mono) -> Self {
        let partitions = streams.into_iter().map(|stream| Partition::new(&stream, now)).collect();
        let (tables, order) = (HashMap::new(), VecDeque::new());
        Self { partitions, tables, order, tickets: 0, kept: 0, most, eras: Eras::default() }
    }

    /// A partition, by index.
    pub(super) fn partition(&self, index: usize) -> &Partition {
        &self.partitions[index]
    }

    /// Every partition.
    pub(super) fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// Which partition's stream this is.
    pub(super) fn index(&self, stream: &str) -> Option<usize> {
        self.partitions.iter().position(|partition| **partition.stream() == *stream)
    }

    /// Bytes of blocks in memory.
    pub(super) fn bytes(&self) -> usize {
        self.kept + self.waiting()
    }

    fn waiting(&self) -> usize {
        self.partitions.iter().map(Partition::waiting).sum()
    }

    /// Which epochs messages are of.
    pub(super) fn eras(&self) -> &Eras {
        &self.eras
    }

    /// Bytes that may be in memory.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Whether something was heard that only asking the partitions explains. Says so once.
    pub(super) fn take_odd(&mut self) -> bool {
        self.partitions.iter_mut().fold(false, |odd, partition| odd | partition.take_odd())
    }

    /// A partition's stream was asked. Gives whether its sequences count anew.
    pub(super) fn saw(&mut self, index: usize, seen: Seen, now: Mono) -> bool {
        let partition = &mut self.partitions[index];
        let epoch = self.eras.add(partition.stream(), seen.created);
        if partition.saw(seen, epoch, now) == Saw::Same {
            partition.bell.notify_waiters();
            return false;
        }
        let (stream, begin) = (Arc::clone(partition.stream()), partition.begin());
        tracing::warn!(%stream, begin, "the sequences of {stream} count anew from {begin}: readers are told of a gap");
        self.forget(index, begin, now);
        true
    }

    /// Nothing of a partition is kept any more, and of what is up to a sequence nothing is known.
    fn forget(&mut self, index: usize, lost_through: u64, now: Mono) {
        for log in self.tables.values_mut().filter(|log| log.partition == index) {
            self.kept -= log.forget(lost_through, now);
            log.bell.notify_waiters();
        }
        self.tables.retain(|_, log| !log.is_idle());
        self.partitions[index].bell.notify_waiters();
    }

    /// A partition's message came, live or found. `ours`: its table lives in this partition.
    pub(super) fn hear(&mut self, index: usize, message: Message, ours: bool, now: Mono) {
        let message = if ours { message } else { Message { key: None, block: None, ..message } };
        if self.partitions[index].hear(message) {
            self.hand_out(index, now);
            while self.waiting() > self.most / 2 && self.leave_to_history(index, u64::MAX, now).is_some() {}
        }
    }

    /// Gives up the first hole of a partition, up to a sequence: what it had is nowhere.
    pub(super) fn lose(&mut self, index: usize, through: u64, now: Mono) -> Option<Hole> {
        let hole = self.partitions[index].give_up(through, now)?;
        let of_it = self.tables.iter().filter(|(_, log)| log.partition == index);
        for key in of_it.map(|(key, _)| Arc::clone(key)).collect::<Vec<_>>() {
            self.keep(&key, index, hole.last, None, Kept::Gap, now);
        }
        self.hand_out(index, now);
        Some(hole)
    }

    /// Gives up the first hole of a partition, up to a sequence: readers ask the history for it themselves.
    pub(super) fn leave_to_history(&mut self, index: usize, through: u64, now: Mono) -> Option<Hole> {
        let hole = self.partitions[index].give_up(through, now)?;
        self.forget(index, hole.last, now);
        self.hand_out(index, now);
        Some(hole)
    }

    /// Keeps what is next in order, as far as there is no hole.
    fn hand_out(&mut self, index: usize, now: Mono) {
        let mut moved = false;
        while let Some((sequence, message)) = self.partitions[index].take() {
            moved = true;
            if let Some(key) = message.key {
                let kept = message.block.map_or(Kept::Gap, Kept::Block);
                self.keep(&key, index, sequence, Some(message.stored), kept, now);
            }
        }
        if moved {
            self.partitions[index].bell.notify_waiters();
        }
        self.evict();
    }

    fn keep(&mut self, key: &TopicKey, index: usize, sequence: u64, stored: Option<Timestamp>, kept: Kept, now: Mono) {
        let key = self.log(key, index);
        let Some(log) = self.tables.get_mut(&key) else { return };
        self.kept += kept.cost();
        self.tickets += 1;
        log.push(self.tickets, sequence, stored, kept, now);
        log.bell.notify_waiters();
        self.order.push_back((key, self.tickets));
    }

    /// Sees to it that a table has a log. A new one lacks what its partition lacks.
    fn log(&mut self, key: &TopicKey, index: usize) -> Arc<TopicKey> {
        if let Some((known, _)) = self.tables.get_key_value(key) {
            return Arc::clone(known);
        }
        let (key, partition) = (Arc::new(key.clone()), &self.partitions[index]);
        let log = TableLog::new(index, partition.lost_through(), partition.lost_since());
        self.tables.insert(Arc::clone(&key), log);
        key
    }

    fn evict(&mut self) {
        while self.bytes() > self.most {
            let Some((key, ticket)) = self.order.pop_front() else { return };
            let Some(log) = self.tables.get_mut(&key) else { continue };
            let Some(evicted) = log.evict(ticket) else { continue };
            self.kept -= evicted.cost;
            self.partitions[log.partition].evicted(evicted.sequence, evicted.heard);
            if log.is_idle() {
                self.tables.remove(&key);
            }
        }
        // tickets of what was forgotten otherwise
        while self.order.front().is_some_and(|(key, ticket)| self.tables.get(key).is_none_or(|log| !log.has(*ticket))) {
            self.order.pop_front();
        }
    }

    /// A reader comes: from now on the table's log is kept exactly. [`Ring::leave`] must follow.
    pub(super) fn enter(&mut self, key: &TopicKey, index: usize) -> (Place, Bells) {
        let key = self.log(key, index);
        let partition = &self.partitions[index];
        let mut bells = Bells { table: Arc::default(), partition: Arc::clone(&partition.bell) };
        if let Some(log) = self.tables.get_mut(&key) {
            log.readers += 1;
            bells.table = Arc::clone(&log.bell);
        }
        (Place { key, partition: index, turn: partition.turn(), after: 0, stored: None }, bells)
    }

    /// A reader goes.
    pub(super) fn leave(&mut self, key: &Arc<TopicKey>) {
        if let Some(log) = self.tables.get_mut(key) {
            log.readers = log.readers.saturating_sub(1);
            if log.is_idle() {
                self.tables.remove(key);
            }
        }
    }

    /// From where on a table's log has everything. `None` without a reader of it.
    pub(super) fn floor(&self, key: &Arc<TopicKey>) -> Option<Floor> {
        let log = self.tables.get(key)?;
        let turn = self.partitions[log.partition].turn();
        Some(Floor { turn, lost_through: log.lost_through(), since: log.lost_since() })
    }

    /// What follows a place, which moves on to it.
    pub(super) fn read(&self, place: &mut Place) -> Look {
        let partition = &self.partitions[place.partition];
        if place.turn != partition.turn() {
            (place.turn, place.after, place.stored) = (partition.turn(), partition.begin(), None);
            return Look::Renewed;
        }
        let Some(log) = self.tables.get(&place.key) else { return Look::Behind };
        if place.after < log.lost_through() {
            return Look::Behind;
        }
        for entry in log.after(place.after) {
            place.after = entry.sequence;
            place.stored = entry.stored.or(place.stored);
            match &entry.kept {
                Kept::Block(block) if block.rows > 0 => return Look::Block(entry.sequence, Arc::clone(block)),
                Kept::Block(_) => {}
                Kept::Gap => return Look::Gap,
            }
        }
        if partition.position() > place.after {
            (place.after, place.stored) = (partition.position(), partition.stored_at().or(place.stored));
        }
        Look::Wait
    }

    /// The block of a table at a cursor, if it is kept.
    pub(super) fn find(&self, key: &TopicKey, at: Cursor) -> Option<Found> {
        let log = self.tables.get(key)?;
        if self.partitions[log.partition].epoch() != at.epoch {
            return None;
        }
        let entry = log.after(at.sequence.saturating_sub(1)).next().filter(|entry| entry.sequence == at.sequence)?;
        match &entry.kept {
            Kept::Block(block) => Some(Found { id: block.id, rows: block.rows }),
            Kept::Gap => None,
        }
    }
}

#[cfg(test)]
mod tests;
