//! The worker over the queue in memory and the sink in memory, in paused time.

mod backing;
mod marks;
mod memory;
mod order;

use crate::{Failure, Memory, Options, Parts, Script, Sinks, Worker};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use wh_mq::{
    Allowance, Broker, DeadLetterQuery, Kind,
    faulty::{self, Fault, Faulty, Op},
    sim,
};
use wh_types::{
    Block, BlockId, Class, Clock, Encoding, Epoch, SeededEntropy, SimClock, Stop, SystemClock, Table, Tasks, Tenant,
    Timestamp, frame,
};

struct Bench {
    broker: sim::Broker,
    sink: Arc<Memory>,
    stop: Stop,
    tasks: Tasks,
    next_id: u64,
    /// Who publishes.
    tenant: Tenant,
    /// What goes wrong between worker and queue.
    faults: faulty::Script,
}

fn table(name: &str) -> Table {
    Table::new(name).unwrap()
}

fn clock() -> Arc<SimClock> {
    Arc::new(SimClock::new(Timestamp::from_millis(1_750_000_000_000)))
}

impl Bench {
    fn new(options: Options) -> Self {
        let sink = Arc::new(Memory::new());
        Self::over(options, sink.clone(), Arc::new(sink))
    }

    /// Over sinks of the test's own; `sink` is the one it looks at.
    fn over(options: Options, sink: Arc<Memory>, sinks: Arc<dyn Sinks>) -> Self {
        let mut bench = Self::without_worker(&options, sink);
        bench.run(options, sinks, clock());
        bench
    }

    /// Nobody works yet.
    fn without_worker(options: &Options, sink: Arc<Memory>) -> Self {
        let clock = clock();
        let broker = sim::Broker::new(sim::Options {
            epoch: Epoch(7),
            shards: 4,
            ack_wait: options.ack_wait,
            duplicate_window: Duration::from_secs(120),
            default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(60) },
            dead_letter_share: 10,
            clock: clock.clone(),
        });
        let (stop, tasks, tenant) = (Stop::new(), Tasks::new(), Tenant::default());
        Self { broker, sink, stop, tasks, next_id: 0, tenant, faults: faulty::Script::new() }
    }

    fn run(&mut self, options: Options, sinks: Arc<dyn Sinks>, clock: Arc<SimClock>) {
        let broker = Arc::new(Faulty::new(Arc::new(self.broker.clone()), self.faults.clone()));
        let parts = Parts { broker, sinks, clock, entropy: Arc::new(SeededEntropy::new(1)) };
        let (worker, stop) = (Worker::new(parts, options), self.stop.clone());
        self.tasks.spawn("worker", async move { worker.run(stop).await.unwrap() });
    }

    /// Publishes rows `from..to` of a table as one block.
    async fn publish(&mut self, name: &str, from: u32, to: u32) {
        let plain = (from..to).map(|n| format!("{{\"n\":{n:06}}}\n")).collect::<String>();
        let body = frame::encode(Encoding::Zstd, plain.as_bytes()).unwrap();
        self.publish_body(name, to - from, plain.len(), body).await;
    }

    async fn publish_body(&mut self, name: &str, rows: u32, decoded: usize, body: Bytes) {
        self.next_id += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.next_id.to_be_bytes());
        let block = Block {
            id: BlockId(id),
            tenant: self.tenant.clone(),
            table: table(name),
            received: Timestamp::from_millis(1_750_000_000_000),
            rows,
            decoded_bytes: u32::try_from(decoded).unwrap(),
            encoding: Encoding::Zstd,
            body,
            chain: None,
            trace: None,
        };
        for outcome in self.broker.publish(&[block]).await {
            outcome.unwrap();
        }
    }

    fn rows(&self, name: &str) -> Vec<String> {
        self.sink.rows(&table(name))
    }

    /// Stops the worker; gives how many rows the queue still holds.
    async fn stopped(&self) -> u64 {
        self.stop.give();
        self.tasks.wait().await;
        let status = self.broker.status().await.unwrap();
        status.tenants.values().filter_map(|tenant| tenant.unsettled_rows).sum()
    }

    async fn letters(&self) -> Vec<wh_mq::DeadLetter> {
        let query = DeadLetterQuery { limit: 1_000, ..DeadLetterQuery::default() };
        self.broker.dead_letters(&Tenant::default(), &query).await.unwrap().letters
    }
}

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| format!("{{\"n\":{n:06}}}")).collect()
}

#[tokio::test(start_paused = true)]
async fn rows_of_many_tables_arrive_in_order_and_are_settled() {
    let mut bench = Bench::new(Options { batch_rows: 50, ..Options::default() });
    for block in 0..20 {
        for name in ["a", "b", "c", "d", "e"] {
            bench.publish(name, block * 10, block * 10 + 10).await;
        }
    }
    bench.sink.wait_for(1_000).await;
    assert_eq!(bench.stopped().await, 0);
    for name in ["a", "b", "c", "d", "e"] {
        assert_eq!(bench.rows(name), numbers(0..200), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_parks_nothing_and_keeps_order() {
    let mut bench = Bench::new(Options { batch_rows: 10, ..Options::default() });
    let failures = [Failure::Unavailable, Failure::Unknown, Failure::Denied, Failure::Unavailable];
    bench.sink.script(failures.map(Script::Fail));
    for block in 0..10 {
        bench.publish("t", block * 10, block * 10 + 10).await;
    }
    bench.sink.wait_for(100).await;
    assert_eq!(bench.stopped().await, 0);
    assert_eq!(bench.rows("t"), numbers(0..100));
    assert!(bench.letters().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_repeated_under_its_token_and_stores_once() {
    let mut bench = Bench::new(Options { batch_rows: 10, ..Options::default() });
    bench.sink.script([Script::LoseAnswer, Script::LoseAnswer]);
    bench.publish("t", 0, 10).await;
    bench.publish("t", 10, 20).await;
    bench.sink.wait_for(20).await;
    assert_eq!(bench.stopped().await, 0);
    assert_eq!(bench.rows("t"), numbers(0..20));
}

#[tokio::test(start_paused = true)]
async fn a_refused_row_is_parked_with_its_reason_and_the_rest_is_stored() {
    let mut bench = Bench::new(Options::default());
    bench.sink.refuse(Some("000042"));
    bench.publish("t", 0, 100).await;
    bench.sink.wait_for(99).await;
    assert_eq!(bench.stopped().await, 0);
    let letters = bench.letters().await;
    assert_eq!(letters.len(), 1);
    assert_eq!((&letters[0].body[..], letters[0].id.0.row), (&b"{\"n\":000042}"[..], 42));
    assert!(letters[0].reason.contains("000042"));
    assert_eq!(bench.rows("t").len(), 99);
    assert!(bench.rows("t").is_sorted());
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_block_is_parked_whole() {
    let mut bench = Bench::new(Options::default());
    bench.publish("t", 0, 10).await;
    bench.publish_body("t", 3, 30, Bytes::from_static(b"no frame")).await;
    bench.publish("t", 10, 20).await;
    bench.sink.wait_for(20).await;
    assert_eq!(bench.stopped().await, 0);
    let letters = bench.letters().await;
    assert_eq!((letters.len(), letters[0].code.as_str()), (1, "block.unreadable"));
    assert_eq!(bench.rows("t"), numbers(0..20));
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_block_waits_while_dead_letters_cannot_be_written_and_is_parked_once() {
    let mut bench = Bench::new(Options::default());
    for fault in [Fault::Fail(Kind::Unavailable), Fault::LoseAnswer, Fault::Fail(Kind::Unavailable)] {
        bench.faults.next(Op::Park, fault);
    }
    bench.publish_body("t", 3, 30, Bytes::from_static(b"no frame")).await;
    bench.publish("t", 0, 10).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = bench.broker.status().await.unwrap();
    let unsettled: u64 = status.tenants.values().filter_map(|tenant| tenant.unsettled_rows).sum();
    assert!(unsettled >= 3, "not acked before it is parked");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(bench.faults.is_done());
    assert_eq!(bench.letters().await.len(), 1);
    assert_eq!(bench.stopped().await, 0);
    assert_eq!(bench.rows("t"), numbers(0..10));
}

#[tokio::test(start_paused = true)]
async fn with_dead_letters_off_a_refused_row_is_dropped_and_stops_nothing() {
    let mut bench = Bench::new(Options { dead_letters: false, ..Options::default() });
    bench.sink.refuse(Some("000042"));
    bench.publish("t", 0, 100).await;
    for name in ["u", "v", "w"] {
        bench.publish(name, 100, 600).await;
    }
    bench.sink.wait_for(99 + 1_500).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.stopped().await, 0, "the lost row is settled like the others");
    assert!(bench.letters().await.is_empty());
    assert_eq!(bench.rows("t").len(), 99);
}

#[tokio::test(start_paused = true)]
async fn a_missing_table_stops_no_other_and_its_rows_are_parked_when_its_time_is_over() {
    let mut bench = Bench::new(Options { batch_rows: 10, ..Options::default() });
    // "gone" and "here" may share a unit: the failing table's gate is its own
    bench.sink.fail_table(Some((table("gone"), Failure::NoTable)));
    bench.publish("gone", 0, 10).await;
    bench.publish("here", 0, 10).await;
    bench.sink.wait_for(10).await;
    assert_eq!(bench.rows("here"), numbers(0..10));
    assert!(bench.letters().await.is_empty(), "held, not parked");
    tokio::time::sleep(Duration::from_secs(700)).await;
    assert_eq!(bench.letters().await.len(), 10);
    assert_eq!(bench.stopped().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_returns_gets_its_rows() {
    let mut bench = Bench::new(Options { batch_rows: 10, ..Options::default() });
    bench.sink.fail_table(Some((table("t"), Failure::NoTable)));
    bench.publish("t", 0, 10).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    bench.sink.fail_table(None);
    bench.sink.wait_for(10).await;
    assert_eq!(bench.stopped().await, 0);
    assert_eq!(bench.rows("t"), numbers(0..10));
}

#[tokio::test(start_paused = true)]
async fn a_stop_flushes_what_waits_and_is_quick_while_the_sink_is_away() {
    let mut bench = Bench::new(Options { batch_wait: Duration::from_secs(3_600), ..Options::default() });
    bench.publish("t", 0, 10).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(bench.rows("t").is_empty(), "it waits for more");
    assert_eq!(bench.stopped().await, 0, "a stop inserts what waits");
    assert_eq!(bench.rows("t"), numbers(0..10));

    let mut bench = Bench::new(Options { batch_rows: 10, ..Options::default() });
    bench.sink.script(std::iter::repeat_n(Script::Fail(Failure::Unavailable), 1_000));
    bench.publish("t", 0, 10).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let began = SystemClock.now();
    assert_eq!(bench.stopped().await, 10, "given back to the queue");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn held_blocks_are_kept_alive_through_a_long_outage() {
    let options = Options { batch_rows: 10, ack_wait: Duration::from_secs(6), ..Options::default() };
    let mut bench = Bench::new(options);
    bench.sink.script(std::iter::repeat_n(Script::Fail(Failure::Unavailable), 20));
    for block in 0..3 {
        bench.publish("t", block * 10, block * 10 + 10).await;
    }
    bench.sink.wait_for(30).await;
    assert_eq!(bench.stopped().await, 0);
    assert_eq!(bench.rows("t"), numbers(0..30), "no block was taken from us and came again behind the others");
}

#[tokio::test(start_paused = true)]
async fn a_backlog_larger_than_the_share_drains_by_flushing_at_once() {
    // two batches of 10 rows are the share; nothing ever fills a batch of 10 for each of the tables
    let options =
        Options { batch_rows: 250, held_rows: 0, batch_wait: Duration::from_secs(3_600), ..Options::default() };
    let mut bench = Bench::new(options);
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        bench.publish(name, 0, 249).await;
    }
    // time does not move for the wait: only the share can make them flush
    let drained = tokio::time::timeout(Duration::from_secs(3_000), bench.sink.wait_for(4 * 249)).await;
    assert!(drained.is_ok(), "units at their share must flush");
    assert_eq!(bench.stopped().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_ends_the_worker_without_an_error() {
    let bench = Bench::new(Options::default());
    bench.broker.close().await;
    bench.stop.give();
    bench.tasks.wait().await;
    let refused = bench.broker.feed(bench.broker.units()[0], wh_mq::Budget { rows: 1, bytes: 1 }).await;
    assert_eq!(refused.unwrap_err().class(), Class::Stopping);
}

#[tokio::test(start_paused = true)]
async fn a_table_that_fails_alone_holds_a_quarter_and_its_unit_flows() {
    let options = Options { batch_rows: 100, held_rows: 0, ..Options::default() };
    let mut bench = Bench::new(options);
    let bad = table("bad");
    let unit = bench.broker.unit_of(&Tenant::default(), &bad);
    let neighbour =
        (0..).map(|n| format!("good{n}")).find(|name| bench.broker.unit_of(&Tenant::default(), &table(name)) == unit);
    let neighbour = neighbour.unwrap();
    bench.sink.fail_table(Some((bad.clone(), Failure::NoTable)));
    // far more than the unit's share of 200 rows
    for block in 0..20 {
        bench.publish("bad", block * 50, block * 50 + 50).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    for block in 0..10 {
        bench.publish(&neighbour, block * 10, block * 10 + 10).await;
    }
    let flowed = tokio::time::timeout(Duration::from_secs(60), bench.sink.wait_for(100)).await;
    assert!(flowed.is_ok(), "{} rows of the neighbour arrived", bench.rows(&neighbour).len());
    bench.sink.fail_table(None);
    bench.sink.wait_for(1_100).await;
    assert_eq!(bench.stopped().await, 0);
    let mut rows = bench.rows("bad");
    rows.sort();
    assert_eq!(rows, numbers(0..1_000), "nothing of the failing table is lost");
}
