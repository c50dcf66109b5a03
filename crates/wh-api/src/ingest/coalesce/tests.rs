//! The coalescer's task: when there is one, and what outlives it.

use super::*;
use crate::budget::Budget;
use wh_mq::{Allowance, Feed, sim};
use wh_types::{Epoch, SeededEntropy, SystemClock, Timestamp};

const IDLE: Duration = Duration::from_secs(10);

fn queue() -> sim::Broker {
    let seconds = Duration::from_secs;
    sim::Broker::new(sim::Options {
        epoch: Epoch(1),
        shards: 1,
        ack_wait: seconds(600),
        duplicate_window: seconds(120),
        default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: seconds(60) },
        dead_letter_share: 10,
        clock: Arc::new(SystemClock),
    })
}

fn coalescer(broker: &sim::Broker) -> Arc<Coalescer> {
    let publishing = Publishing {
        broker: Arc::new(broker.clone()),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SeededEntropy::new(1)),
        tasks: Tasks::new(),
        stop: Stop::new(),
        process: "p".into(),
        options: PublishOptions {
            encoding: Encoding::Zstd,
            publish_timeout: Duration::from_secs(5),
            table_bytes: 1 << 20,
            idle: IDLE,
            probe_for: Duration::from_secs(60),
        },
        meters: Arc::new(Meters::new()),
        probes: Publishing::probes(),
    };
    Arc::new(Coalescer::new(Tenant::default(), Table::new("t").unwrap(), Arc::new(publishing)))
}

async fn hand_over(coalescer: &Arc<Coalescer>, rows: usize) -> Vec<Pending> {
    let held = Budget::new(1 << 20, Duration::ZERO).take(1).await.map(Arc::new).unwrap();
    let stamp = Stamp { received: Timestamp::from_millis(1), trace: None };
    coalescer.hand_over(std::iter::repeat_n(&b"{}"[..], rows), &stamp, &held).unwrap()
}

async fn stored(pending: Vec<Pending>) {
    for part in pending {
        assert!(matches!(part.outcome.await, Ok(Outcome::Stored)));
    }
}

async fn chains(broker: &sim::Broker) -> Vec<u64> {
    let unsettled = broker.status().await.unwrap().tenants[&Tenant::default()].unsettled_blocks;
    let budget = wh_mq::Budget { rows: 1 << 20, bytes: 1 << 30 };
    let mut feed: Box<dyn Feed> = broker.feed(broker.units()[0], budget).await.unwrap();
    let mut chains = Vec::new();
    for _ in 0..unsettled {
        chains.push(feed.next().await.unwrap().unwrap().block.chain.unwrap().n);
    }
    chains
}

#[tokio::test(start_paused = true)]
async fn an_idle_table_has_no_task_and_its_chain_goes_on() {
    let broker = queue();
    let coalescer = coalescer(&broker);
    let tasks = coalescer.publishing.tasks.clone();
    for _ in 0..3 {
        assert!(tasks.is_empty());
        stored(hand_over(&coalescer, 1).await).await;
        tokio::time::sleep(IDLE / 2).await;
        stored(hand_over(&coalescer, 1).await).await;
        assert_eq!(tasks.len(), 1, "one task while there are rows now and then");
        tokio::time::sleep(IDLE * 9 / 10).await;
        assert_eq!(tasks.len(), 1, "its time counts from the last rows");
        tokio::time::sleep(IDLE).await;
    }
    assert_eq!(chains(&broker).await, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test(start_paused = true)]
async fn rows_handed_over_after_the_stop_are_published_and_nothing_stays() {
    let broker = queue();
    let coalescer = coalescer(&broker);
    let Publishing { tasks, stop, .. } = &*coalescer.publishing;
    stored(hand_over(&coalescer, 1).await).await;
    stop.give();
    tasks.wait().await;
    let pending = hand_over(&coalescer, 1_200).await;
    assert_eq!(pending.iter().map(|part| part.rows).collect::<Vec<_>>(), [500, 500, 200]);
    stored(pending).await;
    tasks.wait().await;
    assert_eq!(chains(&broker).await, [1, 2, 3, 4]);
}
