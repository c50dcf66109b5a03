//! Tests of one table's decisions, and the blocks that other tests of this crate use.

use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};
use wh_types::{Block, BlockId, Clock, Cursor, Epoch, SystemClock, Timestamp, frame};

#[path = "table_memory_tests.rs"]
mod memory;

pub(crate) fn block(n: u8, rows: &[&str]) -> Block {
    let plain = rows.iter().map(|row| format!("{row}\n")).collect::<String>();
    Block {
        id: BlockId([n; 16]),
        tenant: Tenant::default(),
        table: Table::new("t").unwrap(),
        received: Timestamp::from_millis(1_000),
        rows: u32::try_from(rows.len()).unwrap(),
        decoded_bytes: u32::try_from(plain.len()).unwrap(),
        encoding: Encoding::Zstd,
        body: frame::encode(Encoding::Zstd, plain.as_bytes()).unwrap(),
        chain: None,
        trace: None,
    }
}

pub(crate) fn delivery(sequence: u64, rows: u32) -> Delivery {
    let texts = (0..rows).map(|row| format!("{{\"n\":{sequence}{row:03}}}")).collect::<Vec<_>>();
    let texts = texts.iter().map(String::as_str).collect::<Vec<_>>();
    Delivery {
        token: AckToken { delivery: sequence * 10, sequence },
        cursor: Cursor { epoch: Epoch(1), sequence },
        attempt: 1,
        block: block(u8::try_from(sequence).unwrap(), &texts),
    }
}

const HOLD: Duration = Duration::from_secs(600);

pub(crate) fn now() -> Mono {
    SystemClock.now()
}

fn options(batch_rows: u64) -> Options {
    Options { batch_rows, batch_max_rows: batch_rows, missing_table_hold: HOLD, ..Options::default() }
}

fn state(sizes: &[u32]) -> TableRows {
    let mut rows = TableRows::new(Tenant::default(), Table::new("t").unwrap());
    for (i, size) in sizes.iter().enumerate() {
        assert!(rows.accept(delivery(i as u64 + 1, *size), now()));
    }
    rows
}

fn error(failure: Failure, row: Option<u64>) -> SinkError {
    let refusal = Refusal { code: "27".into(), reason: "cannot parse".into(), column: Some("n".into()) };
    SinkError { failure, refusal, splittable: false, table_scoped: false, row, columns: None, source: None }
}

/// The running counts are what is held.
#[track_caller]
fn counted(rows: &TableRows) {
    let blocks = || rows.held.values().map(|held| &held.delivery.block);
    let (count, bytes) =
        (blocks().map(|block| block.rows as usize).sum(), blocks().map(|block| block.body.len()).sum());
    assert_eq!(rows.held(), Load { rows: count, bytes, blocks: rows.held.len() });
}

/// How a sink tells which row it refuses.
#[derive(Clone, Copy, Debug)]
enum Hints {
    None,
    Right,
    /// One too far: a stray bracket is found in the next row.
    Late,
    /// Any row at all.
    Lies(u64),
}

/// What became of the rows.
#[derive(Debug, Default)]
struct Driven {
    stored: Vec<String>,
    parked: Vec<String>,
    requests: u64,
}

/// Drives a table against a sink that refuses the rows for which `bad` holds.
fn drive(state: &mut TableRows, options: &Options, bad: impl Fn(&str) -> bool, hints: Hints) -> Driven {
    let mut all = Driven::default();
    while let Due::Now = state.due(now(), true, options) {
        counted(state);
        let (id, work) = state.start(now(), options).unwrap();
        let Work::Insert(chunk) = &work else {
            let letters = state.letters(&work, Timestamp::default(), HOLD).unwrap();
            all.parked.extend(letters.into_iter().map(|letter| String::from_utf8(letter.body.to_vec()).unwrap()));
            state.done(id);
            continue;
        };
        all.requests += 1;
        let rows = texts(state, chunk);
        let Some(at) = rows.iter().position(|row| bad(row)).map(|at| at as u64) else {
            all.stored.extend(rows);
            state.done(id);
            continue;
        };
        let hint = match hints {
            Hints::None => None,
            Hints::Right => Some(at),
            Hints::Late => Some(at + 1),
            Hints::Lies(seed) => Some((seed ^ all.requests.wrapping_mul(0x9E37_79B9)) % (rows.len() as u64 + 1)),
        };
        assert!(!state.failed(id, &error(Failure::Rejected, hint), now(), options));
    }
    all
}

fn texts(state: &TableRows, chunk: &Chunk) -> Vec<String> {
    let (encoding, frames) = state.frames(chunk).unwrap();
    let plain = frame::decode(encoding, &frames.concat(), 1 << 20).unwrap();
    let rows = String::from_utf8(plain).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows.len() as u64, chunk.rows());
    rows
}

/// The bound of the requirements, for so many refused rows of a batch of `rows`.
fn bound(rows: usize, refused: usize) -> u64 {
    let log = f64::log2(rows.max(1) as f64);
    (refused.max(1) as f64 * (2.0 * log + 4.0)).floor() as u64
}

proptest! {
    #[test]
    fn requests_for_a_refused_row_are_bounded_whatever_the_sink_says(
        sizes in proptest::collection::vec(1_u32..200, 1..5),
        bad in proptest::collection::hash_set((1_u64..5, 0_u32..200), 0..12),
        lie in 0_u64..1_000,
        how in 0_usize..4,
    ) {
        let mut rows = state(&sizes);
        let there = |(sequence, row): &&(u64, u32)| sizes.get(*sequence as usize - 1).is_some_and(|size| row < size);
        let bad: HashSet<String> = bad.iter().filter(there).map(|(s, r)| format!("{{\"n\":{s}{r:03}}}")).collect();
        let total = sizes.iter().sum::<u32>() as usize;
        let hints = [Hints::None, Hints::Right, Hints::Late, Hints::Lies(lie)][how];
        let driven = drive(&mut rows, &options(1_000), |row| bad.contains(row), hints);
        prop_assert_eq!(driven.parked.iter().cloned().collect::<HashSet<_>>(), bad.clone());
        prop_assert_eq!(driven.stored.len() + bad.len(), total);
        prop_assert!(driven.stored.is_sorted(), "order is kept through isolation");
        prop_assert!(driven.parked.is_sorted());
        prop_assert!(rows.is_empty());
        prop_assert!(
            driven.requests <= bound(total, bad.len()),
            "{} requests for {} of {total}, {hints:?}", driven.requests, bad.len()
        );
    }
}

#[test]
fn a_batch_waits_for_size_or_time() {
    let (options, start) = (options(10), now());
    let mut rows = TableRows::new(Tenant::default(), Table::new("t").unwrap());
    assert_eq!(rows.due(start, false, &options), Due::Idle);
    rows.accept(delivery(1, 4), start);
    assert_eq!(rows.due(start, false, &options), Due::At(start + options.batch_wait));
    assert_eq!(rows.due(start, true, &options), Due::Now, "a flush does not wait");
    assert_eq!(rows.due(start + options.batch_wait, false, &options), Due::Now);
    rows.accept(delivery(2, 6), start);
    assert_eq!(rows.due(start, false, &options), Due::Now);
    let (id, work) = rows.start(start, &options).unwrap();
    assert_eq!(work.chunk().rows(), 10);
    rows.accept(delivery(3, 500), start);
    assert_eq!(rows.due(start, true, &options), Due::Idle, "one insert in flight");
    assert!(rows.start(start, &options).is_none());
    assert_eq!(rows.done(id).iter().map(|token| token.sequence).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rows.due(start, false, &options), Due::Now, "what came meanwhile is the next batch");
}

#[test]
fn blocks_of_two_encodings_never_share_an_insert() {
    let mut rows = state(&[1]);
    let mut other = delivery(2, 1);
    other.block.encoding = Encoding::Lz4;
    rows.accept(other, now());
    assert_eq!(rows.start(now(), &options(10)).unwrap().1.chunk().rows(), 1);
}

#[test]
fn a_refused_row_is_found_and_costs_no_other_row_anything() {
    for (hints, most) in [(Hints::Right, 5), (Hints::None, 20)] {
        let mut rows = state(&[100, 100, 56]);
        let driven = drive(&mut rows, &options(1_000), |row| row.contains("2077"), hints);
        assert_eq!(driven.parked, ["{\"n\":2077}"]);
        assert_eq!(driven.stored.len(), 255);
        assert!(driven.requests <= most, "{} requests, {hints:?}", driven.requests);
    }
}

#[test]
fn a_batch_of_bad_rows_ends_and_loses_nothing() {
    let mut rows = state(&[20, 20]);
    let driven = drive(&mut rows, &options(1_000), |row| !row.contains("005"), Hints::Right);
    assert_eq!((driven.stored.len(), driven.parked.len()), (2, 38));
    assert!(driven.requests < 38 * 4, "{}", driven.requests);
}

#[test]
fn an_unanswered_batch_is_repeated_with_the_same_rows() {
    let (mut rows, options) = (state(&[3]), options(1_000));
    let (id, first) = rows.start(now(), &options).unwrap();
    rows.accept(delivery(2, 3), now());
    for failure in [Failure::Unknown, Failure::Unavailable, Failure::Denied] {
        assert!(rows.failed(id, &error(failure, None), now(), &options), "it waits");
        assert!(rows.in_doubt());
        assert_eq!(rows.start(now(), &options), Some((id, first.clone())));
    }
    assert_eq!(rows.done(id).len(), 1);
    assert_eq!(rows.start(now(), &options).unwrap().1.chunk().pieces[0].sequence, 2);
}

fn too_large() -> SinkError {
    SinkError { splittable: true, ..error(Failure::Unavailable, None) }
}

#[test]
fn too_much_at_once_is_halved_until_one_row_and_then_waits() {
    let (mut rows, options) = (state(&[4]), options(1_000));
    for left in [4, 2, 1] {
        let (id, work) = rows.start(now(), &options).unwrap();
        assert_eq!(work.chunk().rows(), left);
        assert_eq!(rows.failed(id, &too_large(), now(), &options), left == 1);
    }
}

#[test]
fn what_was_too_large_is_not_tried_again_for_a_while() {
    let (mut rows, options, start) = (state(&[400, 400]), options(1_000), now());
    let (mut tried, mut stored) = (Vec::new(), Vec::new());
    let mut pass = |rows: &mut TableRows, at: Mono| {
        while let Due::Now = rows.due(at, true, &options) {
            let (id, work) = rows.start(at, &options).unwrap();
            tried.push(work.chunk().rows());
            if work.chunk().rows() > 150 {
                assert!(!rows.failed(id, &too_large(), at, &options));
            } else {
                stored.extend(texts(rows, work.chunk()));
                rows.stored(id, at, &options);
            }
        }
        std::mem::take(&mut tried)
    };
    assert_eq!(
        pass(&mut rows, start),
        [800, 400, 200, 100, 100, 100, 100, 100, 100, 100, 100],
        "each size is tried once"
    );
    for sequence in 3..=4 {
        rows.accept(delivery(sequence, 400), start);
    }
    assert_eq!(pass(&mut rows, start), [100; 8], "the next batches are smaller");
    rows.accept(delivery(5, 400), start);
    assert_eq!(pass(&mut rows, start + options.learned_for), [200, 100, 100, 100, 100], "and grow again");
    assert!(stored.is_sorted());
    assert_eq!(stored.len(), 2_000);
}

#[test]
fn a_lagging_table_has_larger_batches_up_to_their_bound() {
    let options = Options { batch_rows: 10, batch_max_rows: 35, ..Options::default() };
    let mut rows = state(&[10; 9]);
    for expected in [30, 30, 30] {
        let (id, work) = rows.start(now(), &options).unwrap();
        assert_eq!(work.chunk().rows(), expected);
        rows.done(id);
    }
    let mut rows = state(&[100, 1]);
    assert_eq!(rows.start(now(), &options).unwrap().1.chunk().rows(), 35, "a block larger than the bound is cut");
    let bytes = Options { batch_bytes: 1, batch_max_bytes: 150, ..Options::default() };
    assert_eq!(state(&[5, 5, 5]).start(now(), &bytes).unwrap().1.chunk().rows(), 10);
}

#[test]
fn a_table_whose_merges_do_not_keep_up_is_waited_for_longer() {
    let (mut rows, options, start) = (state(&[1]), options(1_000), now());
    let merges = SinkError { table_scoped: true, ..error(Failure::Unavailable, None) };
    let (id, _) = rows.start(start, &options).unwrap();
    assert!(rows.failed(id, &merges, start, &options), "nothing is split");
    rows.start(start, &options).unwrap();
    rows.done(id);
    rows.accept(delivery(2, 1), start);
    assert_eq!(rows.due(start, false, &options), Due::At(start + options.batch_wait * 2));
}

#[test]
fn several_inserts_at_once_share_a_tables_rows_and_settle_each_block_once() {
    let options = Options { batch_rows: 10, batch_max_rows: 10, table_inserts: 3, ..Options::default() };
    let mut rows = state(&[10, 10, 10, 10]);
    let begun: Vec<_> = (0..3).map(|_| rows.start(now(), &options).unwrap()).collect();
    assert_eq!(rows.due(now(), true, &options), Due::Idle, "no more than that");
    assert!(rows.start(now(), &options).is_none());
    let sequences = |work: &Work| work.chunk().pieces.iter().map(|piece| piece.sequence).collect::<Vec<_>>();
    assert_eq!(begun.iter().map(|(_, work)| sequences(work)).collect::<Vec<_>>(), [[1], [2], [3]]);
    // the middle one fails and is tried again; the others go on beside it
    assert!(rows.failed(begun[1].0, &error(Failure::Unknown, None), now(), &options));
    assert_eq!(rows.done(begun[2].0)[0].sequence, 3);
    assert_eq!(rows.start(now(), &options).unwrap(), begun[1]);
    assert_eq!(sequences(&rows.start(now(), &options).unwrap().1), [4]);
    assert_eq!(rows.done(begun[0].0)[0].sequence, 1);
    assert_eq!(rows.done(begun[1].0)[0].sequence, 2);
    assert!(rows.done(begun[1].0).is_empty(), "done once");
    counted(&rows);
}

#[test]
fn rows_of_a_missing_table_are_held_and_then_parked() {
    let (mut rows, options, start) = (state(&[2, 2]), options(1_000), now());
    let gone = error(Failure::NoTable, None);
    let (id, _) = rows.start(start, &options).unwrap();
    assert!(rows.failed(id, &gone, start, &options));
    rows.start(start, &options).unwrap();
    assert!(rows.failed(id, &gone, start + Duration::from_secs(599), &options), "still held");
    assert_eq!(rows.missing_for(start + HOLD), Some(HOLD));
    rows.start(start, &options).unwrap();
    assert!(!rows.failed(id, &gone, start + HOLD, &options));
    let (id, park) = rows.start(start, &options).unwrap();
    assert!(matches!(park, Work::Park(..)));
    let letters = rows.letters(&park, Timestamp::from_millis(5), HOLD).unwrap();
    assert_eq!(letters.len(), 4);
    assert_eq!(letters[3].id.to_string(), "00000001-2.1");
    assert_eq!((letters[3].code.as_str(), letters[3].column.as_deref()), ("27", Some("n")));
    assert_eq!(letters[3].retry_until, None);
    assert_eq!(rows.done(id).len(), 2);
    // its time is over: what comes now is not held anew
    rows.accept(delivery(3, 1), start + HOLD);
    let (id, _) = rows.start(start + HOLD, &options).unwrap();
    assert!(!rows.failed(id, &gone, start + HOLD, &options));
    let (id, _) = rows.start(start + HOLD, &options).unwrap();
    rows.done(id);
    // until the table was there again
    rows.accept(delivery(4, 1), start + HOLD);
    let (id, _) = rows.start(start + HOLD, &options).unwrap();
    rows.done(id);
    rows.accept(delivery(5, 1), start + HOLD);
    let (id, _) = rows.start(start + HOLD, &options).unwrap();
    assert!(rows.failed(id, &gone, start + HOLD, &options));
}

#[test]
fn an_unreadable_block_is_parked_whole_and_alone() {
    let (mut rows, options) = (state(&[2]), options(1_000));
    let mut broken = delivery(2, 3);
    broken.block.body = Bytes::from_static(b"garbage");
    rows.accept(broken, now());
    // the engine refuses the batch, the halves meet the broken block
    let (id, _) = rows.start(now(), &options).unwrap();
    rows.failed(id, &error(Failure::Rejected, Some(3)), now(), &options);
    let (id, work) = rows.start(now(), &options).unwrap();
    let (sequence, reason) = rows.frames(work.chunk()).unwrap_err();
    assert_eq!(sequence, 2);
    rows.unreadable(id, sequence, &reason);
    let (id, park) = rows.start(now(), &options).unwrap();
    let letters = rows.letters(&park, Timestamp::default(), HOLD).unwrap();
    assert_eq!((letters.len(), letters[0].code.as_str()), (1, UNREADABLE));
    assert_eq!(letters[0].body, "garbage");
    assert_eq!(rows.done(id).iter().map(|t| t.sequence).collect::<Vec<_>>(), [2]);
    let driven = drive(&mut rows, &options, |_| false, Hints::Right);
    assert_eq!((driven.stored.len(), driven.parked.len()), (2, 0));
}

#[test]
fn a_redelivered_block_only_lends_its_token() {
    let mut rows = state(&[2]);
    let mut again = delivery(1, 2);
    again.token.delivery = 99;
    assert!(!rows.accept(again, now()));
    let (id, _) = rows.start(now(), &options(10)).unwrap();
    assert_eq!(rows.done(id), [AckToken { delivery: 99, sequence: 1 }]);
    counted(&rows);
    assert!(rows.is_empty());
}

#[test]
fn rows_that_name_a_vanished_column_are_held_together_and_the_rest_is_one_insert() {
    let mut rows = TableRows::new(Tenant::default(), Table::new("t").unwrap());
    for sequence in 1..=2 {
        let mut delivery = delivery(sequence, 0);
        let texts = ["{\"a\":1}", "{\"a\":2,\"gone\":1}", "{\"a\":3,\"\\u0067one\":null}", "{\"a\":4}"];
        delivery.block = block(u8::try_from(sequence).unwrap(), &texts);
        rows.accept(delivery, now());
    }
    let options = options(1_000);
    let (id, _) = rows.start(now(), &options).unwrap();
    let mut unknown = error(Failure::Rejected, Some(1));
    unknown.columns = Some(std::sync::Arc::new(BTreeSet::from(["a".to_owned()])));
    assert!(!rows.failed(id, &unknown, now(), &options));
    let (id, good) = rows.start(now(), &options).unwrap();
    assert!(matches!(good, Work::Insert(_)), "the good rows first");
    let (encoding, frames) = rows.frames(good.chunk()).unwrap();
    assert_eq!(frames.len(), 2, "one frame a block");
    let plain = frame::decode(encoding, &frames.concat(), 1_000).unwrap();
    assert_eq!(plain, b"{\"a\":1}\n{\"a\":4}\n{\"a\":1}\n{\"a\":4}\n");
    assert!(rows.done(id).is_empty(), "no block is whole yet");
    let (id, held) = rows.start(now(), &options).unwrap();
    assert!(matches!(held, Work::Hold(..)), "then the others");
    let letters = rows.letters(&held, Timestamp::from_millis(1), HOLD).unwrap();
    assert_eq!(letters.iter().map(|l| l.id.0.row).collect::<Vec<_>>(), [1, 2, 1, 2]);
    for letter in letters {
        assert_eq!(
            (letter.column.as_deref(), letter.retry_until),
            (Some("gone"), Some(Timestamp::from_millis(600_001)))
        );
        assert!(letter.reason.starts_with("held: the column \"gone\""), "{}", letter.reason);
    }
    assert_eq!(rows.done(id).len(), 2);
    assert!(rows.is_empty());
}

#[test]
fn columns_that_are_all_known_leave_the_row_to_isolation() {
    let mut rows = state(&[4]);
    let (id, _) = rows.start(now(), &options(10)).unwrap();
    let mut unknown = error(Failure::Rejected, None);
    unknown.columns = Some(std::sync::Arc::new(BTreeSet::from(["n".to_owned()])));
    assert!(!rows.failed(id, &unknown, now(), &options(10)));
    assert_eq!(rows.start(now(), &options(10)).unwrap().1.chunk().rows(), 2, "halves");
}

#[test]
fn what_waits_beyond_a_failing_tables_part_is_given_back_newest_first() {
    let (mut rows, options) = (state(&[10, 10, 10, 10]), options(10));
    let (id, _) = rows.start(now(), &options).unwrap();
    assert!(rows.failed(id, &error(Failure::Unavailable, None), now(), &options));
    let sequences = |tokens: Vec<AckToken>| tokens.iter().map(|t| t.sequence).collect::<Vec<_>>();
    let any = Load { rows: usize::MAX, bytes: usize::MAX, blocks: usize::MAX };
    assert_eq!(sequences(rows.give_back(Load { blocks: 3, ..any })), [4]);
    assert_eq!(sequences(rows.give_back(Load { rows: 25, ..any })), [3]);
    counted(&rows);
    assert_eq!(rows.held().rows, 20);
    assert_eq!(sequences(rows.give_back(Load::default())), [2], "what is in work stays");
    counted(&rows);
    assert_eq!(rows.due(now(), true, &options), Due::Now);
}
