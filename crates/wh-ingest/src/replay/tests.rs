//! Held rows over the queue in memory, in paused time: a column goes and comes back.

use crate::{Failure, Insert, Memory, Options, Parts, Refusal, Sink, SinkError, Worker};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use wh_mq::{
    Allowance, Broker, DeadLetter, DeadLetterQuery, Kind,
    faulty::{Fault, Faulty, Op, Script},
    sim,
};
use wh_types::{
    Block, BlockId, Encoding, Epoch, SeededEntropy, SimClock, Stop, Table, Tasks, Tenant, Timestamp, frame,
};

/// A sink in memory whose table has columns that come and go.
#[derive(Debug)]
struct Columned {
    inner: Memory,
    columns: Mutex<BTreeSet<String>>,
}

impl Columned {
    fn set(&self, names: &[&str]) {
        *self.columns.lock() = names.iter().map(|name| (*name).to_owned()).collect();
    }
}

#[async_trait]
impl Sink for Columned {
    fn pool(&self) -> &str {
        self.inner.pool()
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), SinkError> {
        let columns = Arc::new(self.columns.lock().clone());
        let plain = frame::decode(insert.encoding, &insert.frames.concat(), 1 << 20).unwrap();
        let unknown = plain.split(|byte| *byte == b'\n').find_map(|row| crate::rows::unknown_key(row, &columns));
        let Some(column) = unknown else { return self.inner.insert(insert).await };
        Err(SinkError {
            failure: Failure::Rejected,
            refusal: Refusal { code: "117".into(), reason: format!("no column {column}"), column: None },
            splittable: false,
            table_scoped: true,
            row: None,
            columns: Some(columns),
            source: None,
        })
    }

    async fn columns(&self, _: &Table) -> Option<Arc<BTreeSet<String>>> {
        Some(Arc::new(self.columns.lock().clone()))
    }
}

struct Bench {
    broker: Arc<dyn Broker>,
    script: Script,
    sink: Arc<Columned>,
    stop: Stop,
    tasks: Tasks,
    ids: u8,
}

fn table() -> Table {
    Table::new("t").unwrap()
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(SimClock::new(Timestamp::from_millis(1_750_000_000_000)));
        let queue = sim::Broker::new(sim::Options {
            epoch: Epoch(7),
            shards: 4,
            ack_wait: Duration::from_secs(60),
            duplicate_window: Duration::from_secs(120),
            default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(60) },
            dead_letter_share: 10,
            clock: clock.clone(),
        });
        let script = Script::new();
        let broker: Arc<dyn Broker> = Arc::new(Faulty::new(Arc::new(queue), script.clone()));
        let sink = Arc::new(Columned { inner: Memory::new(), columns: Mutex::default() });
        sink.set(&["a", "b"]);
        let parts = Parts {
            broker: broker.clone(),
            sinks: Arc::new(sink.clone()),
            clock,
            entropy: Arc::new(SeededEntropy::new(1)),
        };
        let (stop, tasks) = (Stop::new(), Tasks::new());
        let (worker, given) = (Worker::new(parts, Options::default()), stop.clone());
        tasks.spawn("worker", async move { worker.run(given).await.unwrap() });
        Self { broker, script, sink, stop, tasks, ids: 0 }
    }

    async fn publish(&mut self, rows: &[&str]) {
        let plain: String = rows.iter().map(|row| format!("{row}\n")).collect();
        self.ids += 1;
        let block = Block {
            id: BlockId([self.ids; 16]),
            tenant: Tenant::default(),
            table: table(),
            received: Timestamp::from_millis(1),
            rows: u32::try_from(rows.len()).unwrap(),
            decoded_bytes: u32::try_from(plain.len()).unwrap(),
            encoding: Encoding::Zstd,
            body: frame::encode(Encoding::Zstd, plain.as_bytes()).unwrap(),
            chain: None,
            trace: None,
        };
        self.broker.publish(&[block]).await.remove(0).unwrap();
    }

    async fn letters(&self) -> Vec<DeadLetter> {
        let query = DeadLetterQuery { limit: 1_000, ..DeadLetterQuery::default() };
        self.broker.dead_letters(&Tenant::default(), &query).await.unwrap().letters
    }

    async fn wait_for_letters(&self, count: usize) {
        while self.letters().await.len() != count {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn rows(&self) -> Vec<String> {
        let mut rows = self.sink.inner.rows(&table());
        rows.sort();
        rows
    }

    async fn end(self) {
        self.stop.give();
        self.tasks.wait().await;
    }
}

const A: &str = r#"{"a":1}"#;
const B: &str = r#"{"a":2,"b":2}"#;
const C: &str = r#"{"a":3,"c":3}"#;

#[tokio::test(start_paused = true)]
async fn rows_whose_column_comes_back_are_stored_by_themselves_once() {
    let mut bench = Bench::new();
    bench.sink.set(&["a"]);
    bench.publish(&[A, B, C]).await;
    bench.sink.inner.wait_for(1).await;
    bench.wait_for_letters(2).await;
    assert_eq!(bench.rows(), [A]);
    // somebody else's column does not help
    bench.sink.set(&["a", "z"]);
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!((bench.rows().len(), bench.letters().await.len()), (1, 2));
    bench.sink.set(&["a", "b"]);
    bench.sink.inner.wait_for(2).await;
    bench.wait_for_letters(1).await;
    assert_eq!(bench.rows(), [A, B], "the row with another column that is gone waits on");
    bench.sink.set(&["a", "b", "c"]);
    bench.sink.inner.wait_for(3).await;
    bench.wait_for_letters(0).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(bench.rows(), [A, B, C]);
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn when_their_time_is_over_they_stay() {
    let mut bench = Bench::new();
    bench.sink.set(&["a"]);
    bench.publish(&[B]).await;
    bench.wait_for_letters(1).await;
    let until = bench.letters().await[0].retry_until.unwrap();
    assert_eq!(until.since(bench.letters().await[0].attempted), Options::default().missing_table_hold);
    tokio::time::sleep(Options::default().missing_table_hold).await;
    bench.sink.set(&["a", "b"]);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!((bench.rows().len(), bench.letters().await.len()), (0, 1));
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_delete_nothing_is_published() {
    let mut bench = Bench::new();
    bench.sink.set(&["a"]);
    bench.publish(&[B]).await;
    bench.wait_for_letters(1).await;
    bench.script.next(Op::Purge, Fault::Fail(Kind::Unsupported("delete dead letters: its user has no right to")));
    bench.sink.set(&["a", "b"]);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(bench.script.is_done());
    assert_eq!((bench.rows().len(), bench.letters().await.len()), (0, 1));
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_could_not_be_removed_is_removed_later_and_its_row_is_stored_once() {
    let mut bench = Bench::new();
    bench.sink.set(&["a"]);
    bench.publish(&[B]).await;
    bench.wait_for_letters(1).await;
    bench.script.next(Op::Publish, Fault::LoseAnswer);
    bench.script.spare(Op::Purge, 2);
    bench.script.next(Op::Purge, Fault::Fail(Kind::Unavailable));
    bench.sink.set(&["a", "b"]);
    bench.sink.inner.wait_for(1).await;
    bench.wait_for_letters(0).await;
    assert!(bench.script.is_done());
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(bench.rows(), [B]);
    bench.end().await;
}
