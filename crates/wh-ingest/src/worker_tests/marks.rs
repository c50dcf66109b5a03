//! What a reader is told while a worker inserts: never more than is done, in the end all of it, over failures, refused
//! rows, handovers and restarts.

use super::*;
use wh_mq::{Budget, MOST_PARKED, Progress, Reader, Verdict};

fn watch(bench: &Bench, name: &str) -> Reader {
    bench.broker.marks().watch(&Tenant::default(), &table(name)).unwrap()
}

/// Reads marks until the table is committed up to a block; each is checked by `check`.
async fn until_committed(reader: &mut Reader, sequence: u64, mut check: impl FnMut(&Progress)) -> Arc<Progress> {
    let mut before = 0;
    loop {
        let known = reader.next().await.unwrap();
        assert!(known.committed >= before && known.inserting >= known.committed, "{known:?}");
        before = known.committed;
        check(&known);
        if known.committed >= sequence {
            return known;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_said_to_be_committed_is_in_the_sink() {
    let mut bench = Bench::new(Options { batch_rows: 20, ..Options::default() });
    let failures = [Failure::Unavailable, Failure::Unknown, Failure::Unavailable];
    bench.sink.script(failures.map(Script::Fail));
    let mut reader = watch(&bench, "t");
    for block in 0..30 {
        bench.publish("t", block * 10, block * 10 + 10).await;
    }
    let (sink, t) = (bench.sink.clone(), table("t"));
    // the queue counts from 1, and this is its only table
    let known = until_committed(&mut reader, 30, |known| {
        let stored = sink.rows(&t).len();
        assert!(stored as u64 >= known.committed * 10, "{stored} rows, {known:?}");
    })
    .await;
    assert_eq!((known.committed, known.inserting), (30, 30));
    assert_eq!(bench.stopped().await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_insert_is_announced_before_it_begins_and_its_failure_is_no_end_of_it() {
    let mut bench = Bench::new(Options { batch_rows: 10, ..Options::default() });
    bench.sink.script([Script::Fail(Failure::Unknown)]);
    let mut reader = watch(&bench, "t");
    bench.publish("t", 0, 10).await;
    // it stands for as long as the insert is not repeated
    let first = reader.next().await.unwrap();
    assert_eq!((first.committed, first.inserting), (0, 1));
    let known = until_committed(&mut reader, 1, |known| assert_eq!(known.inserting, 1)).await;
    assert_eq!(known.committed, 1);
    assert_eq!(bench.stopped().await, 0);
}

#[tokio::test(start_paused = true)]
async fn parked_rows_are_named_with_their_code() {
    let mut bench = Bench::new(Options { batch_rows: 10, ..Options::default() });
    bench.sink.refuse(Some("000003"));
    let mut reader = watch(&bench, "t");
    // the worker is there before the rows are: it knows of all that is parked
    bench.publish("other", 0, 1).await;
    bench.sink.wait_for(1).await;
    bench.publish("t", 0, 5).await;
    bench.publish("t", 5, 10).await;
    let known = until_committed(&mut reader, 3, |_| {}).await;
    let letters = bench.letters().await;
    assert_eq!(letters.len(), 1);
    let (id, code) = (letters[0].id.0, letters[0].code.as_str());
    assert_eq!((id.block.sequence, id.row), (2, 3));
    let named: Vec<_> = known.parked.iter().map(|row| (row.sequence, row.row, &*row.code)).collect();
    assert_eq!(named, [(2, 3, code)]);
    assert!(known.named_after < 2 && known.parked.len() < MOST_PARKED);
    assert_eq!(bench.stopped().await, 0);
}

#[tokio::test(start_paused = true)]
async fn marks_that_are_lost_are_said_again_and_hold_up_nothing() {
    let mut bench = Bench::new(Options { batch_rows: 10, ..Options::default() });
    let mut reader = watch(&bench, "t");
    // before the insert, after it, and the first time it is said once more; the first one hangs as well
    bench.faults.next(Op::Announce, Fault::Delay(Duration::from_secs(600)));
    bench.faults.next(Op::Announce, Fault::Fail(Kind::Unavailable));
    bench.publish("t", 0, 10).await;
    let before = clock().now();
    bench.sink.wait_for(10).await;
    assert!(before.elapsed() < Duration::from_secs(10), "an insert does not wait for long");
    until_committed(&mut reader, 1, |_| {}).await;
    assert_eq!(bench.stopped().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_over_says_where_the_queue_is() {
    // an owner before took three blocks, settled the second and was gone
    let mut bench = Bench::without_worker(&Options::default(), Arc::new(Memory::new()));
    for block in 0..3 {
        bench.publish("t", block * 10, block * 10 + 10).await;
    }
    let unit = bench.broker.unit_of(&Tenant::default(), &table("t"));
    let mut feed = bench.broker.feed(unit, Budget { rows: 1_000, bytes: 1 << 20 }).await.unwrap();
    for _ in 0..3 {
        let delivery = feed.next().await.unwrap().unwrap();
        if delivery.cursor.sequence == 2 {
            feed.settle().settle(&[delivery.token], Verdict::Ack).await;
        }
    }
    drop(feed);
    let mut reader = watch(&bench, "t");
    // so that what is said first stands for a while
    bench.sink.script([Script::Fail(Failure::Unavailable)]);
    let sinks = Arc::new(bench.sink.clone());
    bench.run(Options { batch_rows: 10, ..Options::default() }, sinks, clock());
    let first = reader.next().await.unwrap();
    assert_eq!((first.committed, first.inserting), (0, 3), "the owner before may be inserting all of it");
    let known = until_committed(&mut reader, 3, |_| {}).await;
    assert_eq!((known.inserting, known.named_after), (3, 3), "what was parked before is not known");
    assert_eq!(bench.stopped().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_table_at_rest_says_nothing() {
    let mut bench = Bench::new(Options { batch_rows: 10, ..Options::default() });
    let mut reader = watch(&bench, "t");
    bench.publish("t", 0, 10).await;
    until_committed(&mut reader, 1, |_| {}).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    // none of these calls comes
    bench.faults.next(Op::Announce, Fault::Fail(Kind::Unavailable));
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!bench.faults.is_done(), "something was announced");
    assert_eq!(bench.stopped().await, 0);
}
