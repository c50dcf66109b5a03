//! Waiting over the queue in memory, in paused time: there is nothing real underneath.

use super::*;
use bytes::Bytes;
use wh_mq::{Allowance, Budget, DeadLetter, ParkedRow, Progress, Verdict as Settled, sim};
use wh_types::{Block, BlockId, Cursor, Encoding, Epoch, SimClock, Timestamp, frame};

const SECOND: Duration = Duration::from_secs(1);

struct Rig {
    broker: Arc<dyn Broker>,
    clock: Arc<SimClock>,
    stop: Stop,
    waits: Waits,
    tenant: Tenant,
    table: Table,
}

impl Rig {
    fn new() -> Self {
        let clock = Arc::new(SimClock::new(Timestamp::from_millis(1_750_000_000_000)));
        let broker = sim::Broker::new(sim::Options {
            epoch: Epoch(7),
            shards: 1,
            ack_wait: 60 * SECOND,
            duplicate_window: 120 * SECOND,
            default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: 60 * SECOND },
            dead_letter_share: 10,
            clock: clock.clone(),
        });
        let (tenant, table) = (Tenant::default(), Table::new("t").unwrap());
        Self { broker: Arc::new(broker), clock, stop: Stop::new(), waits: Waits::default(), tenant, table }
    }

    async fn wait(&self, rows: &[Stretch], within: Duration) -> Verdicts {
        let Self { broker, clock, stop, waits, tenant, table } = self;
        let waiting = Waiting { broker, clock: &**clock, stop, tenant, table };
        waiting.until_committed(waits, rows, within).await
    }

    async fn mark(&self, number: u64, committed: u64, parked: Vec<ParkedRow>) {
        let (tenant, table) = (self.tenant.clone(), self.table.clone());
        let (epoch, owner) = (Epoch(7), 1);
        let mark =
            Progress { tenant, table, epoch, committed, inserting: committed, parked, named_after: 0, owner, number };
        self.broker.marks().announce(&[mark]).await.unwrap();
    }

    async fn publish(&self) -> Cursor {
        let text = b"{\"n\":1}\n{\"n\":2}\n";
        let block = Block {
            id: BlockId([1; 16]),
            tenant: self.tenant.clone(),
            table: self.table.clone(),
            received: Timestamp::default(),
            rows: 2,
            decoded_bytes: 16,
            encoding: Encoding::Zstd,
            body: frame::encode(Encoding::Zstd, text).unwrap(),
            chain: None,
            trace: None,
        };
        self.broker.publish(&[block]).await.remove(0).unwrap().cursor()
    }
}

fn at(sequence: u64, row: u32) -> RowCursor {
    RowCursor { block: Cursor { epoch: Epoch(7), sequence }, row }
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_when_the_last_block_is_covered() {
    let rig = Rig::new();
    rig.mark(1, 3, Vec::new()).await;
    let began = rig.clock.now();
    let rows = [(at(4, 0), 2), (at(6, 5), 1)];
    let says = async {
        for (number, committed) in [(2, 4), (3, 5)] {
            tokio::time::sleep(SECOND / 10).await;
            rig.mark(number, committed, Vec::new()).await;
        }
        tokio::time::sleep(SECOND / 10).await;
        let parked = vec![ParkedRow { sequence: 4, row: 1, code: "27".into() }];
        rig.mark(4, 6, parked).await;
    };
    let (verdicts, ()) = tokio::join!(rig.wait(&rows, 10 * SECOND), says);
    assert_eq!(began.elapsed(), 3 * (SECOND / 10));
    assert_eq!(verdicts.of(at(4, 0)), Verdict::Committed);
    assert_eq!(verdicts.of(at(4, 1)), Verdict::Parked("27"));
    assert_eq!(verdicts.of(at(6, 5)), Verdict::Committed);
}

#[tokio::test(start_paused = true)]
async fn after_its_time_what_is_known_is_told() {
    let rig = Rig::new();
    rig.publish().await;
    rig.mark(1, 4, Vec::new()).await;
    let began = rig.clock.now();
    let verdicts = rig.wait(&[(at(4, 0), 1), (at(5, 0), 1)], 3 * SECOND).await;
    assert_eq!(began.elapsed(), 3 * SECOND);
    assert_eq!(verdicts.of(at(4, 0)), Verdict::Committed);
    assert_eq!(verdicts.of(at(5, 0)), Verdict::Open);
    // a request without durable rows has nothing to wait for
    rig.wait(&[], 3 * SECOND).await;
    assert_eq!(began.elapsed(), 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_stop_and_too_many_who_wait_end_it_at_once() {
    let mut rig = Rig::new();
    let began = rig.clock.now();
    let stops = async {
        tokio::time::sleep(SECOND).await;
        rig.stop.give();
    };
    let rows = [(at(9, 0), 1)];
    let (verdicts, ()) = tokio::join!(rig.wait(&rows, 30 * SECOND), stops);
    assert_eq!((began.elapsed(), verdicts.of(at(9, 0))), (SECOND, Verdict::Open));
    (rig.stop, rig.waits) = (Stop::new(), Waits(Semaphore::new(0)));
    rig.mark(1, 4, Vec::new()).await;
    let verdicts = rig.wait(&[(at(4, 0), 1), (at(9, 0), 1)], 30 * SECOND).await;
    assert_eq!(began.elapsed(), SECOND);
    assert_eq!((verdicts.of(at(4, 0)), verdicts.of(at(9, 0))), (Verdict::Committed, Verdict::Open));
}

#[tokio::test(start_paused = true)]
async fn without_a_mark_the_queue_and_the_dead_letters_are_asked() {
    let rig = Rig::new();
    let cursor = rig.publish().await;
    let unit = rig.broker.units()[0];
    let mut feed = rig.broker.feed(unit, Budget { rows: 100, bytes: 1 << 20 }).await.unwrap();
    let works = async {
        tokio::time::sleep(4 * SECOND).await;
        let delivery = feed.next().await.unwrap().unwrap();
        let letter = DeadLetter {
            id: DeadLetterId(RowCursor { block: cursor, row: 1 }),
            tenant: rig.tenant.clone(),
            table: rig.table.clone(),
            body: Bytes::from_static(b"{\"n\":2}"),
            reason: "no".into(),
            code: "27".into(),
            column: None,
            attempted: Timestamp::default(),
            received: Timestamp::default(),
            retry_until: None,
        };
        rig.broker.dead_letter(&[letter]).await.remove(0).unwrap();
        feed.settle().settle(&[delivery.token], Settled::Ack).await.remove(0).unwrap();
        // and its worker dies before it says so
    };
    let began = rig.clock.now();
    let rows = [(RowCursor { block: cursor, row: 0 }, 2)];
    let (verdicts, ()) = tokio::join!(rig.wait(&rows, 30 * SECOND), works);
    assert!(began.elapsed() <= 6 * SECOND, "{:?}", began.elapsed());
    assert_eq!(verdicts.of(RowCursor { block: cursor, row: 0 }), Verdict::Committed);
    assert_eq!(verdicts.of(RowCursor { block: cursor, row: 1 }), Verdict::Parked("27"));
}
