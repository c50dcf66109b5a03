//! Tests of one table's decisions, and the blocks that other tests of this crate use.

use super::*;
use wh_types::{Clock, Cursor, SystemClock, frame};

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

fn delivery(sequence: u64, rows: u32) -> Delivery {
    let texts = (0..rows).map(|row| format!("{{\"n\":{sequence}{row:03}}}")).collect::<Vec<_>>();
    let texts = texts.iter().map(String::as_str).collect::<Vec<_>>();
    Delivery {
        token: AckToken { delivery: sequence * 10, sequence },
        cursor: Cursor { epoch: Epoch(1), sequence },
        attempt: 1,
        block: block(u8::try_from(sequence).unwrap(), &texts),
    }
}

fn now() -> Mono {
    SystemClock.now()
}

fn options(batch_rows: u64) -> Options {
    Options { batch_rows, ..Options::default() }
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
    let held = (blocks().map(|block| block.rows as usize).sum(), blocks().map(|block| block.body.len()).sum());
    assert_eq!(rows.held(), held);
}

/// Drives a table against a sink that refuses the rows for which `bad` holds; gives (stored, parked, requests).
fn drive(
    state: &mut TableRows,
    options: &Options,
    bad: impl Fn(&str) -> bool,
    hints: bool,
) -> (Vec<String>, Vec<String>, u64) {
    let (mut stored, mut parked, mut requests) = (Vec::new(), Vec::new(), 0);
    while let Due::Now = state.due(now(), true, options) {
        counted(state);
        match state.start(now(), options).unwrap() {
            Work::Insert(chunk) => {
                requests += 1;
                let (encoding, frames) = state.frames(&chunk).unwrap();
                let plain = frame::decode(encoding, &frames.concat(), 1 << 20).unwrap();
                let rows = String::from_utf8(plain).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
                assert_eq!(rows.len() as u64, chunk.rows());
                match rows.iter().position(|row| bad(row)) {
                    Some(at) => {
                        let hint = hints.then_some(at as u64);
                        assert!(!state.failed(&error(Failure::Rejected, hint), now(), Duration::ZERO));
                    }
                    None => {
                        stored.extend(rows);
                        state.done();
                    }
                }
            }
            Work::Park(chunk, refusal) => {
                let letters = state.letters(&chunk, &refusal, Timestamp::default()).unwrap();
                parked.extend(letters.into_iter().map(|letter| String::from_utf8(letter.body.to_vec()).unwrap()));
                state.done();
            }
        }
    }
    (stored, parked, requests)
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
    let work = rows.start(start, &options).unwrap();
    assert_eq!(work.chunk().rows(), 10);
    rows.accept(delivery(3, 500), start);
    assert_eq!(rows.due(start, true, &options), Due::Idle, "one insert in flight");
    assert!(rows.start(start, &options).is_none());
    assert_eq!(rows.done().iter().map(|token| token.sequence).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rows.due(start, false, &options), Due::Now, "what came meanwhile is the next batch");
}

#[test]
fn blocks_of_two_encodings_never_share_an_insert() {
    let mut rows = state(&[1]);
    let mut other = delivery(2, 1);
    other.block.encoding = Encoding::Lz4;
    rows.accept(other, now());
    assert_eq!(rows.start(now(), &options(10)).unwrap().chunk().rows(), 1);
}

#[test]
fn a_refused_row_is_found_and_costs_no_other_row_anything() {
    for hints in [true, false] {
        let mut rows = state(&[100, 100, 56]);
        let (stored, parked, requests) = drive(&mut rows, &options(1_000), |row| row.contains("2077"), hints);
        assert_eq!(parked, ["{\"n\":2077}"]);
        assert_eq!(stored.len(), 255);
        assert!(stored.is_sorted(), "order is kept through isolation");
        assert!(rows.is_empty());
        // the bound of the issue: 2·log2(256) + 4
        assert!(requests <= if hints { 5 } else { 20 }, "{requests} requests, hints {hints}");
    }
}

#[test]
fn a_batch_of_bad_rows_ends_and_loses_nothing() {
    let mut rows = state(&[20, 20]);
    let (stored, parked, requests) = drive(&mut rows, &options(1_000), |row| !row.contains("005"), true);
    assert_eq!((stored.len(), parked.len()), (2, 38));
    assert!(requests < 38 * 4, "{requests}");
    assert!(rows.is_empty());
}

#[test]
fn an_unanswered_batch_is_repeated_with_the_same_rows() {
    let (mut rows, options) = (state(&[3]), options(1_000));
    let first = rows.start(now(), &options).unwrap();
    rows.accept(delivery(2, 3), now());
    for failure in [Failure::Unknown, Failure::Unavailable, Failure::Denied] {
        assert!(rows.failed(&error(failure, None), now(), Duration::ZERO), "it waits");
        assert_eq!(rows.start(now(), &options), Some(first.clone()));
    }
    assert_eq!(rows.token(first.chunk()), rows.token(rows.work[0].chunk()));
    assert_eq!(rows.done().len(), 1);
    assert_eq!(rows.start(now(), &options).unwrap().chunk().pieces[0].sequence, 2);
}

#[test]
fn too_much_at_once_is_halved_until_one_row_and_then_waits() {
    let (mut rows, options) = (state(&[4]), options(1_000));
    let mut memory = error(Failure::Unavailable, None);
    memory.splittable = true;
    for left in [4, 2, 1] {
        assert_eq!(rows.start(now(), &options).unwrap().chunk().rows(), left);
        assert_eq!(rows.failed(&memory, now(), Duration::ZERO), left == 1);
    }
}

#[test]
fn rows_of_a_missing_table_are_held_and_then_parked() {
    let (mut rows, options, start) = (state(&[2, 2]), options(1_000), now());
    let gone = error(Failure::NoTable, None);
    let hold = Duration::from_secs(600);
    rows.start(start, &options).unwrap();
    assert!(rows.failed(&gone, start, hold));
    rows.start(start, &options).unwrap();
    assert!(rows.failed(&gone, start + Duration::from_secs(599), hold), "still held");
    rows.start(start, &options).unwrap();
    assert!(!rows.failed(&gone, start + hold, hold));
    let Some(Work::Park(chunk, refusal)) = rows.start(start, &options) else { panic!("parked") };
    let letters = rows.letters(&chunk, &refusal, Timestamp::from_millis(5)).unwrap();
    assert_eq!(letters.len(), 4);
    assert_eq!(letters[3].id.to_string(), "00000001-2.1");
    assert_eq!((letters[3].code.as_str(), letters[3].column.as_deref()), ("27", Some("n")));
    assert_eq!(rows.done().len(), 2);
    assert!(rows.is_empty());
}

#[test]
fn an_unreadable_block_is_parked_whole_and_alone() {
    let (mut rows, options) = (state(&[2]), options(1_000));
    let mut broken = delivery(2, 3);
    broken.block.body = Bytes::from_static(b"garbage");
    rows.accept(broken, now());
    // the engine refuses the batch, the halves meet the broken block
    rows.start(now(), &options).unwrap();
    rows.failed(&error(Failure::Rejected, Some(3)), now(), Duration::ZERO);
    let work = rows.start(now(), &options).unwrap();
    let (sequence, reason) = rows.frames(work.chunk()).unwrap_err();
    assert_eq!(sequence, 2);
    rows.unreadable(sequence, &reason);
    let Some(Work::Park(chunk, refusal)) = rows.start(now(), &options) else { panic!("parked first") };
    let letters = rows.letters(&chunk, &refusal, Timestamp::default()).unwrap();
    assert_eq!((letters.len(), letters[0].code.as_str()), (1, UNREADABLE));
    assert_eq!(letters[0].body, "garbage");
    assert_eq!(rows.done().iter().map(|t| t.sequence).collect::<Vec<_>>(), [2]);
    let (stored, parked, _) = drive(&mut rows, &options, |_| false, true);
    assert_eq!((stored.len(), parked.len()), (2, 0));
}

#[test]
fn a_redelivered_block_only_lends_its_token() {
    let mut rows = state(&[2]);
    let mut again = delivery(1, 2);
    again.token.delivery = 99;
    assert!(!rows.accept(again, now()));
    rows.start(now(), &options(10)).unwrap();
    assert_eq!(rows.done(), [AckToken { delivery: 99, sequence: 1 }]);
    counted(&rows);
    assert_eq!(rows.held(), (0, 0));
}

#[test]
fn rows_that_name_a_vanished_column_are_parked_together_and_the_rest_is_one_insert() {
    let mut rows = TableRows::new(Tenant::default(), Table::new("t").unwrap());
    for sequence in 1..=2 {
        let mut delivery = delivery(sequence, 0);
        let texts = ["{\"a\":1}", "{\"a\":2,\"gone\":1}", "{\"a\":3,\"\\u0067one\":null}", "{\"a\":4}"];
        delivery.block = block(u8::try_from(sequence).unwrap(), &texts);
        rows.accept(delivery, now());
    }
    let options = options(1_000);
    rows.start(now(), &options).unwrap();
    let mut unknown = error(Failure::Rejected, Some(1));
    unknown.columns = Some(std::sync::Arc::new(BTreeSet::from(["a".to_owned()])));
    assert!(!rows.failed(&unknown, now(), Duration::ZERO));
    let Some(Work::Insert(good)) = rows.start(now(), &options) else { panic!("the good rows first") };
    let (encoding, frames) = rows.frames(&good).unwrap();
    assert_eq!(frames.len(), 2, "one frame a block");
    let plain = frame::decode(encoding, &frames.concat(), 1_000).unwrap();
    assert_eq!(plain, b"{\"a\":1}\n{\"a\":4}\n{\"a\":1}\n{\"a\":4}\n");
    assert!(rows.done().is_empty(), "no block is whole yet");
    let Some(Work::Park(bad, refusal)) = rows.start(now(), &options) else { panic!("then the others") };
    assert_eq!((bad.rows(), refusal.column.as_deref()), (4, Some("gone")));
    let letters = rows.letters(&bad, &refusal, Timestamp::default()).unwrap();
    assert_eq!(letters.iter().map(|l| l.id.0.row).collect::<Vec<_>>(), [1, 2, 1, 2]);
    assert_eq!(rows.done().len(), 2);
    assert!(rows.is_empty());
}

#[test]
fn columns_that_are_all_known_leave_the_row_to_isolation() {
    let mut rows = state(&[4]);
    rows.start(now(), &options(10)).unwrap();
    let mut unknown = error(Failure::Rejected, None);
    unknown.columns = Some(std::sync::Arc::new(BTreeSet::from(["n".to_owned()])));
    assert!(!rows.failed(&unknown, now(), Duration::ZERO));
    assert_eq!(rows.start(now(), &options(10)).unwrap().chunk().rows(), 2, "halves");
}

#[test]
fn what_waits_beyond_a_failing_tables_part_is_given_back_newest_first() {
    let (mut rows, options) = (state(&[10, 10, 10, 10]), options(10));
    rows.start(now(), &options).unwrap();
    assert!(rows.failed(&error(Failure::Unavailable, None), now(), Duration::ZERO));
    let (tokens, given, bytes) = rows.give_back(25, usize::MAX);
    assert_eq!((tokens.iter().map(|t| t.sequence).collect::<Vec<_>>(), given), (vec![3, 4], 20));
    assert!(bytes > 0);
    counted(&rows);
    assert_eq!(rows.held().0, 20);
    let (tokens, ..) = rows.give_back(0, 0);
    assert_eq!(tokens.iter().map(|t| t.sequence).collect::<Vec<_>>(), [2], "what is in work stays");
    counted(&rows);
    assert_eq!(rows.due(now(), true, &options), Due::Now);
}
