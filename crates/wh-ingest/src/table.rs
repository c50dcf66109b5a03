//! One table's rows between delivery and settling: what waits, what is inserted next, what is left of each block.
//!
//! Pure: it decides, `unit.rs` acts. Order is kept because there is one queue of work, its front is the only thing in
//! flight, and a split puts its parts where the whole stood.

use crate::{
    chunk::{Chunk, Piece},
    options::Options,
    rows::{self, Unreadable},
    sink::{Failure, Refusal, SinkError},
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};
use wh_mq::{AckToken, DeadLetter, DeadLetterId, Delivery};
use wh_types::{Block, BlockId, Encoding, Epoch, Mono, RowCursor, Table, Tenant, Timestamp};

/// The code of a dead letter that is a whole block nobody can read.
pub(crate) const UNREADABLE: &str = "block.unreadable";

#[derive(Debug)]
struct Held {
    delivery: Delivery,
    /// Rows neither stored nor parked.
    left: u32,
}

/// What is done next for a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Give these rows to the sink.
    Insert(Chunk),
    /// Give these rows to the dead letters.
    Park(Chunk, Refusal),
}

impl Work {
    pub(crate) fn chunk(&self) -> &Chunk {
        match self {
            Self::Insert(chunk) | Self::Park(chunk, _) => chunk,
        }
    }
}

/// When a table wants to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Now.
    Now,
    /// Then, unless rows come first.
    At(Mono),
    /// Nothing to do, or the work in flight must end first.
    Idle,
}

#[derive(Debug)]
pub(crate) struct TableRows {
    pub(crate) tenant: Tenant,
    pub(crate) table: Table,
    held: BTreeMap<u64, Held>,
    /// Of `held`: asked for with every block and every settlement.
    held_rows: usize,
    held_bytes: usize,
    waiting: VecDeque<u64>,
    waiting_rows: u64,
    waiting_bytes: u64,
    oldest: Option<Mono>,
    work: VecDeque<Work>,
    in_flight: bool,
    doubt: bool,
    missing_since: Option<Mono>,
}

impl TableRows {
    pub(crate) fn new(tenant: Tenant, table: Table) -> Self {
        Self {
            tenant,
            table,
            held: BTreeMap::new(),
            held_rows: 0,
            held_bytes: 0,
            waiting: VecDeque::new(),
            waiting_rows: 0,
            waiting_bytes: 0,
            oldest: None,
            work: VecDeque::new(),
            in_flight: false,
            doubt: false,
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
        self.held_rows += delivery.block.rows as usize;
        self.held_bytes += delivery.block.body.len();
        self.held.insert(sequence, Held { left: delivery.block.rows, delivery });
        true
    }

    /// Holds a block no longer.
    fn release(&mut self, sequence: u64) -> Option<Delivery> {
        let delivery = self.held.remove(&sequence)?.delivery;
        self.held_rows -= delivery.block.rows as usize;
        self.held_bytes -= delivery.block.body.len();
        Some(delivery)
    }

    /// Whether nothing of this table is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn in_flight(&self) -> bool {
        self.in_flight
    }

    /// Whether the front may be stored already: it is repeated as it is until it is answered (decision D9).
    pub(crate) fn in_doubt(&self) -> bool {
        self.doubt
    }

    /// Rows that may double if all is given back: of a front without an answer, of blocks of which a part is stored.
    pub(crate) fn doubtful_rows(&self) -> u64 {
        let parts = self.held.values().map(|held| u64::from(held.delivery.block.rows - held.left)).sum::<u64>();
        let front = self.work.front().filter(|_| self.doubt || self.in_flight);
        parts + front.map_or(0, |work| work.chunk().rows())
    }

    pub(crate) fn due(&self, now: Mono, flush: bool, options: &Options) -> Due {
        if self.in_flight {
            return Due::Idle;
        }
        if !self.work.is_empty() {
            return Due::Now;
        }
        let Some(oldest) = self.oldest else { return Due::Idle };
        let full = self.waiting_rows >= options.batch_rows || self.waiting_bytes >= options.batch_bytes;
        let at = oldest + options.batch_wait;
        if flush || full || now >= at { Due::Now } else { Due::At(at) }
    }

    /// Takes the next work; it stays at the front until [`Self::done`], [`Self::failed`] or [`Self::unreadable`].
    pub(crate) fn start(&mut self, now: Mono, options: &Options) -> Option<Work> {
        if self.in_flight {
            return None;
        }
        if self.work.is_empty() {
            let chunk = self.cut(now, options)?;
            self.work.push_back(Work::Insert(chunk));
        }
        self.in_flight = true;
        self.work.front().cloned()
    }

    /// Blocks until the batch is full; never two encodings in one.
    fn cut(&mut self, now: Mono, options: &Options) -> Option<Chunk> {
        let (mut pieces, mut rows, mut bytes, mut encoding) = (Vec::new(), 0_u64, 0_u64, None::<Encoding>);
        while rows < options.batch_rows && bytes < options.batch_bytes {
            let Some(sequence) = self.waiting.front().copied() else { break };
            let Some(block) = self.held.get(&sequence).map(|held| &held.delivery.block) else {
                self.waiting.pop_front();
                continue;
            };
            if *encoding.get_or_insert(block.encoding) != block.encoding {
                break;
            }
            pieces.push(Piece { sequence, first: 0, end: block.rows });
            rows += u64::from(block.rows);
            bytes += u64::from(block.decoded_bytes);
            self.waiting.pop_front();
        }
        self.waiting_rows -= rows;
        self.waiting_bytes -= bytes;
        self.oldest = (!self.waiting.is_empty()).then_some(now);
        (!pieces.is_empty()).then_some(Chunk { pieces })
    }

    /// The token of a chunk of held blocks.
    pub(crate) fn token(&self, chunk: &Chunk) -> String {
        let held = |sequence: &u64| self.held.get(sequence).map(|held| &held.delivery);
        let first = chunk.pieces.first().and_then(|piece| held(&piece.sequence));
        let epoch = first.map_or(Epoch(0), |delivery| delivery.cursor.epoch);
        // every piece of a chunk is of a held block
        let id = |sequence| held(&sequence).map_or(BlockId([0; 16]), |delivery| delivery.block.id);
        chunk.token(epoch, &self.tenant, &self.table, id)
    }

    /// The chunk as frames, one for each block: whole blocks as they are, pieces of a block framed anew.
    pub(crate) fn frames(&self, chunk: &Chunk) -> Result<(Encoding, Vec<Bytes>), (u64, String)> {
        let (mut frames, mut encoding) = (Vec::with_capacity(chunk.pieces.len()), Encoding::Zstd);
        for pieces in chunk.pieces.chunk_by(|a, b| a.sequence == b.sequence) {
            let sequence = pieces[0].sequence;
            let block = self.block(sequence)?;
            encoding = block.encoding;
            if pieces[0].rows() == u64::from(block.rows) {
                frames.push(block.body.clone());
                continue;
            }
            let all = self.rows_of(sequence)?;
            let rows = pieces.iter().flat_map(|piece| cut(&all, *piece)).cloned().collect::<Vec<_>>();
            frames.push(rows::frame_of(block, &rows).map_err(|e| (sequence, e.to_string()))?);
        }
        Ok((encoding, frames))
    }

    /// The chunk's rows as dead letters, each under the id of its place in the queue.
    pub(crate) fn letters(
        &self,
        chunk: &Chunk,
        refusal: &Refusal,
        attempted: Timestamp,
    ) -> Result<Vec<DeadLetter>, (u64, String)> {
        let mut letters = Vec::new();
        for piece in &chunk.pieces {
            let bodies = if refusal.code == UNREADABLE {
                vec![self.block(piece.sequence)?.body.clone()]
            } else {
                cut(&self.rows_of(piece.sequence)?, *piece).to_vec()
            };
            let held = self.held.get(&piece.sequence).ok_or((piece.sequence, String::new()))?;
            letters.extend((piece.first..).zip(bodies).map(|(row, body)| DeadLetter {
                id: DeadLetterId(RowCursor { block: held.delivery.cursor, row }),
                tenant: self.tenant.clone(),
                table: self.table.clone(),
                body,
                reason: refusal.reason.clone(),
                code: refusal.code.clone(),
                column: refusal.column.clone(),
                attempted,
                received: held.delivery.block.received,
                retry_until: None,
            }));
        }
        Ok(letters)
    }

    fn block(&self, sequence: u64) -> Result<&Block, (u64, String)> {
        let held = self.held.get(&sequence).ok_or_else(|| (sequence, "the block is not held".to_owned()))?;
        Ok(&held.delivery.block)
    }

    fn rows_of(&self, sequence: u64) -> Result<Vec<Bytes>, (u64, String)> {
        rows::rows(self.block(sequence)?).map_err(|e: Unreadable| (sequence, e.to_string()))
    }

    /// The work in flight is done: its rows are stored or parked. Gives the blocks that are now done whole.
    pub(crate) fn done(&mut self) -> Vec<AckToken> {
        self.in_flight = false;
        self.doubt = false;
        self.missing_since = None;
        let Some(work) = self.work.pop_front() else { return Vec::new() };
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

    /// The insert in flight failed. Gives whether to wait before the next try: a refusal is looked into at once.
    pub(crate) fn failed(&mut self, error: &SinkError, now: Mono, missing_hold: Duration) -> bool {
        self.in_flight = false;
        let Some(Work::Insert(chunk)) = self.work.front() else { return true };
        let rows = chunk.rows();
        // an answer ends a doubt; not having been reached says nothing of the try before
        let open = self.doubt && error.failure != Failure::Rejected && !error.splittable;
        self.doubt = open || error.failure == Failure::Unknown;
        if error.failure == Failure::NoTable {
            let since = *self.missing_since.get_or_insert(now);
            if now.saturating_duration_since(since) < missing_hold {
                return true;
            }
            return self.replace_front(|chunk| vec![Work::Park(chunk, error.refusal.clone())]);
        }
        if error.failure == Failure::Rejected
            && let Some(parts) = error.columns.as_ref().and_then(|known| self.without_columns(known, error))
        {
            return self.replace_front(|_| parts);
        }
        match error.failure {
            Failure::Rejected if rows == 1 => {
                self.replace_front(|chunk| vec![Work::Park(chunk, error.refusal.clone())])
            }
            Failure::Rejected => self.replace_front(|c| c.isolate(error.row).into_iter().map(Work::Insert).collect()),
            _ if error.splittable && rows > 1 => {
                self.replace_front(|c| c.isolate(None).into_iter().map(Work::Insert).collect())
            }
            // Same rows, same token, until it is answered (decision D9): the chunk stays as it is.
            Failure::Unavailable | Failure::Denied | Failure::Unknown | Failure::NoTable => true,
        }
    }

    /// The front's rows in two parts: those that name known columns only, and those that do not, to be parked together.
    /// `None` where there are none of the latter, or a block cannot be read.
    fn without_columns(&self, known: &BTreeSet<String>, error: &SinkError) -> Option<Vec<Work>> {
        let (mut good, mut bad, mut column) = (Vec::new(), Vec::new(), None);
        for pieces in self.work.front()?.chunk().pieces.chunk_by(|a, b| a.sequence == b.sequence) {
            let all = self.rows_of(pieces[0].sequence).ok()?;
            for (piece, at) in pieces.iter().flat_map(|piece| (piece.first..piece.end).map(move |at| (piece, at))) {
                let unknown = rows::unknown_key(all.get(at as usize)?, known);
                let part = if unknown.is_some() { &mut bad } else { &mut good };
                column = column.or(unknown);
                push(part, Piece { first: at, end: at + 1, ..*piece });
            }
        }
        let column = column?;
        let reason = format!("the column {column:?} is not in the table: {}", error.refusal.reason);
        let refusal = Refusal { column: Some(column), reason, code: error.refusal.code.clone() };
        let parts = [Work::Insert(Chunk { pieces: good }), Work::Park(Chunk { pieces: bad }, refusal)];
        Some(parts.into_iter().filter(|part| !part.chunk().pieces.is_empty()).collect())
    }

    /// Blocks that wait beyond so many held rows and bytes, newest first, are no longer held. Gives their tokens in
    /// order, with how much they were. What is in work stays.
    pub(crate) fn give_back(&mut self, rows: usize, bytes: usize) -> (Vec<AckToken>, usize, usize) {
        let (had_rows, had_bytes) = self.held();
        let mut tokens = Vec::new();
        while self.held_rows > rows || self.held_bytes > bytes {
            let Some(delivery) = self.waiting.pop_back().and_then(|sequence| self.release(sequence)) else { break };
            self.waiting_rows -= u64::from(delivery.block.rows);
            self.waiting_bytes -= u64::from(delivery.block.decoded_bytes);
            tokens.push(delivery.token);
        }
        if self.waiting.is_empty() {
            self.oldest = None;
        }
        tokens.reverse();
        (tokens, had_rows - self.held_rows, had_bytes - self.held_bytes)
    }

    /// Parking failed, or the work was not begun after all: it stays at the front.
    pub(crate) fn not_now(&mut self) {
        self.in_flight = false;
    }

    /// A block of the work in flight cannot be read: it is parked whole, the rest stays.
    pub(crate) fn unreadable(&mut self, sequence: u64, reason: &str) {
        self.in_flight = false;
        let Some(rows) = self.held.get(&sequence).map(|held| held.left) else { return };
        for work in &mut self.work {
            let (Work::Insert(chunk) | Work::Park(chunk, _)) = work;
            chunk.pieces.retain(|piece| piece.sequence != sequence);
        }
        self.work.retain(|work| !work.chunk().pieces.is_empty());
        let refusal = Refusal { code: UNREADABLE.to_owned(), reason: reason.to_owned(), column: None };
        let piece = Piece { sequence, first: 0, end: rows };
        self.work.push_front(Work::Park(Chunk { pieces: vec![piece] }, refusal));
    }

    fn replace_front(&mut self, parts: impl FnOnce(Chunk) -> Vec<Work>) -> bool {
        if let Some(Work::Insert(chunk)) = self.work.pop_front() {
            for part in parts(chunk).into_iter().rev() {
                self.work.push_front(part);
            }
        }
        false
    }

    /// Tokens of everything held, in order.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = AckToken> + '_ {
        self.held.values().map(|held| held.delivery.token)
    }

    /// Rows and compressed bytes held.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.held_rows, self.held_bytes)
    }
}

fn cut(rows: &[Bytes], piece: Piece) -> &[Bytes] {
    rows.get(piece.first as usize..piece.end as usize).unwrap_or_default()
}

/// Adds a piece, as part of the last one where it follows on it.
fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    match pieces.last_mut() {
        Some(last) if last.sequence == piece.sequence && last.end == piece.first => last.end = piece.end,
        _ => pieces.push(piece),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
pub(crate) mod tests;
