//! The state machine against plain expectations, and against a naive model.

use super::*;
use crate::{AckToken, Allowance, Budget, From, Kind, Verdict};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use wh_types::{Block, BlockId, Encoding, Timestamp};

const ACK_WAIT: Duration = Duration::from_secs(30);
const WIDE: Budget = Budget { rows: 1_000_000, bytes: 1 << 40 };

fn secs(n: i64) -> Tick {
    Tick(n * 1_000_000_000)
}

fn core(shards: u32) -> Core<u64> {
    let allowance = Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(60) };
    let settings = Settings {
        shards,
        ack_wait: ACK_WAIT,
        duplicate_window: Duration::from_secs(120),
        allowance,
        dead_letter_share: 10,
        max_blocks: 1_000_000,
    };
    Core::new(settings, Epoch(1))
}

fn block(table: &str, id: u64, rows: u32) -> Block {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    Block {
        id: BlockId(bytes),
        tenant: Tenant::default(),
        table: Table::new(table).unwrap(),
        received: Timestamp::from_millis(i64::try_from(id).unwrap()),
        rows,
        decoded_bytes: 0,
        encoding: Encoding::Zstd,
        body: Bytes::from(vec![0; rows as usize]),
        chain: None,
        trace: None,
    }
}

fn store(core: &mut Core<u64>, block: &Block, now: Tick) -> u64 {
    match core.admit(block, now) {
        Admission::New(ticket) => {
            core.confirm(ticket, ticket.sequence);
            ticket.sequence
        }
        other @ (Admission::Known { .. } | Admission::Refused(_)) => panic!("{other:?}"),
    }
}

fn take(core: &mut Core<u64>, shard: u32, term: u64, now: Tick) -> Option<Out<u64>> {
    match core.deliver(shard, term, now) {
        Next::Deliver(out) => Some(out),
        Next::Wait(_) | Next::Ended => None,
    }
}

fn unit() -> crate::Unit {
    crate::Unit { partition: 0, shard: 0 }
}

fn shown(core: &Core<u64>, reader: &mut Reader) -> Vec<String> {
    let mut all = Vec::new();
    while let Read::Shown(shown) = core.read(reader) {
        all.push(match shown {
            Shown::Block(cursor, _) => cursor.sequence.to_string(),
            Shown::Live => "live".into(),
            Shown::Gap(gap) => {
                let show = |c: Option<Cursor>| c.map_or("-".into(), |c| c.sequence.to_string());
                format!("gap {}..{}", show(gap.after), show(gap.before))
            }
        });
    }
    all
}

#[test]
fn a_flood_in_one_table_leaves_the_others_their_turn() {
    let mut core = core(1);
    for n in 0..1_000 {
        store(&mut core, &block("flood", n, 1), secs(0));
    }
    for n in 0..3 {
        store(&mut core, &block("quiet", 5_000 + n, 1), secs(0));
    }
    let term = core.take_unit(unit(), WIDE).unwrap();
    let first: Vec<u64> = (0..6).map(|_| take(&mut core, 0, term, secs(0)).unwrap().cursor.sequence).collect();
    assert_eq!(first, [1, 1_001, 2, 1_002, 3, 1_003]);
}

#[test]
fn a_write_in_flight_holds_back_what_comes_after_it_and_a_failed_one_does_not() {
    let mut core = core(1);
    let (Admission::New(first), Admission::New(second)) =
        (core.admit(&block("t", 1, 1), secs(0)), core.admit(&block("t", 2, 1), secs(0)))
    else {
        panic!("both are new")
    };
    assert!(matches!(core.admit(&block("t", 1, 1), secs(0)), Admission::Known { stored: false, .. }));
    let term = core.take_unit(unit(), WIDE).unwrap();
    let mut reader = core.follow(first.table, From::After(core.cursor(0)));
    assert!(take(&mut core, 0, term, secs(0)).is_none());
    core.void(first);
    assert!(take(&mut core, 0, term, secs(0)).is_none());
    core.confirm(second, 2);
    assert_eq!(take(&mut core, 0, term, secs(0)).unwrap().cursor.sequence, 2);
    assert_eq!(shown(&core, &mut reader), ["live", "2"], "nothing is missing: the first was never stored");
    assert!(matches!(core.admit(&block("t", 1, 1), secs(0)), Admission::New(_)), "its id is free again");
}

#[test]
fn an_insert_that_outlasts_ack_wait_settles_by_its_old_token() {
    let mut core = core(1);
    store(&mut core, &block("t", 1, 1), secs(0));
    let term = core.take_unit(unit(), WIDE).unwrap();
    let old = take(&mut core, 0, term, secs(0)).unwrap();
    assert!(take(&mut core, 0, term, secs(29)).is_none());
    let new = take(&mut core, 0, term, secs(30)).unwrap();
    assert_eq!((old.attempt, new.attempt), (1, 2));
    let nak = Verdict::Nak { delay: Duration::ZERO };
    assert!(!core.settle(0, term, old.token, nak, secs(31)).unwrap(), "an old token naks nothing");
    core.settle(0, term, old.token, Verdict::Ack, secs(31)).unwrap();
    assert!(take(&mut core, 0, term, secs(100)).is_none());
    assert_eq!(core.settle(0, term + 1, new.token, Verdict::Ack, secs(31)), Err(Kind::Fenced));
}

#[test]
fn an_unsettled_block_pins_neither_the_bytes_nor_the_memory_of_others() {
    let mut core = core(1);
    let term = core.take_unit(unit(), WIDE).unwrap();
    store(&mut core, &block("t", 0, 1), secs(0));
    let stuck = take(&mut core, 0, term, secs(0)).unwrap();
    for n in 1..10_000_i64 {
        let now = Tick(n * 20_000_000);
        core.settle(0, term, stuck.token, Verdict::InProgress, now).unwrap();
        store(&mut core, &block("t", u64::try_from(n).unwrap(), 1), now);
        let out = take(&mut core, 0, term, now).unwrap();
        core.settle(0, term, out.token, Verdict::Ack, now).unwrap();
        core.sweep(now, 100);
    }
    let status = core.status().remove(&Tenant::default()).unwrap();
    assert_eq!(status.unsettled_blocks, 1);
    assert!(status.bytes.unwrap() <= 3_002 * 129, "a minute of history: {:?}", status.bytes);
    assert!(core.tables[0].entries.len() < 6_200, "{}", core.tables[0].entries.len());
    let at = TableIndex(0);
    let mut reader = core.follow(at, From::After(core.cursor(1)));
    let all = shown(&core, &mut reader);
    assert_eq!(&all[..2], ["gap 1..7001", "7001"]);
    assert_eq!(all.iter().filter(|s| s.starts_with("gap")).count(), 1);
    core.settle(0, term, stuck.token, Verdict::Ack, secs(200)).unwrap();
    core.sweep(secs(1_000), usize::MAX);
    assert_eq!(core.tables[0].entries.len(), 0);
    assert_eq!(core.status()[&Tenant::default()].bytes, Some(0));
    assert_eq!(core.take_freed().len(), 10_000);
}

#[test]
fn memory_is_bounded_by_forgetting_history_early_and_then_by_refusing() {
    let mut core = Core::new(Settings { max_blocks: 100, ..core(1).settings() }, Epoch(1));
    let term = core.take_unit(unit(), WIDE).unwrap();
    for n in 0..500 {
        store(&mut core, &block("t", n, 1), secs(0));
        let out = take(&mut core, 0, term, secs(0)).unwrap();
        core.settle(0, term, out.token, Verdict::Ack, secs(0)).unwrap();
    }
    assert!(core.blocks <= 100);
    let mut reader = core.follow(TableIndex(0), From::After(core.cursor(1)));
    assert!(shown(&core, &mut reader)[0].starts_with("gap 1.."), "a reader is told");
    let stored = (1_000..1_200).take_while(|n| matches!(core.admit(&block("u", *n, 1), secs(0)), Admission::New(_)));
    assert_eq!(stored.count(), 100, "what is not settled is never forgotten");
}

#[test]
fn what_the_sweep_went_past_is_dropped_when_it_is_settled_although_the_window_grew() {
    let mut core = core(1);
    let term = core.take_unit(unit(), WIDE).unwrap();
    store(&mut core, &block("t", 0, 1), secs(0));
    let stuck = take(&mut core, 0, term, secs(0)).unwrap();
    store(&mut core, &block("t", 1, 1), secs(0));
    let other = take(&mut core, 0, term, secs(0)).unwrap();
    core.settle(0, term, other.token, Verdict::Ack, secs(0)).unwrap();
    core.sweep(secs(100), usize::MAX);
    let allowance = Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(10_000) };
    core.set_allowance(&Tenant::default(), allowance, 1);
    core.settle(0, term, stuck.token, Verdict::Ack, secs(101)).unwrap();
    assert_eq!((core.blocks, core.tables[0].entries.len()), (0, 0));
}

#[test]
fn a_snapshot_and_the_kept_blocks_give_the_same_state() {
    let mut before = core(1);
    let term = before.take_unit(unit(), WIDE).unwrap();
    for n in 0..300_i64 {
        store(&mut before, &block("t", u64::try_from(n).unwrap(), 1), secs(n));
    }
    let outs: Vec<_> = (0..300).map(|_| take(&mut before, 0, term, secs(300)).unwrap()).collect();
    for out in outs.iter().filter(|out| out.cursor.sequence % 100 != 7) {
        before.settle(0, term, out.token, Verdict::Ack, secs(300)).unwrap();
    }
    before.sweep(secs(300), usize::MAX);
    let snapshot = before.snapshot();
    let mut after = core(1);
    let at = after.table(&Tenant::default(), &Table::new("t").unwrap());
    let table = &snapshot.tables[0];
    after.restore_floor(at, table.floor.0, table.floor.1);
    // every record of a block that is kept, and some of those that are gone
    for entry in 0..300_u64 {
        let sequence = entry + 1;
        for (removed, received) in table.removed.iter().filter(|(removed, _)| *removed == sequence) {
            after.restore_removed(at, *removed, *received);
        }
        let kept = before.tables[0].entries.iter().any(|e| e.sequence == sequence && e.body.is_some());
        if kept || sequence % 3 == 0 {
            let block = block("t", entry, 1);
            let restored = Restored {
                table: at,
                sequence,
                id: block.id,
                received: block.received,
                stored: secs(i64::try_from(entry).unwrap()),
                bytes: 1,
                rows: 1,
                body: sequence,
            };
            after.restore(restored, secs(300)).ok();
        }
    }
    for (first, last) in &table.settled {
        after.restore_settled(at, *first, *last);
    }
    after.restore_next(snapshot.next_sequence);
    after.restored();
    after.sweep(secs(300), usize::MAX);
    assert_eq!(after.status(), before.status());
    let follow = |core: &mut Core<u64>| {
        let mut reader = core.follow(at, From::After(core.cursor(0)));
        shown(core, &mut reader)
    };
    assert_eq!(follow(&mut after), follow(&mut before));
    let term = after.take_unit(unit(), WIDE).unwrap();
    let left: Vec<u64> =
        std::iter::from_fn(|| take(&mut after, 0, term, secs(300)).map(|o| o.cursor.sequence)).collect();
    assert_eq!(left, [7, 107, 207]);
}

#[derive(Clone, Debug)]
enum Step {
    Publish { table: u8, rows: u32 },
    Take,
    Ack { nth: usize },
    Nak { nth: usize, delay: u64 },
    Keep { nth: usize },
    Wait { secs: i64 },
    Release,
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..3, 1_u32..4).prop_map(|(table, rows)| Step::Publish { table, rows }),
        6 => Just(Step::Take),
        4 => (0_usize..8).prop_map(|nth| Step::Ack { nth }),
        2 => (0_usize..8, 0_u64..20).prop_map(|(nth, delay)| Step::Nak { nth, delay }),
        1 => (0_usize..8).prop_map(|nth| Step::Keep { nth }),
        2 => (1_i64..40).prop_map(|secs| Step::Wait { secs }),
        1 => Just(Step::Release),
        1 => Just(Step::Sweep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn nothing_is_lost_doubled_or_over_budget(steps in proptest::collection::vec(step(), 1..120)) {
        let mut core = core(1);
        let budget = Budget { rows: 6, bytes: 1 << 20 };
        let mut term = core.take_unit(unit(), budget).unwrap();
        let (mut now, mut ids) = (secs(0), 0);
        // what a reader of the contract would keep: unsettled blocks, and what is out with its deadline
        let mut unsettled: BTreeMap<u64, u32> = BTreeMap::new();
        let mut out: Vec<(AckToken, Tick)> = Vec::new();
        let mut delayed: Vec<(u64, Tick)> = Vec::new();
        let mut highest: BTreeMap<u32, u64> = BTreeMap::new();
        let mut delivered: BTreeSet<u64> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Publish { table, rows } => {
                    ids += 1;
                    let sequence = store(&mut core, &block(&format!("t{table}"), ids, rows), now);
                    unsettled.insert(sequence, rows);
                }
                Step::Take => {
                    out.retain(|(_, deadline)| *deadline > now);
                    if let Some(got) = take(&mut core, 0, term, now) {
                        let sequence = got.cursor.sequence;
                        prop_assert!(unsettled.contains_key(&sequence), "{sequence} was settled");
                        prop_assert!(out.iter().all(|(token, _)| token.sequence != sequence), "{sequence} is out");
                        prop_assert!(delayed.iter().all(|(s, at)| *s != sequence || *at <= now), "{sequence} is early");
                        delayed.retain(|(s, _)| *s != sequence);
                        let table = u32::try_from(got.token.delivery >> 32).unwrap();
                        if got.attempt == 1 && !delivered.contains(&sequence) {
                            let last = highest.insert(table, sequence).unwrap_or(0);
                            prop_assert!(last < sequence, "{sequence} after {last}");
                        }
                        delivered.insert(sequence);
                        out.push((got.token, now.after(ACK_WAIT)));
                        let held: u32 = out.iter().map(|(token, _)| unsettled[&token.sequence]).sum();
                        prop_assert!(held <= 6 || out.len() == 1, "{held} rows held");
                    } else {
                        let idle = unsettled.keys().find(|s| {
                            out.iter().all(|(token, _)| token.sequence != **s) && delayed.iter().all(|(d, _)| d != *s)
                        });
                        let held: u32 = out.iter().map(|(token, _)| unsettled[&token.sequence]).sum();
                        prop_assert!(idle.is_none() || held > 3, "{idle:?} waits with {held} rows held");
                    }
                }
                Step::Ack { nth } if nth < out.len() => {
                    let (token, _) = out.remove(nth);
                    core.settle(0, term, token, Verdict::Ack, now).unwrap();
                    unsettled.remove(&token.sequence);
                    out.retain(|(other, _)| other.sequence != token.sequence);
                }
                Step::Nak { nth, delay } if nth < out.len() && out[nth].1 > now => {
                    let (token, _) = out.remove(nth);
                    let delay = Duration::from_secs(delay);
                    core.settle(0, term, token, Verdict::Nak { delay }, now).unwrap();
                    delayed.push((token.sequence, now.after(delay)));
                }
                Step::Keep { nth } if nth < out.len() && out[nth].1 > now => {
                    core.settle(0, term, out[nth].0, Verdict::InProgress, now).unwrap();
                    out[nth].1 = now.after(ACK_WAIT);
                }
                Step::Wait { secs } => now = now.after(Duration::from_secs(secs.unsigned_abs())),
                Step::Release => {
                    core.release(0, term);
                    for (token, _) in out.drain(..) {
                        prop_assert_eq!(core.settle(0, term, token, Verdict::Ack, now), Err(Kind::Fenced));
                    }
                    delayed.clear();
                    highest.clear();
                    delivered.clear();
                    term = core.take_unit(unit(), budget).unwrap();
                }
                Step::Sweep => drop(core.sweep(now, 3)),
                Step::Ack { .. } | Step::Nak { .. } | Step::Keep { .. } => {}
            }
            let status = core.status();
            let tenant = status.get(&Tenant::default()).cloned().unwrap_or_default();
            prop_assert_eq!(tenant.unsettled_blocks, unsettled.len() as u64);
            let rows = unsettled.values().map(|rows| u64::from(*rows)).sum::<u64>();
            prop_assert_eq!(tenant.unsettled_rows.unwrap_or_default(), rows);
        }
        // everything unsettled comes to the next owner, in order
        core.release(0, term);
        let term = core.take_unit(unit(), WIDE).unwrap();
        let left: BTreeSet<u64> = std::iter::from_fn(|| take(&mut core, 0, term, now).map(|o| o.cursor.sequence)).collect();
        prop_assert_eq!(left, unsettled.keys().copied().collect::<BTreeSet<_>>());
    }
}
