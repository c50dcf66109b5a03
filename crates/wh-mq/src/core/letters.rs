//! One tenant's dead letters in the order of parking, under a bound of their own. Holds handles, not texts.

use crate::{DeadLetterFilter, DeadLetterId};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use wh_types::{Table, Tenant, Timestamp};

/// What the index knows of a letter.
#[derive(Clone, Debug)]
pub(crate) struct LetterNote {
    pub(crate) id: DeadLetterId,
    pub(crate) table: Table,
    /// What it is charged with.
    pub(crate) bytes: u64,
    pub(crate) attempted: Timestamp,
    pub(crate) retry_until: Option<Timestamp>,
    /// `None`: only its text tells.
    pub(crate) code: Option<Arc<str>>,
}

impl LetterNote {
    /// Counts the letter in one of the counters of dead letters.
    pub(crate) fn count(&self, counter: &'static str, tenant: &Tenant) {
        crate::metrics::letter(counter, tenant, &self.table, self.code.as_deref().unwrap_or("unknown"));
    }

    fn matches(&self, filter: &DeadLetterFilter) -> bool {
        let code = self.code.as_deref().zip(filter.code.as_deref()).is_none_or(|(code, wanted)| code == wanted);
        code && filter.matches_place(&self.table, self.attempted, self.retry_until)
    }
}

#[derive(Debug)]
struct Letter<B> {
    note: LetterNote,
    body: B,
}

/// Some letters of a list, by number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stretch<B> {
    pub(crate) found: Vec<(u64, B)>,
    /// The first number not looked at; `None` at the end.
    pub(crate) next: Option<u64>,
}

/// Most letters looked at for one stretch, under the lock.
const LOOK: usize = 20_000;

#[derive(Debug)]
pub(crate) struct Letters<B> {
    kept: BTreeMap<u64, Letter<B>>,
    numbers: HashMap<DeadLetterId, u64>,
    counts: BTreeMap<Table, u64>,
    bytes: u64,
    dropped: u64,
}

impl<B> Default for Letters<B> {
    fn default() -> Self {
        Self { kept: BTreeMap::new(), numbers: HashMap::new(), counts: BTreeMap::new(), bytes: 0, dropped: 0 }
    }
}

impl<B: Clone> Letters<B> {
    /// Keeps a letter; gives back the body of one that is kept already. Numbers give the order.
    pub(crate) fn park(&mut self, number: u64, note: LetterNote, body: B) -> Result<(), B> {
        if self.numbers.contains_key(&note.id) {
            return Err(body);
        }
        self.numbers.insert(note.id, number);
        *self.counts.entry(note.table.clone()).or_default() += 1;
        self.bytes += note.bytes;
        self.kept.insert(number, Letter { note, body });
        Ok(())
    }

    /// Drops the oldest while more than `share` bytes are kept. The newest always stays: it is no larger than a block.
    pub(crate) fn shed(&mut self, share: u64) -> Vec<(u64, LetterNote, B)> {
        let mut shed = Vec::new();
        while self.bytes > share && self.kept.len() > 1 {
            let Some((number, _)) = self.kept.first_key_value() else { break };
            shed.extend(self.take(*number));
        }
        self.dropped += shed.len() as u64;
        shed
    }

    /// Removes a letter for good.
    pub(crate) fn purge(&mut self, id: DeadLetterId) -> Option<(LetterNote, B)> {
        let number = *self.numbers.get(&id)?;
        self.take(number).map(|(_, note, body)| (note, body))
    }

    /// Removes the letter of a number.
    pub(crate) fn forget(&mut self, number: u64) -> Option<B> {
        self.take(number).map(|(.., body)| body)
    }

    fn take(&mut self, number: u64) -> Option<(u64, LetterNote, B)> {
        let letter = self.kept.remove(&number)?;
        self.numbers.remove(&letter.note.id);
        self.bytes -= letter.note.bytes;
        if let Some(count) = self.counts.get_mut(&letter.note.table) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&letter.note.table);
            }
        }
        Some((number, letter.note, letter.body))
    }

    /// The numbers of those that are kept.
    pub(crate) fn numbers(&self, ids: &[DeadLetterId]) -> Vec<u64> {
        ids.iter().filter_map(|id| self.numbers.get(id)).copied().collect()
    }

    pub(crate) fn contains(&self, id: DeadLetterId) -> bool {
        self.numbers.contains_key(&id)
    }

    /// Letters from a number on that match as far as the index tells, in the order of parking: at most so many, and no
    /// more than so many bytes beyond the first.
    pub(crate) fn stretch(&self, first: u64, filter: &DeadLetterFilter, most: usize, bytes: u64) -> Stretch<B> {
        let (mut found, mut sum) = (Vec::new(), 0);
        for (looked, (number, Letter { note, body })) in self.kept.range(first..).enumerate() {
            let wanted = note.matches(filter);
            let full = wanted && (found.len() >= most || (sum + note.bytes > bytes && !found.is_empty()));
            if full || looked >= LOOK {
                return Stretch { found, next: Some(*number) };
            }
            if wanted {
                sum += note.bytes;
                found.push((*number, body.clone()));
            }
        }
        Stretch { found, next: None }
    }

    /// The letters of these ids that are kept and match as far as the index tells, each by its place in `ids`, under
    /// the same bounds.
    pub(crate) fn picked(
        &self,
        ids: &[DeadLetterId],
        first: u64,
        filter: &DeadLetterFilter,
        most: usize,
        bytes: u64,
    ) -> Stretch<B> {
        let (mut found, mut sum) = (Vec::new(), 0);
        for (place, id) in (0_u64..).zip(ids).skip(usize::try_from(first).unwrap_or(usize::MAX)) {
            let Some(Letter { note, body }) = self.numbers.get(id).and_then(|number| self.kept.get(number)) else {
                continue;
            };
            if !note.matches(filter) {
                continue;
            }
            if found.len() >= most || (sum + note.bytes > bytes && !found.is_empty()) {
                return Stretch { found, next: Some(place) };
            }
            sum += note.bytes;
            found.push((place, body.clone()));
        }
        Stretch { found, next: None }
    }

    /// Changes where a letter is kept; gives back the new place when the letter is gone.
    pub(crate) fn moved(&mut self, number: u64, to: B) -> Result<B, B> {
        match self.kept.get_mut(&number) {
            Some(letter) => Ok(std::mem::replace(&mut letter.body, to)),
            None => Err(to),
        }
    }

    /// The numbers of all that are kept, in order.
    pub(crate) fn live(&self) -> Vec<u64> {
        self.kept.keys().copied().collect()
    }

    /// Where a letter is kept.
    pub(crate) fn body(&self, number: u64) -> Option<B> {
        self.kept.get(&number).map(|letter| letter.body.clone())
    }

    /// Where they are kept.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &B> {
        self.kept.values().map(|letter| &letter.body)
    }

    pub(crate) fn counts(&self) -> &BTreeMap<Table, u64> {
        &self.counts
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn restore_dropped(&mut self, dropped: u64) {
        self.dropped = self.dropped.max(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Cursor, Epoch, RowCursor};

    fn id(sequence: u64) -> DeadLetterId {
        DeadLetterId(RowCursor { block: Cursor { epoch: Epoch(1), sequence }, row: 0 })
    }

    fn note(sequence: u64, table: &Table) -> LetterNote {
        let attempted = Timestamp::from_millis(i64::try_from(sequence).unwrap());
        LetterNote { id: id(sequence), table: table.clone(), bytes: 10, attempted, retry_until: None, code: None }
    }

    #[test]
    fn stretches_follow_the_order_of_parking_and_skip_nothing_when_letters_go_between_them() {
        let (mut letters, table) = (Letters::default(), Table::new("t").unwrap());
        for (number, n) in [5, 3, 9, 1].into_iter().enumerate() {
            letters.park(number as u64, note(n, &table), n).unwrap();
        }
        assert_eq!(letters.park(7, note(3, &table), 33), Err(33));
        let any = DeadLetterFilter::default();
        let stretch = |letters: &Letters<u64>, first, most, bytes| {
            let Stretch { found, next } = letters.stretch(first, &any, most, bytes);
            (found.into_iter().map(|(_, n)| n).collect::<Vec<_>>(), next)
        };
        assert_eq!(stretch(&letters, 0, 2, 1_000), (vec![5, 3], Some(2)));
        assert_eq!(stretch(&letters, 0, 9, 15), (vec![5], Some(1)));
        assert_eq!(stretch(&letters, 0, 9, 1), (vec![5], Some(1)), "one comes in any case");
        let purged = [3, 9, 3].map(|n| letters.purge(id(n)).map(|(_, body)| body));
        assert_eq!(purged, [Some(3), Some(9), None]);
        assert_eq!(stretch(&letters, 2, 2, 1_000), (vec![1], None), "it goes on where it stood");
        let picked = letters.picked(&[id(1), id(3), id(5)], 0, &any, 1, 1_000);
        assert_eq!(picked, Stretch { found: vec![(0, 1)], next: Some(2) });
        let late = DeadLetterFilter { from: Some(Timestamp::from_millis(2)), ..any.clone() };
        assert_eq!(letters.picked(&[id(1), id(5)], 0, &late, 9, 1_000).found, [(1, 5)]);
        assert_eq!(letters.stretch(0, &late, 9, 1_000).found, [(0, 5)]);
    }

    #[test]
    fn beyond_the_share_the_oldest_go_but_never_the_last() {
        let (mut letters, table) = (Letters::default(), Table::new("t").unwrap());
        for n in 0..4 {
            letters.park(n, note(n, &table), n).unwrap();
        }
        assert_eq!(letters.shed(25).into_iter().map(|(.., body)| body).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(letters.shed(0).len(), 1);
        assert_eq!((letters.dropped(), letters.counts()[&table]), (3, 1));
    }
}
