//! The coalescer's task: when there is one, and what outlives it.

use super::*;
use crate::budget::Budget;
use wh_mq::{
    Allowance, Feed,
    faulty::{Fault, Faulty, Op, Script},
    sim,
};
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
    over(Arc::new(broker.clone()))
}

fn over(broker: Arc<dyn Broker>) -> Arc<Coalescer> {
    let publishing = Publishing {
        broker,
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
        claims: None,
    };
    Arc::new(Coalescer::new(Tenant::default(), Table::new("t").unwrap(), None, Arc::new(publishing)))
}

async fn hand_over(coalescer: &Arc<Coalescer>, rows: usize) -> Vec<Pending> {
    let held = Budget::new(1 << 20, Duration::ZERO).take(1).await.map(Arc::new).unwrap();
    let stamp = Stamp { received: Timestamp::from_millis(1), trace: None };
    let from = Sender { stamp: &stamp, held: &held, once: None };
    let row = Fresh { text: b"{}", id: None, index: 0 };
    coalescer.hand_over(std::iter::repeat_n(row, rows), &from).unwrap()
}

async fn stored(pending: Vec<Pending>) {
    for part in pending {
        assert!(matches!(part.outcome.await, Ok(Fates::All(Outcome::Stored(_)))));
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

/// Hands a row over to a queue that tries again by itself for 15 s. Gives the outcome, when it came, and the blocks stored.
async fn patient(fault: Fault) -> (String, u64, u64) {
    let (broker, script) = (queue(), Script::new());
    script.next(Op::Publish, fault);
    let faulty = Faulty::new(Arc::new(broker.clone()), script.clone());
    let coalescer = over(Arc::new(faulty.with_publish_budget(Duration::from_secs(15))));
    let (clock, start) = (SystemClock, SystemClock.now());
    let mut pending = hand_over(&coalescer, 1).await;
    let outcome = match pending.remove(0).outcome.await.unwrap() {
        Fates::All(Outcome::Stored(_)) => "stored".to_owned(),
        Fates::All(Outcome::Unknown(failure) | Outcome::Refused(failure)) => failure.code.name.to_owned(),
        other @ (Fates::All(_) | Fates::Each(_)) => format!("{other:?}"),
    };
    assert!(script.is_done());
    let took = clock.now().duration_since(start).as_secs();
    let stored = broker.status().await.unwrap().tenants.get(&Tenant::default()).map_or(0, |t| t.unsettled_blocks);
    (outcome, took, stored)
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_tries_again_by_itself_is_waited_for_and_called_once() {
    let seconds = Duration::from_secs;
    let slow = patient(Fault::Delay(seconds(14))).await;
    assert_eq!(slow, ("stored".to_owned(), 14, 1), "longer than three publish timeouts of one attempt");
    // the next call would store it
    let away = patient(Fault::Fail(wh_mq::Kind::Unavailable)).await;
    assert_eq!(away, ("queue.unavailable".to_owned(), 0, 0), "its word is the last");
    let unknown = patient(Fault::Fail(wh_mq::Kind::Unknown)).await;
    assert_eq!(unknown, ("queue.outcome_unknown".to_owned(), 0, 0));
    let silent = patient(Fault::Delay(seconds(60))).await;
    assert_eq!(silent, ("queue.outcome_unknown".to_owned(), 16, 0), "given up a second after its time");
}
