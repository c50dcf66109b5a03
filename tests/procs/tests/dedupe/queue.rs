//! The queue takes a block and its answer is lost; or it never gets it, and nobody can tell.

use super::{Pair, TABLE, Told, WAIT, send, until_stored};
use procs::Member;
use std::ops::Range;
use wh_testkit::{chaos::Way, until};

#[tokio::test]
async fn what_nobody_knows_of_a_block_is_found_out_and_each_event_is_stored_once() {
    let pair = Pair::start().await;
    the_answer_is_lost(&pair).await;
    the_block_is_lost(&pair).await;
    let found = pair.inserted(TABLE).await;
    Pair::each_once(&found, (0..5).chain(10..15));
    assert_eq!(found.len(), 10, "{found:?}");
}

/// Sends until the claims were there: on a machine that is slow the store is away for a moment.
async fn claimed(api: &Member, numbers: Range<u64>) -> Told {
    loop {
        let told = send(api, numbers.clone()).await;
        if told.code != "dedupe.unavailable" {
            return told;
        }
    }
}

async fn the_answer_is_lost(pair: &Pair) {
    pair.one.queue.black_hole(Way::ToClient);
    let told = claimed(&pair.one.api, 0..5).await;
    assert_eq!((told.status, told.code.as_str()), (503, "queue.outcome_unknown"), "{told:?}");
    assert!(told.all("in_flight"), "{told:?}");
    until(WAIT, "the block in the queue", || async {
        let blocks = pair.blocks().await;
        anyhow::ensure!(blocks > 0, "{blocks}");
        Ok(())
    })
    .await
    .unwrap();
    let busy = send(&pair.two.api, 0..5).await;
    assert_eq!(busy.stored().count(), 0, "{busy:?}");
    pair.one.queue.heal();
    assert!(until_stored(&pair.two.api, 0..5).await.is_empty(), "they were stored under the first block");
    assert!(until_stored(&pair.one.api, 0..5).await.is_empty());
}

async fn the_block_is_lost(pair: &Pair) {
    pair.one.queue.black_hole(Way::ToServer);
    let told = claimed(&pair.one.api, 10..15).await;
    assert_eq!((told.status, told.code.as_str()), (503, "queue.outcome_unknown"), "{told:?}");
    // what was swallowed is gone with its connection
    pair.one.queue.cut();
    pair.one.queue.heal();
    let new = until_stored(&pair.two.api, 10..15).await;
    assert_eq!(new.len(), 5, "they are stored by the second process: {told:?}");
    assert!(until_stored(&pair.one.api, 10..15).await.is_empty());
}
