//! What is known of one table from all marks that came, in whatever order. Pure.
//!
//! `committed` is a fact that no later mark takes back, so the highest counts, whoever said it. `inserting` is the last
//! owner's word; an insert of an owner before may still be under way until its blocks are committed.

use super::{Floor, ParkedRow, Progress};
use std::collections::BTreeMap;
use wh_types::{Table, Tenant};

/// Most parked rows that are remembered.
const REMEMBERED: usize = 1_024;

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) now: Progress,
    /// As far as an owner before the last one may still be inserting.
    before: u64,
}

impl Known {
    pub(super) fn new(mark: Progress) -> Self {
        let mut known = Self { now: mark, before: 0 };
        known.settle();
        known
    }

    pub(super) fn of_floor(tenant: &Tenant, table: &Table, floor: Floor) -> Self {
        Self::new(Progress {
            tenant: tenant.clone(),
            table: table.clone(),
            epoch: floor.epoch,
            committed: floor.settled,
            inserting: floor.delivered,
            parked: Vec::new(),
            named_after: floor.settled,
            owner: 0,
            number: 0,
        })
    }

    /// Takes a mark. Gives whether anything is new.
    pub(super) fn hear(&mut self, mark: Progress) -> bool {
        let now = &mut self.now;
        if mark.epoch != now.epoch {
            *self = Self::new(mark);
            return true;
        }
        if mark.owner == now.owner && mark.number <= now.number {
            return false;
        }
        let before = now.clone();
        if mark.owner != now.owner {
            self.before = self.before.max(now.inserting);
        }
        now.named_after = whole(now, mark.named_after, mark.committed);
        now.committed = now.committed.max(mark.committed);
        now.inserting = mark.inserting;
        (now.owner, now.number) = (mark.owner, mark.number);
        let rows = now.parked.drain(..).chain(mark.parked);
        let all: BTreeMap<(u64, u32), ParkedRow> = rows.map(|row| ((row.sequence, row.row), row)).collect();
        now.parked = all.into_values().collect();
        self.settle();
        (before.committed, before.inserting, before.named_after, before.parked.len())
            != (self.now.committed, self.now.inserting, self.now.named_after, self.now.parked.len())
    }

    /// Takes what the queue itself knows. Gives whether anything is new.
    pub(super) fn take_floor(&mut self, floor: Floor) -> bool {
        if floor.epoch != self.now.epoch {
            let now = &self.now;
            *self = Self::of_floor(&now.tenant.clone(), &now.table.clone(), floor);
            return true;
        }
        if floor.settled <= self.now.committed {
            return false;
        }
        // what was parked in between was not named to us
        (self.now.committed, self.now.named_after) = (floor.settled, floor.settled);
        self.settle();
        true
    }

    fn settle(&mut self) {
        let now = &mut self.now;
        if self.before <= now.committed {
            self.before = 0;
        }
        now.inserting = now.inserting.max(self.before).max(now.committed);
        now.named_after = now.named_after.min(now.committed);
        if let Some(over) = now.parked.len().checked_sub(REMEMBERED).filter(|over| *over > 0) {
            let last = now.parked.drain(..over).next_back();
            now.named_after = now.named_after.max(last.map_or(0, |row| row.sequence));
        }
    }
}

/// From where on all parked rows are named, when the stretch `(after, committed]` joins what is known.
fn whole(now: &Progress, after: u64, committed: u64) -> u64 {
    if after <= now.committed && now.named_after <= committed {
        now.named_after.min(after)
    } else if committed >= now.committed {
        after
    } else {
        now.named_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wh_types::Epoch;

    fn mark(owner: u64, number: u64, committed: u64, inserting: u64, after: u64, parked: &[u64]) -> Progress {
        Progress {
            tenant: Tenant::default(),
            table: Table::new("t").unwrap(),
            epoch: Epoch(7),
            committed,
            inserting,
            parked: parked
                .iter()
                .map(|sequence| ParkedRow { sequence: *sequence, row: 0, code: "27".into() })
                .collect(),
            named_after: after,
            owner,
            number,
        }
    }

    fn places(known: &Known) -> Vec<u64> {
        known.now.parked.iter().map(|row| row.sequence).collect()
    }

    #[test]
    fn an_older_mark_of_an_owner_changes_nothing_and_parked_rows_of_missed_ones_stay() {
        let mut known = Known::new(mark(1, 1, 4, 6, 2, &[3]));
        assert!(known.hear(mark(1, 3, 9, 9, 4, &[8])));
        assert!(!known.hear(mark(1, 2, 6, 9, 2, &[5])), "an older one");
        assert!(!known.hear(mark(1, 3, 9, 9, 4, &[8])), "the same one");
        assert_eq!((known.now.committed, known.now.inserting, known.now.named_after), (9, 9, 2));
        assert_eq!(places(&known), [3, 8]);
    }

    #[test]
    fn an_insert_of_the_owner_before_is_open_until_its_blocks_are_committed() {
        let mut known = Known::new(mark(1, 5, 4, 9, 0, &[]));
        known.hear(mark(2, 1, 4, 5, 4, &[]));
        assert_eq!((known.now.committed, known.now.inserting), (4, 9));
        known.hear(mark(2, 2, 6, 7, 4, &[]));
        assert_eq!((known.now.committed, known.now.inserting), (6, 9));
        known.hear(mark(2, 3, 9, 9, 4, &[]));
        assert_eq!((known.now.committed, known.now.inserting), (9, 9));
        // a word of the owner before that came late takes nothing back
        known.hear(mark(1, 6, 5, 8, 0, &[]));
        assert_eq!((known.now.committed, known.now.inserting), (9, 9));
    }

    #[test]
    fn what_lies_between_two_stretches_is_not_said_to_be_named() {
        let mut known = Known::new(mark(1, 1, 5, 5, 2, &[4]));
        known.hear(mark(2, 1, 20, 20, 12, &[15]));
        assert_eq!(known.now.named_after, 12, "6 to 12 were nobody's");
        assert_eq!(places(&known), [4, 15]);
        assert!(known.take_floor(Floor { epoch: Epoch(7), settled: 30, delivered: 31 }));
        assert_eq!((known.now.committed, known.now.named_after), (30, 30));
        assert!(!known.take_floor(Floor { epoch: Epoch(7), settled: 29, delivered: 31 }));
        known.hear(mark(2, 2, 31, 31, 12, &[]));
        assert_eq!(known.now.named_after, 12);
    }

    #[test]
    fn another_history_begins_anew_and_memory_is_bounded() {
        let many: Vec<u64> = (1..=2_000).collect();
        let mut known = Known::new(mark(1, 1, 3_000, 3_000, 0, &many));
        assert_eq!((known.now.parked.len(), known.now.named_after), (REMEMBERED, 976));
        let mut other = mark(1, 1, 2, 2, 0, &[]);
        other.epoch = Epoch(8);
        assert!(known.hear(other.clone()));
        assert_eq!(known.now, other);
    }

    proptest! {
        #[test]
        fn committed_never_falls_and_every_claim_of_names_was_made(marks in proptest::collection::vec((1u64..4, 1u64..20, 0u64..50, 0u64..50, 0u64..50), 1..40)) {
            // owners are truthful: a row is parked in every third block, and each stretch names all of its own
            let told = |committed: u64, after: u64| (after + 1..=committed).filter(|s| s % 3 == 0).collect::<Vec<_>>();
            let mut known: Option<Known> = None;
            for (owner, number, committed, more, after) in marks {
                let after = after.min(committed);
                let mark = mark(owner, number, committed, committed + more, after, &told(committed, after));
                let Some(known) = &mut known else { known = Some(Known::new(mark)); continue };
                let before = known.now.committed;
                known.hear(mark);
                let now = &known.now;
                prop_assert!(now.committed >= before && now.inserting >= now.committed);
                for sequence in told(now.committed, now.named_after) {
                    prop_assert!(now.parked.iter().any(|row| row.sequence == sequence), "{} of {:?}", sequence, now);
                }
            }
        }
    }
}
