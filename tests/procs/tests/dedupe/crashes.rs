//! kill -9 of a process that holds claims on a table that others share: after its publish, and before it.

use super::{COMMIT, Pair, TABLE, try_send, until_stored};
use wh_testkit::{
    chaos::Way,
    fault::{Action, Rule},
};

#[tokio::test]
async fn whoever_finds_the_claims_of_one_that_was_killed_asks_the_queue_and_stores_each_event_once() {
    let mut pair = Pair::start().await;
    let (stored, lost): (Vec<u64>, Vec<u64>) = ((0..5).collect(), (10..15).collect());
    // the first block is published, and its commit never comes to anything
    let commits = pair.one.store.add(Rule::any(Action::Hang).contains(COMMIT));
    let told = loop {
        let told = try_send(&pair.one.api, TABLE, &stored).await.unwrap();
        // on a machine that is slow the store is away for a moment
        if told.status != 503 {
            break told;
        }
    };
    assert!(told.status == 200 && told.all("accepted"), "{told:?}");
    assert!(pair.one.store.fired(commits) > 0);
    assert_eq!(pair.blocks().await, 1);
    // the second one is claimed, and goes nowhere
    let before = pair.items().await;
    pair.one.queue.black_hole(Way::ToServer);
    tokio::select! {
        () = pair.until_items(before + 5) => {}
        () = async {
            // nobody waits for its answer
            drop(try_send(&pair.one.api, TABLE, &lost).await);
            std::future::pending().await
        } => {}
    }
    pair.one.api.process.kill().unwrap();
    pair.one.queue.cut();
    pair.one.queue.heal();
    pair.one.store.clear();

    let (known, new) = tokio::join!(
        until_stored(&pair.two.api, stored.iter().copied()),
        until_stored(&pair.two.api, lost.iter().copied())
    );
    assert!(known.is_empty(), "{known:?} were stored by the one that was killed");
    assert_eq!(new.len(), 5, "the other block never came");
    let lapsed = pair.two.api.metric("wavehouse_ingest_dedupe_lapsed_total").await.unwrap();
    assert!(lapsed >= 10.0, "{lapsed}");
    let unresolved = pair.two.api.metric("wavehouse_ingest_dedupe_unresolved_total").await.unwrap();
    assert!(unresolved.abs() < f64::EPSILON, "{unresolved}");

    // and so does the one that was killed, once it is back
    pair.one.api.restart().await.unwrap();
    assert!(until_stored(&pair.one.api, stored.iter().chain(&lost).copied()).await.is_empty());
    let found = pair.inserted(TABLE).await;
    Pair::each_once(&found, stored.into_iter().chain(lost));
    assert_eq!(found.len(), 10, "{found:?}");
}
