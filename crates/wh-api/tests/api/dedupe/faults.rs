//! What fails between a claim and its commit: never lost, never twice where the store was up.

use super::{HALF_WINDOW, LEASE, World, counts, lines, row, rows};
use crate::rig::{get, post};
use futures::FutureExt;
use std::time::Duration;
use wh_api::{IdRule, OnOutage};
use wh_dedupe::{Row, Scope, Under, Verdict, sim::Fault as Away};
use wh_mq::{
    Kind,
    faulty::{Fault, Op},
};
use wh_types::{BlockId, Clock, Epoch, SystemClock, Table, Tenant};

fn id(id: &str) -> wh_dedupe::Key {
    Scope::new(&Tenant::default(), &Table::new("t").unwrap()).event(id).unwrap()
}

/// Claims an id as a process would that dies at once.
async fn claimed_by_the_dead(world: &World, text: &str, under: Under) {
    let options = wh_dedupe::sim::Options {
        clock: world.clock.clone(),
        entropy: std::sync::Arc::new(wh_types::SeededEntropy::new(99)),
    };
    let store = world.store.join(options);
    let verdicts = wh_dedupe::Dedupe::reserve(&store, &[Row::new(id(text))], &under).await.unwrap();
    assert!(matches!(verdicts[0], Verdict::New(_)), "{verdicts:?}");
}

fn under(epoch: u32) -> Under {
    Under { stream: 0, epoch: Epoch(epoch), block: BlockId([7; 16]), lease: LEASE }
}

#[tokio::test(start_paused = true)]
async fn an_id_whose_publish_was_refused_is_free_at_once() {
    let one = World::new().process(1).rig;
    one.script.next(Op::Publish, Fault::Fail(Kind::NoSpace));
    let refused = lines(&one, [1]).await;
    assert_eq!(refused.outcome(), (503, Some("queue.no_space".into())));
    let again = lines(&one, [1]).await;
    assert_eq!((again.status.as_u16(), counts(&again)), (200, [1, 1, 0, 0]));
    assert_eq!(one.rows().await, [row(1)]);
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_with_one_id_one_stores_it_and_the_other_waits() {
    let world = World::new();
    let (one, two) = (world.process(1).rig, world.process(2).rig);
    one.script.next(Op::Publish, Fault::Delay(Duration::from_secs(2)));
    let second = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        tokio::join!(lines(&two, [1, 2]), lines(&two, [3]))
    };
    let (first, (busy, other)) = tokio::join!(lines(&one, [1]), second);
    assert_eq!((first.status.as_u16(), other.status.as_u16()), (200, 200), "only its own request waits");
    assert_eq!(busy.outcome(), (503, Some("dedupe.busy".into())));
    assert_eq!(counts(&busy), [2, 1, 0, 0], "its other record is stored");
    assert_eq!(busy.results(), [(0, "in_flight".to_owned(), "dedupe.busy".to_owned())]);
    let after: u64 = busy.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=LEASE.as_secs()).contains(&after), "{after}");
    assert_eq!(counts(&lines(&two, [1, 2]).await), [2, 0, 2, 0]);
    let mut stored = one.rows().await;
    stored.sort();
    assert_eq!(stored, [row(1), row(2), row(3)]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_found_out_and_the_id_says_it() {
    for stored in [true, false] {
        let one = World::new().process(1).rig;
        for _ in 0..4 {
            let fault = if stored { Fault::LoseAnswer } else { Fault::Fail(Kind::Unknown) };
            one.script.next(Op::Publish, fault);
        }
        // the budget of attempts is over before they are
        for _ in 0..24 {
            one.script.next(Op::Publish, Fault::Fail(Kind::Unavailable));
        }
        let reply = lines(&one, [1]).await;
        assert_eq!(reply.outcome(), (503, Some("queue.outcome_unknown".into())));
        let told = loop {
            let again = lines(&one, [1]).await;
            if again.status == 200 {
                break again;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        };
        let expected = if stored { [1, 0, 1, 0] } else { [1, 1, 0, 0] };
        assert_eq!(counts(&told), expected, "stored: {stored}");
        assert_eq!(one.rows().await, [row(1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_fails_is_made_up_for() {
    let process = World::new().process(1);
    let one = &process.rig;
    // reserved, then away for a while
    process.link.next([Away::Lost, Away::Refused, Away::Throttled, Away::Lost]);
    let reply = lines(one, [1]).await;
    assert_eq!(reply.outcome(), (503, Some("dedupe.unavailable".into())), "the claim's own answer was lost");
    tokio::time::sleep(LEASE).await;
    let reply = lines(one, [1]).await;
    assert_eq!(reply.status, 503, "the store is away");
    process.link.next([]);
    while lines(one, [1]).await.status != 200 {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(counts(&lines(one, [1]).await), [1, 0, 1, 0]);
    assert_eq!(one.rows().await, [row(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_never_committed_leads_to_its_block() {
    let world = World::new();
    let process = world.process(1);
    // the store goes away between publish and commit
    process.rig.script.next(Op::Publish, Fault::Delay(Duration::from_secs(1)));
    let away = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        process.link.cut(true);
    };
    let (first, ()) = tokio::join!(lines(&process.rig, 1..=600), away);
    assert_eq!((first.status.as_u16(), counts(&first)), (200, [600, 600, 0, 0]), "they are durable");
    process.rig.stop.give();
    process.rig.api.finish().await;
    assert_eq!(world.store.committed(), 0);
    let next = world.process(2).rig;
    let busy = lines(&next, [1]).await;
    assert_eq!(busy.outcome(), (503, Some("dedupe.busy".into())), "its claimant may be at it");
    tokio::time::sleep(LEASE).await;
    let again = lines(&next, 1..=601).await;
    assert_eq!((again.status.as_u16(), counts(&again)), (200, [601, 1, 600, 0]));
    assert_eq!(world.store.committed(), 601);
    assert_eq!(next.rows().await.len(), 601);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_block_never_went_out_is_given_back() {
    let world = World::new();
    let one = world.process(1).rig;
    claimed_by_the_dead(&world, "1", under(0xe)).await;
    assert_eq!(lines(&one, [1]).await.outcome(), (503, Some("dedupe.busy".into())));
    tokio::time::sleep(LEASE).await;
    assert_eq!(counts(&lines(&one, [1, 2]).await), [2, 2, 0, 0]);
    assert_eq!(counts(&lines(&one, [1]).await), [1, 0, 1, 0]);
    assert_eq!(one.rows().await, [row(1), row(2)]);
    // the dead one's block can never come any more
    let late = world.queue.clone();
    let block = wh_types::Block {
        id: BlockId([7; 16]),
        tenant: Tenant::default(),
        table: Table::new("t").unwrap(),
        received: world.clock.wall(),
        rows: 1,
        decoded_bytes: 0,
        encoding: wh_types::Encoding::Zstd,
        body: wh_types::frame::encode(wh_types::Encoding::Zstd, b"{\"id\":1}\n").unwrap(),
        chain: None,
        trace: None,
    };
    let answer = wh_mq::Broker::publish(&late, &[block]).await.remove(0).unwrap();
    assert!(matches!(answer, wh_mq::Receipt::Duplicate(_)), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_block_that_the_queue_may_have_forgotten_is_not_asked_for() {
    for (epoch, wait) in [(0xf, LEASE), (0xe, LEASE * 2 + HALF_WINDOW + Duration::from_secs(1))] {
        let world = World::new();
        let one = world.process(1).rig;
        claimed_by_the_dead(&world, "1", under(epoch)).await;
        tokio::time::sleep(wait).await;
        let calls = [Fault::Fail(Kind::NoSpace)];
        calls.into_iter().for_each(|fault| one.script.next(Op::StoredRows, fault));
        assert_eq!(counts(&lines(&one, [1]).await), [1, 1, 0, 0], "claimed afresh");
        assert!(!one.script.is_done(), "nothing was looked up");
        assert_eq!(one.rows().await, [row(1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_queue_cannot_say_nobody_is_told_anything_else() {
    let world = World::new();
    let one = world.process(1).rig;
    claimed_by_the_dead(&world, "1", under(0xe)).await;
    tokio::time::sleep(LEASE).await;
    one.script.next(Op::Publish, Fault::Fail(Kind::Unavailable));
    let reply = lines(&one, [1, 2]).await;
    assert_eq!(reply.outcome(), (503, Some("dedupe.busy".into())));
    assert_eq!(counts(&reply), [2, 1, 0, 0]);
    tokio::time::sleep(LEASE).await;
    assert_eq!(counts(&lines(&one, [1, 2]).await), [2, 1, 1, 0]);
    assert_eq!(one.rows().await, [row(2), row(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_refuses_whole_requests_and_no_other() {
    let mut world = World::new();
    world.rule = IdRule { column: "note".into(), ..world.rule };
    let process = world.process(1);
    let one = &process.rig;
    process.link.cut(true);
    let with = "{\"id\":1,\"note\":\"a\"}\n{\"id\":2}\n{\"id\":3,\"nope\":1}\n";
    let reply = one.lines(with).await;
    assert_eq!(reply.outcome(), (503, Some("dedupe.unavailable".into())));
    assert_eq!((counts(&reply), reply.header("retry-after")), ([3, 0, 0, 1], Some("5")));
    let results = reply.results();
    assert_eq!(
        results.iter().map(|(_, status, _)| status.as_str()).collect::<Vec<_>>(),
        ["not_attempted", "not_attempted", "rejected"]
    );
    let plain = one.send(post("/v1/ingest?table=a.b%2Fc", "application/x-ndjson", row(1))).await;
    assert_eq!((plain.status.as_u16(), one.lines("{\"id\":2}").await.status.as_u16()), (200, 200));
    let ready = one.send(get("/readyz")).await;
    assert_eq!((ready.status.as_u16(), ready.value()["status"].as_str()), (200, Some("degraded")));
    assert!(ready.text().contains("dedupe"), "{}", ready.text());
    process.link.cut(false);
    assert_eq!(counts(&one.lines(with).await), [3, 2, 0, 1]);
    assert_eq!(one.send(get("/readyz")).await.value()["status"], "ready");
    assert_eq!(one.rows().await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_can_be_done_without_and_that_is_said() {
    let mut world = World::new();
    world.on_outage = OnOutage::Accept;
    let process = world.process(1);
    let one = &process.rig;
    lines(one, [1]).await;
    process.link.cut(true);
    let path = "/v1/ingest?table=t&results=all";
    let reply = one.send(post(path, "application/x-ndjson", rows([1, 2, 2]))).await;
    assert_eq!(
        (reply.status.as_u16(), counts(&reply)),
        (200, [3, 2, 1, 0]),
        "what one request repeats is seen all the same"
    );
    assert_eq!(reply.value()["unchecked"], 2);
    assert_eq!(reply.value()["results"][0]["unchecked"], true);
    process.link.cut(false);
    assert_eq!(counts(&lines(one, [1, 2]).await), [2, 1, 1, 0], "an id that was not looked up is not known");
    assert_eq!(one.rows().await, [row(1), row(1), row(2), row(2)]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_published_in_the_last_seconds_of_a_claim() {
    let mut world = World::new();
    world.lease = Duration::from_secs(16);
    let one = world.process(1).rig;
    for _ in 0..40 {
        one.script.next(Op::Publish, Fault::Fail(Kind::Unavailable));
    }
    let start = SystemClock.now();
    let reply = lines(&one, [1]).await;
    assert_eq!(reply.outcome(), (503, Some("queue.unavailable".into())));
    // lease less a publish and five seconds
    assert!(start.elapsed() <= Duration::from_secs(6), "{:?}", start.elapsed());
    let plain = SystemClock.now();
    one.send(post("/v1/ingest?table=a.b%2Fc", "application/x-ndjson", row(1))).await;
    assert!(plain.elapsed() > Duration::from_secs(10), "without a claim there is the whole budget");
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_leaves_a_commit_behind() {
    let world = World::new();
    let one = world.process(1).rig;
    one.script.next(Op::Publish, Fault::Delay(Duration::from_secs(1)));
    let mut gone = Box::pin(lines(&one, [1]));
    while tokio::time::timeout(Duration::from_millis(10), &mut gone).now_or_never().is_some() {}
    drop(gone);
    assert_eq!(counts(&lines(&one, [1, 2]).await), [2, 1, 1, 0]);
    assert_eq!(world.store.committed(), 2);
    assert_eq!(one.rows().await, [row(1), row(2)]);
}
