//! Marks against a table whose blocks are delivered, inserted, refused, parked, given back and delivered again at random.

use super::*;
use crate::{
    options::Options,
    sink::{Failure, Refusal, SinkError},
    table::{
        Load,
        tests::{delivery, now},
    },
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use wh_mq::Floor;
use wh_types::{Table, Tenant};

fn owner(settled: u64, delivered: u64, doubt: bool) -> Owner {
    let floor = Floor { epoch: Epoch(1), settled, delivered };
    Owner { id: 3, began: Began { floor, in_order: !doubt }, doubt }
}

fn table() -> TableRows {
    TableRows::new(Tenant::default(), Table::new("t").unwrap())
}

fn options() -> Options {
    Options { batch_rows: 1, batch_max_rows: 5, table_inserts: 3, ..Options::default() }
}

fn error(failure: Failure, code: &str) -> SinkError {
    let refusal = Refusal { code: code.into(), reason: "no".into(), column: None };
    SinkError { failure, refusal, splittable: false, table_scoped: false, row: None, columns: None, source: None }
}

struct Rig {
    rows: TableRows,
    marking: Marking,
    owner: Owner,
}

impl Rig {
    fn new(owner: Owner) -> Self {
        Self { rows: table(), marking: Marking::default(), owner }
    }

    fn deliver(&mut self, sequence: u64, rows: u32) {
        self.marking.accepted(Epoch(1), sequence);
        self.rows.accept(delivery(sequence, rows), now());
    }

    /// Begins an insert.
    fn start(&mut self) -> Option<u64> {
        self.rows.start(now(), &options()).map(|(id, _)| id)
    }

    fn done(&mut self, id: u64) -> Vec<u64> {
        if let Some(item) = self.rows.line.get(id) {
            self.marking.parked(&item.work, now());
        }
        let settled: Vec<u64> = self.rows.done(id).iter().map(|token| token.sequence).collect();
        self.marking.done(settled.iter().copied());
        settled
    }

    fn mark(&mut self) -> Progress {
        self.marking.mark(&self.rows, &self.owner, now(), true).unwrap()
    }
}

#[test]
fn a_mark_says_what_is_done_and_what_is_begun() {
    let mut rig = Rig::new(owner(0, 0, false));
    assert!(rig.marking.mark(&rig.rows, &rig.owner, now(), true).is_none(), "nothing is known of it");
    for sequence in [4, 6, 9] {
        rig.deliver(sequence, 5);
    }
    let first = rig.start().unwrap();
    let mark = rig.mark();
    assert_eq!((mark.committed, mark.inserting, mark.named_after), (3, 4, 3));
    rig.done(first);
    let mark = rig.mark();
    assert_eq!((mark.committed, mark.inserting), (5, 5));
    let second = rig.start().unwrap();
    assert!(rig.rows.failed(second, &error(Failure::Unknown, "-"), now(), &options()));
    assert_eq!(rig.mark().inserting, 6, "it may be stored any moment");
    assert!(rig.rows.start(now(), &options()).is_some());
    assert!(rig.rows.failed(second, &error(Failure::Unavailable, "-"), now(), &options()));
    assert_eq!(rig.mark().inserting, 6, "not having been reached says nothing of the try before");
    rig.done(second);
    let third = rig.start().unwrap();
    rig.done(third);
    let mark = rig.mark();
    assert_eq!((mark.committed, mark.inserting), (9, 9));
    assert!(rig.rows.is_empty() && rig.marking.is_idle());
    assert!(rig.marking.repeats(&rig.rows) && !rig.marking.repeats(&rig.rows), "once more, and no more");
    // its ack was lost: it comes again
    rig.deliver(6, 5);
    let mark = rig.mark();
    assert_eq!((mark.committed, mark.inserting), (9, 9));
}

#[test]
fn what_was_given_back_is_not_done() {
    let mut rig = Rig::new(owner(0, 0, false));
    for sequence in 1..=4 {
        rig.deliver(sequence, 5);
    }
    let back = rig.rows.give_back(Load { rows: 10, bytes: usize::MAX, blocks: 4 });
    rig.marking.gave_back(back.iter().map(|token| token.sequence));
    rig.deliver(7, 5);
    for _ in 0..3 {
        let id = rig.start().unwrap();
        rig.done(id);
    }
    assert_eq!(rig.mark().committed, 2);
    assert!(!rig.marking.is_idle() && rig.marking.repeats(&rig.rows));
    for (sequence, committed) in [(4, 2), (3, 7)] {
        rig.deliver(sequence, 5);
        let id = rig.start().unwrap();
        rig.done(id);
        assert_eq!(rig.mark().committed, committed);
    }
}

#[test]
fn a_new_owner_begins_with_what_the_queue_knows() {
    // what was delivered before may be in an insert of the owner before, and may be parked
    let mut rig = Rig::new(owner(10, 20, false));
    rig.deliver(15, 5);
    let mark = rig.mark();
    assert_eq!((mark.committed, mark.inserting, mark.named_after), (14, 20, 20));
    rig.deliver(22, 5);
    let id = rig.start().unwrap();
    rig.done(id);
    let mark = rig.mark();
    assert_eq!((mark.committed, mark.inserting), (21, 21));

    // blocks of before may still come behind others
    let mut rig = Rig::new(owner(10, 20, true));
    rig.deliver(22, 5);
    let id = rig.start().unwrap();
    rig.done(id);
    let mark = rig.mark();
    assert_eq!((mark.committed, mark.inserting), (10, 20));
    rig.owner.doubt = false;
    assert_eq!(rig.mark().committed, 22);
}

#[test]
fn parked_rows_are_named_and_forgotten_in_time() {
    let mut rig = Rig::new(owner(0, 0, false));
    rig.deliver(3, 1);
    assert_eq!(rig.mark().named_after, 2);
    let id = rig.start().unwrap();
    assert!(!rig.rows.failed(id, &error(Failure::Rejected, "27"), now(), &options()));
    let id = rig.start().unwrap();
    rig.done(id);
    let mark = rig.mark();
    assert_eq!((mark.committed, mark.named_after), (3, 2));
    assert_eq!(mark.parked, [ParkedRow { sequence: 3, row: 0, code: "27".into() }]);
    let later = now() + NAMED_FOR + Duration::from_secs(1);
    let mark = rig.marking.mark(&rig.rows, &rig.owner, later, true).unwrap();
    assert_eq!((mark.parked.len(), mark.named_after), (0, 3));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn committed_never_passes_an_unsettled_block_nor_falls(
        steps in proptest::collection::vec((0u8..7, 0usize..4), 1..120),
        delivered in 0u64..12,
    ) {
        let mut rig = Rig::new(owner(0, delivered, false));
        // blocks in the order of the table; not every number is this table's
        let (mut next, mut running) = (1u64, Vec::<u64>::new());
        let (mut unsettled, mut parked) = (BTreeMap::<u64, bool>::new(), 0);
        let mut before = 0;
        for (step, which) in steps {
            match step {
                0 | 1 if next < 250 => {
                    rig.deliver(next, 1 + u32::try_from(which).unwrap());
                    unsettled.insert(next, true);
                    next += 1 + which as u64 % 2;
                }
                2 => running.extend(rig.start()),
                3 if !running.is_empty() => {
                    let id = running.remove(which % running.len());
                    let names = rig.marking.parked.len();
                    for sequence in rig.done(id) {
                        unsettled.remove(&sequence);
                    }
                    parked += rig.marking.parked.len().saturating_sub(names);
                }
                4 if !running.is_empty() => {
                    let id = running.remove(which % running.len());
                    let insert = rig.rows.line.get(id).is_some_and(|item| matches!(item.work, Work::Insert(_)));
                    let failure = [Failure::Unknown, Failure::Unavailable, Failure::Rejected, Failure::Rejected][which];
                    if insert {
                        rig.rows.failed(id, &error(failure, "27"), now(), &options());
                    } else {
                        rig.rows.not_now(id);
                    }
                }
                5 => {
                    let back = rig.rows.give_back(Load { rows: which * 2, bytes: usize::MAX, blocks: usize::MAX });
                    for token in &back {
                        unsettled.insert(token.sequence, false);
                    }
                    rig.marking.gave_back(back.iter().map(|token| token.sequence));
                }
                _ => {
                    let away: Vec<u64> = unsettled.iter().filter(|(_, held)| !**held).map(|(at, _)| *at).collect();
                    if let Some(sequence) = away.get(which) {
                        rig.deliver(*sequence, 1);
                        unsettled.insert(*sequence, true);
                    }
                }
            }
            if next == 1 {
                continue;
            }
            let mark = rig.mark();
            let lowest = unsettled.keys().next().copied();
            prop_assert!(lowest.is_none_or(|lowest| mark.committed < lowest), "{:?} of {:?}", mark, unsettled);
            prop_assert!(mark.committed >= before, "{} after {}", mark.committed, before);
            prop_assert!(mark.inserting >= mark.committed.max(rig.rows.highest_begun().unwrap_or(0)));
            prop_assert!(lowest.is_some() || mark.committed < next && mark.committed + 2 >= next);
            before = mark.committed;
        }
        prop_assert!(parked == rig.marking.parked.len());
    }
}
