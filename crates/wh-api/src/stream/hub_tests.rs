//! Who is followed, for how long, and what that holds.

use super::*;
use crate::stream::{
    block::testing::block,
    frame::Frames,
    view::{Kept, View},
    wish::{Slow, Told},
};
use wh_clickhouse::{Schema, SchemaHandle};
use wh_mq::{Allowance, sim};
use wh_types::{Cursor, Epoch, SeededEntropy, SystemClock, Timestamp};

fn hub(bounds: Bounds) -> Arc<Hub> {
    let seconds = Duration::from_secs;
    let broker = sim::Broker::new(sim::Options {
        epoch: Epoch(1),
        shards: 1,
        ack_wait: seconds(60),
        duplicate_window: seconds(120),
        default_allowance: Allowance { bytes: 1 << 20, table_bytes: 1 << 20, history: seconds(60) },
        dead_letter_share: 10,
        clock: Arc::new(SystemClock),
    });
    let chance = (Arc::new(SeededEntropy::new(1)) as Arc<dyn Entropy>, Arc::new(SystemClock) as Arc<dyn Clock>);
    Arc::new(Hub::new(Arc::new(broker), chance, Arc::new(Meters::new()), Tasks::new(), Stop::new(), bounds))
}

async fn read(hub: &Arc<Hub>) -> Reader {
    let schema = SchemaHandle::fixed(Schema {
        version: String::new(),
        timezone: "UTC".into(),
        settings: Arc::default(),
        tables: [].into(),
        taken_at: Timestamp::default(),
    });
    let wish = Wish { view: Kept::new(View::whole(), "t", &schema), slow: Slow::Gap };
    hub.read(&Tenant::default(), &Table::new("t").unwrap(), Origin::Now, wish).await.unwrap()
}

fn push(hub: &Hub, sequence: u64, text: &str) {
    let cursor = Cursor { epoch: Epoch(1), sequence };
    let followed = hub.followed.lock();
    followed.values().for_each(|channel| channel.push(Item::Block(Arc::new(Shown::new(cursor, block(text))))));
}

fn rows(reader: &mut Reader) -> Frames {
    match reader.take() {
        Some(Told::Rows(frames)) => frames,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_table_is_followed_once_and_only_while_somebody_reads() {
    let hub = hub(Bounds { table: 1 << 20, all: 200 << 10, replays: 1 });
    for _ in 0..3 {
        let mut readers = futures::future::join_all((0..20).map(|_| read(&hub))).await;
        assert_eq!((hub.followed(), hub.tasks.len()), (1, 1));
        let text = format!("{{\"note\":\"{}\"}}\n", "x".repeat(10 << 10));
        for n in 1..=30 {
            push(&hub, n, &text);
            if n == 1 {
                assert_eq!(readers[0].take(), Some(Told::Ready));
            }
            rows(&mut readers[0]);
        }
        assert!(hub.held.bytes() <= 220 << 10, "{}: the bound of all holds for one too", hub.held.bytes());
        drop(readers);
        while !hub.tasks.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!((hub.followed(), hub.held.bytes()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_is_made_into_events_once_for_all_that_have_the_same_view() {
    let hub = hub(Bounds { table: 1 << 20, all: 1 << 20, replays: 1 });
    let mut readers = futures::future::join_all((0..3).map(|_| read(&hub))).await;
    push(&hub, 1, "{\"a\":1}\n{\"a\":2}\n");
    let all: Vec<_> = readers
        .iter_mut()
        .map(|reader| {
            assert_eq!(reader.take(), Some(Told::Ready));
            rows(reader)
        })
        .collect();
    assert_eq!(all[0].count, 2);
    assert!(all.iter().all(|frames| frames.bytes.as_ptr() == all[0].bytes.as_ptr()), "the same bytes");
}
