//! The store of ids fails at each step of a block's way.

use super::{COMMIT, Pair, RELEASE, TABLE, WAIT, party, send, until_stored};
use wh_testkit::{
    chaos::Way,
    fault::{Action, Rule},
    http, until,
};

/// Tests with a process behind each of them, one after the other on the same pair; each has numbers of its own.
#[tokio::test]
async fn at_each_step_where_the_store_fails_nothing_is_lost_or_stored_twice() {
    let mut pair = Pair::start().await;
    before_the_claim(&pair).await;
    between_publish_and_commit(&pair).await;
    between_claim_and_publish(&pair).await;
    while_releasing(&pair).await;
    accepting(&mut pair).await;
    let found = pair.inserted(TABLE).await;
    Pair::each_once(&found, (0..5).chain(10..15).chain(20..25).chain(30..35));
    for n in 40..45 {
        assert_eq!(found.get(&n), Some(&2), "{n} was stored unseen and is new to the other: {found:?}");
    }
    assert_eq!(found.len(), 25, "{found:?}");
}

/// Refused, whole, and nothing of it is published.
async fn before_the_claim(pair: &Pair) {
    pair.one.store.down().await;
    let told = send(&pair.one.api, 0..5).await;
    assert_eq!((told.status, told.code.as_str()), (503, "dedupe.unavailable"), "{told:?}");
    assert!(told.all("not_attempted") && told.answer["retryable"] == true, "{told:?}");
    assert_eq!(pair.blocks().await, 0);
    let ready = http::get(pair.one.api.url("/readyz")).send().await.unwrap();
    assert!(ready.status == 200 && ready.text().contains("dedupe"), "{} {}", ready.status, ready.text());
    pair.one.store.up().await.unwrap();
    assert_eq!(until_stored(&pair.one.api, 0..5).await.len(), 5);
    assert!(until_stored(&pair.two.api, 0..5).await.is_empty());
}

/// They are durable and said to be; who sends them again waits until that is known to the store.
async fn between_publish_and_commit(pair: &Pair) {
    pair.one.store.add(Rule::any(Action::Reset).contains(COMMIT));
    let told = send(&pair.one.api, 10..15).await;
    // on a slow machine the claim takes too long, and nothing is stored yet
    assert!(matches!(told.status, 200 | 503), "{told:?}");
    let busy = send(&pair.two.api, 10..15).await;
    assert!(told.status == 503 || busy.stored().count() == 0, "{told:?} {busy:?}");
    pair.one.store.clear();
    let new = until_stored(&pair.two.api, 10..15).await;
    assert!(told.status == 503 || new.is_empty(), "they are stored already: {new:?}");
}

/// The claims are there, the block is on its way, and the store goes away under it.
async fn between_claim_and_publish(pair: &Pair) {
    let before = pair.items().await;
    pair.one.queue.black_hole(Way::ToServer);
    let away = async {
        pair.until_items(before + 5).await;
        let busy = send(&pair.two.api, 20..25).await;
        pair.one.store.down().await;
        pair.one.queue.heal();
        busy
    };
    let (told, busy) = tokio::join!(send(&pair.one.api, 20..25), away);
    pair.one.store.up().await.unwrap();
    // where the answer to the claim was cut off, or the hole lasted longer than the publish may, it was not stored or
    // nobody knows yet
    assert!(matches!(told.status, 200 | 503), "{told:?}");
    let new = until_stored(&pair.two.api, 20..25).await;
    assert!(told.stored().count() + busy.stored().count() + new.len() <= 5, "{told:?} {busy:?} {new:?}");
}

/// The queue is away, and the claims cannot be given back as long as the store is, too.
async fn while_releasing(pair: &Pair) {
    pair.one.queue.down().await;
    until(WAIT, "the process to know that its queue is away", || async {
        let ready = http::get(pair.one.api.url("/readyz")).send().await?;
        anyhow::ensure!(ready.status == 503, "{}", ready.text());
        Ok::<_, anyhow::Error>(())
    })
    .await
    .unwrap();
    pair.one.store.add(Rule::any(Action::Reset).contains(RELEASE));
    let before = pair.blocks().await;
    let told = send(&pair.one.api, 30..35).await;
    assert_eq!(told.status, 503, "{told:?}");
    assert!(told.all("not_attempted"), "{told:?}");
    assert_eq!(pair.blocks().await, before);
    let busy = send(&pair.two.api, 30..35).await;
    pair.one.store.clear();
    let new = until_stored(&pair.two.api, 30..35).await;
    assert_eq!(busy.stored().count() + new.len(), 5, "the claims were given back, or lapsed: {busy:?} {new:?}");
    pair.one.queue.up().await.unwrap();
    assert!(until_stored(&pair.one.api, 30..35).await.is_empty());
}

/// A third process is told to go on without the store: it does, and says so.
async fn accepting(pair: &mut Pair) {
    let three = party(&mut pair.fleet, &pair.ids, "three", "accept").await;
    three.store.down().await;
    let told = send(&three.api, 40..45).await;
    assert!(told.status == 200 && told.all("accepted"), "{told:?}");
    assert_eq!(told.answer["unchecked"], 5);
    assert!(told.answer["results"].as_array().unwrap().iter().all(|result| result["unchecked"] == true), "{told:?}");
    let counted = three.api.metric("wavehouse_ingest_dedupe_unchecked_rows_total").await.unwrap();
    assert!((counted - 5.0).abs() < f64::EPSILON, "{counted}");
    // nobody wrote them down
    assert_eq!(until_stored(&pair.one.api, 40..45).await.len(), 5);
    assert!(until_stored(&pair.two.api, 40..45).await.is_empty());
}
