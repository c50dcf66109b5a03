//! Order: kept through tries of one process and handed on at a stop; where it is not promised, nothing is lost.

use super::*;

fn small() -> Options {
    Options { batch_rows: 10, batch_max_rows: 10, ..Options::default() }
}

impl Bench {
    /// Another worker over the same queue, after the one before was stopped.
    fn again(&mut self, options: Options) {
        (self.stop, self.tasks) = (Stop::new(), Tasks::new());
        let clock = Arc::new(SimClock::new(Timestamp::from_millis(1_750_000_000_000)));
        self.run(options, Arc::new(self.sink.clone()), clock);
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_failure_keeps_the_order_of_a_table() {
    let mut bench = Bench::new(small());
    let kinds = [Failure::Unavailable, Failure::Denied, Failure::Unknown, Failure::NoTable];
    let steps = (0..40).map(|n| if n % 3 == 0 { Script::LoseAnswer } else { Script::Fail(kinds[n % 4]) });
    bench.sink.script(steps);
    for block in 0..100 {
        bench.publish("t", block * 10, block * 10 + 10).await;
    }
    bench.sink.wait_for(1_000).await;
    assert_eq!(bench.stopped().await, 0);
    assert_eq!(bench.rows("t"), numbers(0..1_000), "each once and in order");
    assert!(bench.letters().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_stop_gives_back_is_inserted_in_order_by_the_next_worker() {
    let mut bench = Bench::new(small());
    for name in ["t", "u"] {
        for block in 0..5 {
            bench.publish(name, block * 10, block * 10 + 10).await;
        }
    }
    bench.sink.wait_for(100).await;
    bench.sink.fail_all(Some(Failure::Unavailable));
    for name in ["t", "u"] {
        for block in 5..20 {
            bench.publish(name, block * 10, block * 10 + 10).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bench.stopped().await, 300);
    bench.sink.fail_all(None);
    bench.again(small());
    bench.sink.wait_for(400).await;
    assert_eq!(bench.stopped().await, 0);
    for name in ["t", "u"] {
        assert_eq!(bench.rows(name), numbers(0..200), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_insert_given_up_in_doubt_may_double_and_is_never_lost() {
    let mut bench = Bench::new(small());
    bench.publish("t", 0, 10).await;
    bench.sink.wait_for(10).await;
    // stored, and nobody hears of it until the worker's time is over
    bench.sink.script(std::iter::repeat_n(Script::LoseAnswer, 1_000));
    bench.publish("t", 10, 20).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.stopped().await, 10, "it is not known to be stored");
    bench.sink.clear_script();
    bench.publish("t", 20, 30).await;
    bench.again(Options { batch_rows: 20, batch_max_rows: 20, ..Options::default() });
    bench.sink.wait_for(40).await;
    assert_eq!(bench.stopped().await, 0);
    let expected = [numbers(0..20), numbers(10..30)].concat();
    assert_eq!(bench.rows("t"), expected, "the batch of another worker is another, so its token is");
}

#[tokio::test(start_paused = true)]
async fn several_inserts_at_once_lose_and_double_nothing() {
    let mut bench = Bench::new(Options { table_inserts: 4, ..small() });
    bench.sink.script((0..60).map(|n| if n % 2 == 0 { Script::LoseAnswer } else { Script::Fail(Failure::Unknown) }));
    bench.sink.refuse(Some("000042"));
    for block in 0..100 {
        bench.publish("t", block * 10, block * 10 + 10).await;
    }
    bench.sink.wait_for(999).await;
    assert_eq!(bench.stopped().await, 0);
    let mut rows = bench.rows("t");
    rows.sort();
    let mut expected = numbers(0..1_000);
    expected.remove(42);
    assert_eq!(rows, expected);
    assert_eq!(bench.letters().await.len(), 1);
}
