//! What a table's owner knows of how far the table is (decision D32). Pure: it is told what happens to blocks and says what
//! the next mark holds; `unit/marks.rs` announces it.
//!
//! A unit's blocks come in the order of their table, and what comes again comes before what is new. So everything below the
//! lowest block that is held, or was given back, is done with.

use crate::{
    chunk::{Chunk, Piece},
    line::Work,
    table::TableRows,
};
use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};
use wh_mq::{Began, MOST_PARKED, ParkedRow, Progress};
use wh_types::{Epoch, Mono};

/// So long a parked row is named.
const NAMED_FOR: Duration = Duration::from_secs(60);

/// Who says it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    /// Names one term of one unit.
    pub(crate) id: u64,
    /// How the unit was when it was taken.
    pub(crate) began: Began,
    /// Whether unsettled blocks of an owner before may still come behind others.
    pub(crate) doubt: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Marking {
    epoch: Option<Epoch>,
    /// As it was said, or would have been: it does not fall.
    committed: u64,
    /// The highest block that is done with.
    done: u64,
    /// Given back until later: unsettled, and not held.
    away: BTreeSet<u64>,
    parked: VecDeque<(Mono, ParkedRow)>,
    /// Rows of blocks up to here may have been parked without being named here. Not known before the first mark.
    named_after: Option<u64>,
    /// What was said last.
    told: Option<(u64, u64, usize)>,
    /// Whether that is to be said once more, as it may not have been heard.
    once_more: bool,
}

impl Marking {
    /// A block is held.
    pub(crate) fn accepted(&mut self, epoch: Epoch, sequence: u64) {
        self.epoch = Some(epoch);
        self.away.remove(&sequence);
    }

    /// Blocks went back until later.
    pub(crate) fn gave_back(&mut self, sequences: impl Iterator<Item = u64>) {
        self.away.extend(sequences);
    }

    /// Blocks are done with.
    pub(crate) fn done(&mut self, sequences: impl Iterator<Item = u64>) {
        self.done = sequences.fold(self.done, u64::max);
    }

    /// Rows are in the dead letters, or dropped.
    pub(crate) fn parked(&mut self, work: &Work, now: Mono) {
        let (Work::Park(chunk, refusal) | Work::Hold(chunk, refusal)) = work else { return };
        for (sequence, row) in places(chunk) {
            let code = refusal.code.as_str().into();
            self.parked.push_back((now, ParkedRow { sequence, row, code }));
        }
        self.forget(now);
    }

    fn forget(&mut self, now: Mono) {
        while let Some((at, row)) = self.parked.front()
            && (self.parked.len() > MOST_PARKED || now.saturating_duration_since(*at) > NAMED_FOR)
        {
            self.named_after = Some(self.named_after.unwrap_or(0).max(row.sequence));
            self.parked.pop_front();
        }
    }

    /// Whether nothing of the table is unsettled that this owner had.
    pub(crate) fn is_idle(&self) -> bool {
        self.away.is_empty()
    }

    /// Whether there is something to repeat: the table lags, or what was said last was said once.
    pub(crate) fn repeats(&mut self, rows: &TableRows) -> bool {
        if self.told.is_none() {
            return false;
        }
        let lags = !rows.is_empty() || !self.is_idle();
        lags || std::mem::take(&mut self.once_more)
    }

    /// The mark of this moment, where it says something that was not said, or `again`.
    pub(crate) fn mark(&mut self, rows: &TableRows, owner: &Owner, now: Mono, again: bool) -> Option<Progress> {
        let epoch = self.epoch?;
        self.forget(now);
        let (committed, inserting) = self.look(rows, owner);
        let before = self.told.replace((committed, inserting, self.parked.len()));
        if before == self.told && !again {
            return None;
        }
        self.once_more = before != self.told;
        Some(Progress {
            tenant: rows.tenant.clone(),
            table: rows.table.clone(),
            epoch,
            committed,
            inserting,
            parked: self.parked.iter().map(|(_, row)| row.clone()).collect(),
            named_after: self.named_after.unwrap_or(0),
            owner: owner.id,
            number: 0,
        })
    }

    /// How far everything is done with, and how far inserts may be.
    fn look(&mut self, rows: &TableRows, owner: &Owner) -> (u64, u64) {
        let began = owner.began.floor;
        let lowest = rows.held.keys().next().into_iter().chain(self.away.first()).min();
        let all_before = lowest.map_or(self.done, |lowest| lowest - 1);
        let committed = if owner.doubt { began.settled } else { all_before };
        self.committed = self.committed.max(committed);
        // what the owner before us parked and settled never came to us
        let first = self.committed.max(began.delivered);
        self.named_after.get_or_insert(first);
        let inherited = if self.committed < began.delivered { began.delivered } else { 0 };
        let begun = rows.highest_begun().unwrap_or(0);
        (self.committed, self.committed.max(inherited).max(begun))
    }
}

fn places(chunk: &Chunk) -> impl Iterator<Item = (u64, u32)> + '_ {
    let of = |piece: Piece| (piece.first..piece.end).map(move |row| (piece.sequence, row));
    chunk.pieces.iter().copied().flat_map(of)
}

#[cfg(test)]
#[path = "marking_tests.rs"]
mod tests;
