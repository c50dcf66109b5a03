//! A table's line of work: what is inserted or parked next, in order. Pure; knows no blocks and no sink.
//!
//! Order is kept because what stands first is begun first, and what a piece of work is split into stands where it stood.
//! With one at a time that is the order of the rows in the sink.

use crate::{chunk::Chunk, sink::Refusal};
use std::collections::VecDeque;

/// Names one piece of work of a table.
pub(crate) type WorkId = u64;

/// What is done next for a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Give these rows to the sink.
    Insert(Chunk),
    /// Give these rows to the dead letters.
    Park(Chunk, Refusal),
    /// The same, for rows that are published again by themselves once their column is back (decision D8).
    Hold(Chunk, Refusal),
}

impl Work {
    pub(crate) fn chunk(&self) -> &Chunk {
        match self {
            Self::Insert(chunk) | Self::Park(chunk, _) | Self::Hold(chunk, _) => chunk,
        }
    }

    fn chunk_mut(&mut self) -> &mut Chunk {
        match self {
            Self::Insert(chunk) | Self::Park(chunk, _) | Self::Hold(chunk, _) => chunk,
        }
    }
}

/// Whether a sink's word on which row is bad is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It is tried.
    Yes,
    /// It was wrong about rows of this batch.
    No,
    /// It named the row after these: if they are refused, it was wrong.
    Before,
    /// It named this row: if the row is good, it was wrong.
    Named,
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) id: WorkId,
    /// What was cut together.
    batch: u64,
    /// What was split from the same piece.
    group: u64,
    pub(crate) work: Work,
    pub(crate) running: bool,
    /// It may be stored already: repeated as it is until it is answered (decision D9).
    pub(crate) doubt: bool,
    /// It was begun before: its rows are not chosen anew.
    pub(crate) tried: bool,
    /// Part of a batch that was refused.
    pub(crate) part: bool,
    /// The first half of refused rows: if it is good, a bad row is in the other.
    first_half: bool,
    pub(crate) trust: Trust,
}

#[derive(Debug, Default)]
pub(crate) struct Line {
    items: VecDeque<Item>,
    next: u64,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    pub(crate) fn running(&self) -> usize {
        self.items.iter().filter(|item| item.running).count()
    }

    /// What is begun next: the first that is not under way.
    pub(crate) fn idle(&self) -> Option<&Item> {
        self.items.iter().find(|item| !item.running)
    }

    pub(crate) fn get(&self, id: WorkId) -> Option<&Item> {
        self.items.iter().find(|item| item.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: WorkId) -> Option<&mut Item> {
        self.items.iter_mut().find(|item| item.id == id)
    }

    /// A batch that was cut, behind all others.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        let batch = self.draw();
        let item = Item { part: false, ..self.item(batch, Work::Insert(chunk), Trust::Yes) };
        self.items.push_back(item);
    }

    /// Begins what is next. An insert of more than `most` rows that was never tried is cut down to them first.
    pub(crate) fn begin(&mut self, most: u64) -> Option<(WorkId, Work)> {
        let at = self.items.iter().position(|item| !item.running)?;
        let item = &mut self.items[at];
        if let Work::Insert(chunk) = &mut item.work
            && !item.tried
            && chunk.rows() > most
        {
            let (head, tail) = std::mem::take(chunk).split(most);
            *chunk = head;
            let (batch, trust) = (item.batch, item.trust);
            let rest = Item { part: false, ..self.item(batch, Work::Insert(tail), trust) };
            self.items.insert(at + 1, rest);
        }
        let item = &mut self.items[at];
        (item.running, item.tried) = (true, true);
        Some((item.id, item.work.clone()))
    }

    /// Takes out what is done. A row that was named as bad and was stored after all takes the sink's word for the rest of
    /// its batch away. Where the first half of refused rows was stored, the other need not be tried whole.
    pub(crate) fn done(&mut self, id: WorkId) -> Option<Work> {
        let at = self.items.iter().position(|item| item.id == id)?;
        let item = self.items.remove(at)?;
        if item.trust == Trust::Named && matches!(item.work, Work::Insert(_)) {
            self.was_wrong(at, item.batch, item.group);
        }
        if item.first_half
            && let Some(other) = self.items.get(at).filter(|other| other.group == item.group && !other.tried)
            && let (Work::Insert(chunk), Trust::No) = (&other.work, other.trust)
            && chunk.rows() > 1
        {
            self.halve(other.id, true);
        }
        Some(item.work)
    }

    /// Puts other work in the place of one.
    pub(crate) fn replace(&mut self, id: WorkId, parts: Vec<(Work, Trust)>) {
        let Some(at) = self.items.iter().position(|item| item.id == id) else { return };
        let Some(Item { batch, .. }) = self.items.remove(at) else { return };
        let group = self.draw();
        for (offset, (work, trust)) in parts.into_iter().enumerate() {
            let item = Item { group, ..self.item(batch, work, trust) };
            self.items.insert(at + offset, item);
        }
    }

    /// The rows of a piece of work were refused. Gives how to split them: around the row the sink names, while its word
    /// was good for this batch, else in halves.
    pub(crate) fn split(&mut self, id: WorkId, hint: Option<u64>) {
        let Some(at) = self.items.iter().position(|item| item.id == id) else { return };
        let Item { work: Work::Insert(chunk), batch, group, .. } = &self.items[at] else { return };
        let (chunk, batch, group) = (chunk.clone(), *batch, *group);
        if self.items[at].trust == Trust::Before {
            self.items[at].trust = Trust::No;
            self.was_wrong(at + 1, batch, group);
        }
        let trust = self.items[at].trust;
        let hint = hint.filter(|row| trust == Trust::Yes && *row < chunk.rows());
        let Some(row) = hint else {
            // a sink that gives no word now is not asked for it any more
            self.items[at].trust = Trust::No;
            return self.halve(id, true);
        };
        let [before, named, near, far] = chunk.around(row);
        let parts = [(before, Trust::Before), (named, Trust::Named), (near, Trust::Yes), (far, Trust::Yes)];
        let parts = parts.into_iter().filter(|(chunk, _)| !chunk.is_empty());
        self.replace(id, parts.map(|(chunk, trust)| (Work::Insert(chunk), trust)).collect());
    }

    /// Splits a piece of work in halves: because a row of it is `bad`, or because it is too much at once.
    pub(crate) fn halve(&mut self, id: WorkId, bad: bool) {
        let Some(at) = self.items.iter().position(|item| item.id == id) else { return };
        let Item { work: Work::Insert(chunk), trust, .. } = &self.items[at] else { return };
        let (half, trust) = (chunk.rows() / 2, *trust);
        let (left, right) = chunk.clone().split(half);
        self.replace(id, vec![(Work::Insert(left), trust), (Work::Insert(right), trust)]);
        self.items[at].first_half = bad;
    }

    /// A block of the work cannot be read: it leaves all work that is not under way, and `park` takes its place.
    pub(crate) fn without_block(&mut self, sequence: u64, park: Work) {
        for item in self.items.iter_mut().filter(|item| !item.running) {
            item.work.chunk_mut().pieces.retain(|piece| piece.sequence != sequence);
        }
        self.items.retain(|item| !item.work.chunk().is_empty());
        let batch = self.draw();
        let item = self.item(batch, park, Trust::No);
        self.items.push_front(item);
    }

    /// The sink named a wrong row: its word counts no more for this batch, and what else was split off around that row,
    /// from `at` on, is one piece again.
    fn was_wrong(&mut self, at: usize, batch: u64, group: u64) {
        for item in self.items.iter_mut().filter(|item| item.batch == batch && item.trust == Trust::Yes) {
            item.trust = Trust::No;
        }
        let whole = |item: &Item| item.group == group && !item.tried && matches!(item.work, Work::Insert(_));
        while self.items.get(at).is_some_and(whole) && self.items.get(at + 1).is_some_and(whole) {
            let Some(next) = self.items.remove(at + 1) else { return };
            for piece in &next.work.chunk().pieces {
                self.items[at].work.chunk_mut().push(*piece);
            }
            self.items[at].trust = Trust::No;
        }
    }

    fn item(&mut self, batch: u64, work: Work, trust: Trust) -> Item {
        Item {
            id: self.draw(),
            batch,
            group: 0,
            work,
            running: false,
            doubt: false,
            tried: false,
            part: true,
            first_half: false,
            trust,
        }
    }

    fn draw(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
