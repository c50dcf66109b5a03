//! The store in the data folder, with the queue beside it: in real time, as both have threads of their own.

use super::{World, counts, lines, row, under};
use std::{path::Path, sync::Arc};
use wh_dedupe::{Dedupe as _, log};
use wh_mq::{Broker as _, embedded};
use wh_types::SystemClock;

async fn queue(dir: &Path) -> embedded::Broker {
    embedded::Broker::open(embedded::Options { shards: 1, ..embedded::Options::new(dir.join("queue")) }).await.unwrap()
}

async fn store(dir: &Path) -> Arc<log::Dedupe> {
    Arc::new(log::Dedupe::open(log::Options::new(dir.join("dedupe"))).await.unwrap())
}

#[tokio::test]
async fn what_was_stored_is_known_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new();
    world.clock = Arc::new(SystemClock);
    for start in 0..3 {
        let (queue, store) = (queue(dir.path()).await, store(dir.path()).await);
        let one = world.over(store.clone(), Arc::new(queue.clone()));
        let fresh = if start == 0 { [2_000, 2_000, 0, 0] } else { [2_000, 0, 2_000, 0] };
        assert_eq!(counts(&lines(&one, 0..2_000).await), fresh, "start {start}");
        let keyed = under(&one, "k", &row(5_000)).await;
        assert_eq!((counts(&keyed), keyed.header("idempotency-replayed").is_some()), ([1, 1, 0, 0], start > 0));
        one.stop.give();
        one.api.finish().await;
        store.close().await;
        if start == 2 {
            assert_eq!(one.rows().await.len(), 2_001);
        }
        queue.close().await;
    }
}
