//! One table's rows between delivery and settling: what waits, what is inserted next, what is left of each block.
//!
//! Pure: it decides, `unit/` acts. The order of work is `line.rs`, its size `size.rs`.

use crate::{
    chunk::{Chunk, Piece},
    line::{Line, Trust, Work, WorkId},
    options::Options,
    sink::{Failure, Refusal, SinkError},
    size::Size,
};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use wh_mq::{AckToken, Delivery};
use wh_types::{Encoding, Mono, Table, Tenant};

/// The code of a dead letter that is a whole block nobody can read.
pub(crate) const UNREADABLE: &str = "block.unreadable";

#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) delivery: Delivery,
    /// Rows neither stored nor parked.
    left: u32,
}

/// When a table wants to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Now.
    Now,
    /// Then, unless rows come first.
    At(Mono),
    /// Nothing to do, or work under way must end first.
    Idle,
}

/// How much of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) rows: usize,
    /// As received, compressed.
    pub(crate) bytes: usize,
    pub(crate) blocks: usize,
}

impl Load {
    pub(crate) fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.blocks += other.blocks;
    }

    pub(crate) fn sub(&mut self, other: Self) {
        self.rows = self.rows.saturating_sub(other.rows);
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.blocks = self.blocks.saturating_sub(other.blocks);
    }

    fn of(delivery: &Delivery) -> Self {
        Self { rows: delivery.block.rows as usize, bytes: delivery.block.body.len(), blocks: 1 }
    }

    fn exceeds(self, bound: Self) -> bool {
        self.rows > bound.rows || self.bytes > bound.bytes || self.blocks > bound.blocks
    }
}

#[derive(Debug)]
pub(crate) struct TableRows {
    pub(crate) tenant: Tenant,
    pub(crate) table: Table,
    pub(crate) held: BTreeMap<u64, Held>,
    /// Of `held`: asked for with every block and every settlement.
    load: Load,
    waiting: VecDeque<u64>,
    waiting_rows: u64,
    waiting_bytes: u64,
    oldest: Option<Mono>,
    pub(crate) line: Line,
    size: Size,
    missing_since: Option<Mono>,
}

impl TableRows {
    pub(crate) fn new(tenant: Tenant, table: Table) -> Self {
        Self {
            tenant,
            table,
            held: BTreeMap::new(),
            load: Load::default(),
            waiting: VecDeque::new(),
            waiting_rows: 0,
            waiting_bytes: 0,
            oldest: None,
            line: Line::default(),
            size: Size::default(),
            missing_since: None,
        }
    }

    /// Takes a block. One that is held already only lends its new token (decision D10); gives whether it was new.
    pub(crate) fn accept(&mut self, delivery: Delivery, now: Mono) -> bool {
        let sequence = delivery.cursor.sequence;
        if let Some(held) = self.held.get_mut(&sequence) {
            held.delivery.token = delivery.token;
            return false;
        }
        self.waiting_rows += u64::from(delivery.block.rows);
        self.waiting_bytes += u64::from(delivery.block.decoded_bytes);
        self.oldest.get_or_insert(now);
        // A redelivered block may be older than what waits: it goes where it belongs.
        let at = self.waiting.partition_point(|other| *other < sequence);
        self.waiting.insert(at, sequence);
        self.load.add(Load::of(&delivery));
        self.held.insert(sequence, Held { left: delivery.block.rows, delivery });
        true
    }

    /// Holds a block no longer.
    fn release(&mut self, sequence: u64) -> Option<Delivery> {
        let delivery = self.held.remove(&sequence)?.delivery;
        self.load.sub(Load::of(&delivery));
        Some(delivery)
    }

    /// Whether nothing of this table is held or under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.line.is_empty()
    }

    /// What is held.
    pub(crate) fn held(&self) -> Load {
        self.load
    }

    /// The highest block in any insert that was begun and is not answered for good.
    pub(crate) fn highest_begun(&self) -> Option<u64> {
        let begun = self.line.items().filter(|item| item.running || item.doubt);
        let inserts = begun.filter(|item| matches!(item.work, Work::Insert(_)));
        inserts.flat_map(|item| item.work.chunk().pieces.iter().map(|piece| piece.sequence)).max()
    }

    /// Tokens of everything held, in order.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = AckToken> + '_ {
        self.held.values().map(|held| held.delivery.token)
    }

    /// Whether something may be stored already and waits for its next try: it is repeated as it is until it is answered
    /// (decision D9).
    pub(crate) fn in_doubt(&self) -> bool {
        self.line.items().any(|item| item.doubt && !item.running)
    }

    /// Rows that may double if all is given back: of inserts without an answer, of blocks of which a part is stored.
    pub(crate) fn doubtful_rows(&self) -> u64 {
        let parts = self.held.values().map(|held| u64::from(held.delivery.block.rows - held.left)).sum::<u64>();
        let open = self.line.items().filter(|item| item.doubt || item.running);
        parts + open.map(|item| item.work.chunk().rows()).sum::<u64>()
    }

    /// How long rows of a table that is gone are still held; `None` where it is there, as far as is known.
    pub(crate) fn missing_for(&self, now: Mono) -> Option<Duration> {
        self.missing_since.map(|since| now.saturating_duration_since(since))
    }

    pub(crate) fn due(&self, now: Mono, flush: bool, options: &Options) -> Due {
        if self.line.running() >= options.table_inserts.max(1) {
            return Due::Idle;
        }
        if self.line.idle().is_some() {
            return Due::Now;
        }
        let Some(oldest) = self.oldest else { return Due::Idle };
        let full = self.waiting_rows >= self.size.full_rows(now, options) || self.waiting_bytes >= options.batch_bytes;
        let at = oldest + self.size.wait(now, options);
        if flush || full || now >= at { Due::Now } else { Due::At(at) }
    }

    /// Whether what is next goes to the sink, and not to the dead letters.
    pub(crate) fn inserts_next(&self) -> bool {
        self.line.idle().is_none_or(|item| matches!(item.work, Work::Insert(_)))
    }

    /// Begins the next work; it stays in its place until [`Self::done`], [`Self::failed`], [`Self::not_now`] or
    /// [`Self::unreadable`].
    pub(crate) fn start(&mut self, now: Mono, options: &Options) -> Option<(WorkId, Work)> {
        if self.line.running() >= options.table_inserts.max(1) {
            return None;
        }
        if self.line.idle().is_none() {
            let chunk = self.cut(now, options)?;
            self.line.push(chunk);
        }
        self.line.begin(self.size.most_rows(now, options))
    }

    /// All blocks that wait, as far as one insert may hold; never two encodings in one.
    fn cut(&mut self, now: Mono, options: &Options) -> Option<Chunk> {
        let (most_rows, most_bytes) =
            (self.size.most_rows(now, options), options.batch_max_bytes.max(options.batch_bytes));
        let (mut chunk, mut rows, mut bytes, mut encoding) = (Chunk::default(), 0_u64, 0_u64, None::<Encoding>);
        while rows < most_rows && bytes < most_bytes {
            let Some(sequence) = self.waiting.front().copied() else { break };
            let Some(block) = self.held.get(&sequence).map(|held| &held.delivery.block) else {
                self.waiting.pop_front();
                continue;
            };
            let more = (rows + u64::from(block.rows), bytes + u64::from(block.decoded_bytes));
            // a block of its own may be more than that: it cannot be sent in less than its rows
            let beyond = rows > 0 && (more.0 > most_rows || more.1 > most_bytes);
            if beyond || *encoding.get_or_insert(block.encoding) != block.encoding {
                break;
            }
            chunk.push(Piece { sequence, first: 0, end: block.rows });
            (rows, bytes) = more;
            self.waiting.pop_front();
        }
        self.waiting_rows -= rows;
        self.waiting_bytes -= bytes;
        self.oldest = (!self.waiting.is_empty()).then_some(now);
        (!chunk.is_empty()).then_some(chunk)
    }

    /// An insert is done: its rows are stored. Gives the blocks that are now done whole.
    pub(crate) fn stored(&mut self, id: WorkId, now: Mono, options: &Options) -> Vec<AckToken> {
        if let Some(rows) = self.line.get(id).map(|item| item.work.chunk().rows()) {
            self.size.stored(rows, now, options);
        }
        self.done(id)
    }

    /// Work is done: its rows are stored or parked. Gives the blocks that are now done whole.
    pub(crate) fn done(&mut self, id: WorkId) -> Vec<AckToken> {
        let Some(work) = self.line.done(id) else { return Vec::new() };
        if matches!(work, Work::Insert(_)) {
            self.missing_since = None;
        }
        let mut tokens = Vec::new();
        for piece in &work.chunk().pieces {
            let Some(held) = self.held.get_mut(&piece.sequence) else { continue };
            held.left = held.left.saturating_sub(piece.end - piece.first);
            if held.left == 0 {
                tokens.extend(self.release(piece.sequence).map(|delivery| delivery.token));
            }
        }
        tokens
    }

    /// An insert failed. Gives whether to wait before the next try: a refusal is looked into at once, and
    /// what is too large is halved at once, as long as size may be the trouble.
    pub(crate) fn failed(&mut self, id: WorkId, error: &SinkError, now: Mono, options: &Options) -> bool {
        let Some(item) = self.line.get_mut(id) else { return true };
        item.running = false;
        let Work::Insert(chunk) = &item.work else { return true };
        let (rows, refused) = (chunk.rows(), error.failure == Failure::Rejected);
        // an answer ends a doubt; not having been reached says nothing of the try before
        let open = item.doubt && !refused && !error.splittable;
        item.doubt = open || error.failure == Failure::Unknown;
        if refused || error.splittable {
            self.missing_since = None;
        }
        if error.failure == Failure::NoTable {
            let since = *self.missing_since.get_or_insert(now);
            if now.saturating_duration_since(since) < options.missing_table_hold {
                return true;
            }
            self.park(id, error);
            return false;
        }
        if refused
            && let Some(known) = &error.columns
            && let Some(parts) = self.without_columns(id, known, error)
        {
            self.line.replace(id, parts);
            return false;
        }
        if refused && rows == 1 {
            self.park(id, error);
            return false;
        }
        if refused {
            self.line.split(id, error.row);
            return false;
        }
        if error.splittable {
            // of the two that may be cured by size, too many partitions are the table's own, memory is the server's
            let waits = self.size.too_large(rows, !error.table_scoped, now, options);
            if rows > 1 {
                self.line.halve(id, false);
            }
            return waits;
        }
        if error.table_scoped && error.failure == Failure::Unavailable {
            self.size.too_often(now, options);
        }
        // Same rows, same token, until it is answered (decision D9): the chunk stays as it is.
        true
    }

    fn park(&mut self, id: WorkId, error: &SinkError) {
        if let Some(Work::Insert(chunk)) = self.line.get(id).map(|item| &item.work) {
            let park = Work::Park(chunk.clone(), error.refusal.clone());
            self.line.replace(id, vec![(park, Trust::No)]);
        }
    }

    /// Blocks that wait beyond so much held, newest first, are no longer held. Gives their tokens in order. What is in
    /// work stays.
    pub(crate) fn give_back(&mut self, bound: Load) -> Vec<AckToken> {
        let mut tokens = Vec::new();
        while self.load.exceeds(bound) {
            let Some(delivery) = self.waiting.pop_back().and_then(|sequence| self.release(sequence)) else { break };
            self.waiting_rows -= u64::from(delivery.block.rows);
            self.waiting_bytes -= u64::from(delivery.block.decoded_bytes);
            tokens.push(delivery.token);
        }
        if self.waiting.is_empty() {
            self.oldest = None;
        }
        tokens.reverse();
        tokens
    }

    /// Parking failed, or the work was not begun after all: it stays where it is.
    pub(crate) fn not_now(&mut self, id: WorkId) {
        if let Some(item) = self.line.get_mut(id) {
            item.running = false;
        }
    }

    /// A block of a work cannot be read: it is parked whole, the rest stays.
    pub(crate) fn unreadable(&mut self, id: WorkId, sequence: u64, reason: &str) {
        self.not_now(id);
        let Some(rows) = self.held.get(&sequence).map(|held| held.left) else { return };
        let refusal = Refusal { code: UNREADABLE.to_owned(), reason: reason.to_owned(), column: None };
        let piece = Piece { sequence, first: 0, end: rows };
        self.line.without_block(sequence, Work::Park(Chunk { pieces: vec![piece] }, refusal));
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
pub(crate) mod tests;
