//! One tenant's dead letters in the order of parking, under a bound of their own. Holds handles, not texts.

use crate::{DeadLetterId, DeadLetterQuery};
use std::collections::{BTreeMap, HashMap};
use wh_types::Table;

#[derive(Debug)]
struct Letter<B> {
    id: DeadLetterId,
    table: Table,
    bytes: u64,
    body: B,
}

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
    pub(crate) fn park(&mut self, number: u64, id: DeadLetterId, table: &Table, bytes: u64, body: B) -> Result<(), B> {
        if self.numbers.contains_key(&id) {
            return Err(body);
        }
        self.numbers.insert(id, number);
        self.kept.insert(number, Letter { id, table: table.clone(), bytes, body });
        *self.counts.entry(table.clone()).or_default() += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Drops the oldest while more than `share` bytes are kept. The newest always stays: it is no larger than a block.
    pub(crate) fn shed(&mut self, share: u64) -> Vec<(u64, B)> {
        let mut shed = Vec::new();
        while self.bytes > share && self.kept.len() > 1 {
            let Some((number, _)) = self.kept.first_key_value() else { break };
            shed.extend(self.take(*number));
        }
        self.dropped += shed.len() as u64;
        shed
    }

    /// Removes a letter for good.
    pub(crate) fn purge(&mut self, id: DeadLetterId) -> Option<B> {
        let number = *self.numbers.get(&id)?;
        self.take(number).map(|(_, body)| body)
    }

    /// Removes the letter of a number.
    pub(crate) fn forget(&mut self, number: u64) -> Option<B> {
        self.take(number).map(|(_, body)| body)
    }

    fn take(&mut self, number: u64) -> Option<(u64, B)> {
        let letter = self.kept.remove(&number)?;
        self.numbers.remove(&letter.id);
        self.bytes -= letter.bytes;
        if let Some(count) = self.counts.get_mut(&letter.table) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&letter.table);
            }
        }
        Some((number, letter.body))
    }

    /// The numbers of those that are kept.
    pub(crate) fn numbers(&self, ids: &[DeadLetterId]) -> Vec<u64> {
        ids.iter().filter_map(|id| self.numbers.get(id)).copied().collect()
    }

    pub(crate) fn contains(&self, id: DeadLetterId) -> bool {
        self.numbers.contains_key(&id)
    }

    /// A page in the order of parking, and whether there is more. After a letter that is gone the list begins anew:
    /// something may come twice, nothing is skipped.
    pub(crate) fn page(&self, query: &DeadLetterQuery) -> (Vec<B>, bool) {
        let first = query.after.and_then(|after| self.numbers.get(&after)).map_or(0, |number| number + 1);
        let mut rest = self
            .kept
            .range(first..)
            .map(|(_, letter)| letter)
            .filter(|letter| query.table.as_ref().is_none_or(|table| letter.table == *table));
        let page = rest.by_ref().take(query.limit.max(1)).map(|letter| letter.body.clone()).collect();
        (page, rest.next().is_some())
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

    #[test]
    fn pages_follow_the_order_of_parking_and_skip_nothing_when_letters_go_between_them() {
        let (mut letters, table) = (Letters::default(), Table::new("t").unwrap());
        for (number, n) in [5, 3, 9, 1].into_iter().enumerate() {
            letters.park(number as u64, id(n), &table, 10, n).unwrap();
        }
        assert_eq!(letters.park(7, id(3), &table, 10, 33), Err(33));
        let page = |letters: &Letters<u64>, after| {
            let query = DeadLetterQuery { table: None, after, limit: 2 };
            let (page, more) = letters.page(&query);
            (page, more)
        };
        assert_eq!(page(&letters, None), (vec![5, 3], true));
        assert_eq!(page(&letters, Some(id(3))), (vec![9, 1], false));
        assert_eq!(letters.purge(id(3)), Some(3));
        assert_eq!(letters.purge(id(3)), None);
        assert_eq!(page(&letters, Some(id(3))), (vec![5, 9], true), "from the start again");
    }

    #[test]
    fn beyond_the_share_the_oldest_go_but_never_the_last() {
        let (mut letters, table) = (Letters::default(), Table::new("t").unwrap());
        for n in 0..4 {
            letters.park(n, id(n), &table, 10, n).unwrap();
        }
        assert_eq!(letters.shed(25).into_iter().map(|(_, body)| body).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(letters.shed(0).len(), 1);
        assert_eq!((letters.dropped(), letters.counts()[&table]), (3, 1));
    }
}
