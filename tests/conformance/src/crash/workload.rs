//! What a queue is doing when it is killed: publishing from several sides, delivering, settling, parking.

use super::acked::{Answer, block, letter};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use wh_mq::{Broker, Budget, DeadLetterId, Receipt, Verdict};
use wh_types::{Block, RowCursor, Tasks};

const TABLES: u32 = 6;

/// Tells of answers as they come.
pub(super) type Report = Arc<dyn Fn(Answer) + Send + Sync>;

/// Runs until the queue fails, which it will.
pub(super) async fn run(broker: Arc<dyn Broker>, round: u64, report: Report) {
    let tasks = Tasks::new();
    let failed = Arc::new(AtomicBool::new(false));
    for table in 0..TABLES {
        let (broker, report, failed) = (Arc::clone(&broker), Arc::clone(&report), Arc::clone(&failed));
        drop(tasks.spawn("publish", async move {
            publish(&*broker, round, table, &report, &failed).await;
            failed.store(true, Ordering::Relaxed);
        }));
    }
    for unit in broker.units() {
        let (broker, report, failed) = (Arc::clone(&broker), Arc::clone(&report), Arc::clone(&failed));
        drop(tasks.spawn("consume", async move {
            while !failed.load(Ordering::Relaxed) {
                if consume(&*broker, unit, &report, &failed).await.is_err() {
                    break;
                }
            }
        }));
    }
    tasks.wait().await;
}

async fn publish(broker: &dyn Broker, round: u64, table: u32, report: &Report, failed: &AtomicBool) {
    let mut n = 0;
    while !failed.load(Ordering::Relaxed) {
        // some tables one by one, some a few at a time
        let blocks: Vec<Block> = (0..1 + table % 3).map(|more| block(round, table, n + more)).collect();
        n += 1 + table % 3;
        for (block, outcome) in blocks.iter().zip(broker.publish(&blocks).await) {
            match outcome {
                Ok(Receipt::Stored(cursor)) => report(Answer::Stored(block.id, cursor)),
                // not stored, or not known: nothing was promised
                Ok(Receipt::Duplicate(_)) | Err(_) => return,
            }
        }
    }
}

async fn consume(broker: &dyn Broker, unit: wh_mq::Unit, report: &Report, failed: &AtomicBool) -> wh_mq::Result<()> {
    let mut feed = broker.feed(unit, Budget { rows: 2_000, bytes: 1 << 20 }).await?;
    let by = feed.settle();
    let mut taken = 0_u32;
    while !failed.load(Ordering::Relaxed) {
        let next = tokio::time::timeout(std::time::Duration::from_millis(50), feed.next()).await;
        let Ok(next) = next else { continue };
        let Some(delivery) = next? else { break };
        taken += 1;
        match taken % 7 {
            // left held: whoever owns the unit next gets it
            0 => continue,
            1 => {
                let id = DeadLetterId(RowCursor { block: delivery.cursor, row: taken % 5 });
                for outcome in broker.dead_letter(&[letter(&delivery.block.table, id)]).await {
                    outcome?;
                    report(Answer::Parked(id));
                }
            }
            2 => {
                let delay = std::time::Duration::from_secs(600);
                by.settle(&[delivery.token], Verdict::Nak { delay }).await;
                continue;
            }
            _ => {}
        }
        report(Answer::Settling(delivery.block.id));
        for outcome in by.settle(&[delivery.token], Verdict::Ack).await {
            outcome?;
            report(Answer::Settled(delivery.block.id));
        }
        if taken.is_multiple_of(500) {
            // now and then the unit changes hands
            feed.release().await?;
            return Ok(());
        }
    }
    Ok(())
}
