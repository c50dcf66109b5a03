//! Units at a real server: handing over, halting, pins, orphans, what cannot be read.

use crate::{
    flow::{Seen, WIDE, now, settle, take},
    stand::{Stand, block, choices, publish, table, tenant},
};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::time::Duration;
use wh_mq::{Broker as _, Budget, DeadLetterFilter, DeadLetterQuery, Unit, Verdict};
use wh_nats::Connection;
use wh_testkit::{
    nats::{Operator, Options, Shape},
    until,
};
use wh_topology::Choices;
use wh_types::{Block, Class};

const SECOND: Duration = Duration::from_secs(1);
const UNIT: Unit = Unit { partition: 0, shard: 0 };

/// A pin that lapses soon, where that is waited for; a busy machine renews it in time.
const PIN: Duration = Duration::from_secs(8);
/// Well before a pin, an `ack_wait` or a pull of [`one_unit`] is over, and far longer than what does not wait for them.
const SOON: Duration = Duration::from_secs(15);

/// One unit. What waits for its pin, its pull or its `ack_wait` waits for half a minute at least.
async fn one_unit() -> Result<Stand> {
    one_unit_pinned(60 * SECOND).await
}

async fn one_unit_pinned(ttl: Duration) -> Result<Stand> {
    let shape = Shape { pinned_ttl: Some(ttl), ..Shape::default() };
    Stand::with(Choices { shards: 1, ..choices() }, &shape, Options::default()).await
}

async fn info(operator: &mut Operator, stand: &Stand) -> Result<Value> {
    operator.consumer_info(&stand.spec.names().partition_stream(0), &stand.spec.names().durable(0)).await
}

fn pinned(info: &Value) -> Option<String> {
    info["priority_groups"][0]["pinned_client_id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}

async fn wait(stand: &Stand, what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
    let operator = tokio::sync::Mutex::new(stand.operator());
    until(90 * SECOND, what, || async { info(&mut *operator.lock().await, stand).await.is_ok_and(|info| is(&info)) })
        .await?;
    Ok(())
}

async fn store(broker: &wh_mq::nats::Broker, count: usize) -> Result<Vec<Block>> {
    let blocks: Vec<Block> = (0..count).map(|_| block("t", 1)).collect();
    for outcome in broker.publish(&blocks).await {
        outcome?;
    }
    Ok(blocks)
}

/// What the design relies on (decision D10): a pull whose inbox has no interest any more is gone from the server with
/// the next reading, and takes nothing.
#[tokio::test]
async fn a_halt_ends_the_waiting_pull_at_once() -> Result<()> {
    let stand = one_unit().await?;
    let broker = stand.broker().await?;
    let mut feed = broker.feed(UNIT, WIDE).await?;
    for pinned in [false, true] {
        if pinned {
            store(&broker, 1).await?;
            let taken = take(&mut *feed, 1).await?;
            settle(&*feed.settle(), &taken, Verdict::Ack).await?;
        }
        wait(&stand, "its pull waits", |info| info["num_waiting"] == 1).await?;
        let began = now();
        feed.halt().await?;
        ensure!(began.elapsed() < SOON, "it took {:?}", began.elapsed());
        let found = info(&mut stand.operator(), &stand).await?;
        assert_eq!(found["num_waiting"], 0);
        assert!(feed.next().await?.is_none());
        let blocks = store(&broker, 3).await?;
        let after = info(&mut stand.operator(), &stand).await?;
        assert_eq!(after["delivered"]["consumer_seq"], found["delivered"]["consumer_seq"], "nothing was taken");
        feed.release().await?;
        feed = broker.feed(UNIT, WIDE).await?;
        let began = now();
        let taken = take(&mut *feed, 3).await?;
        ensure!(began.elapsed() < SOON, "the next owner waited {:?}", began.elapsed());
        ensure!(taken.iter().map(|delivery| &delivery.block).eq(&blocks));
        settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    }
    Ok(())
}

/// Two members hand a unit to and fro while blocks are published.
#[tokio::test]
async fn a_unit_that_changes_hands_under_load_delivers_every_block_once_and_in_order() -> Result<()> {
    let stand = one_unit().await?;
    let members = [stand.broker().await?, stand.broker().await?];
    let blocks: Vec<Block> = (0..3_000).map(|n| block(["a", "b", "c"][n % 3], 1)).collect();
    let publishing = async {
        for piece in blocks.chunks(25) {
            for outcome in members[0].publish(piece).await {
                outcome?;
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
        anyhow::Ok(())
    };
    let consuming = async {
        let (mut seen, mut gaps) = (Seen::default(), Vec::new());
        for turn in 0.. {
            let mut feed = members[turn % 2].feed(UNIT, WIDE).await?;
            let began = now();
            let upto = (seen.distinct() + 137).min(blocks.len());
            seen.take(&mut *feed, upto, 16).await?;
            if seen.distinct() == blocks.len() {
                feed.halt().await?;
                feed.release().await?;
                break;
            }
            gaps.push(began.elapsed());
            feed.halt().await?;
            // what was taken before the halt
            while let Some(delivery) = feed.next().await? {
                settle(&*feed.settle(), std::slice::from_ref(&delivery), Verdict::Ack).await?;
                seen.note(&delivery);
            }
            feed.release().await?;
        }
        anyhow::Ok(seen)
    };
    let (published, seen) = tokio::join!(publishing, consuming);
    published?;
    let seen = seen?;
    assert_eq!(seen.twice(), 0);
    seen.in_order(&blocks)?;
    wait(&stand, "all is settled", |info| info["num_ack_pending"] == 0 && info["num_pending"] == 0).await?;
    assert!(pinned(&info(&mut stand.operator(), &stand).await?).is_none(), "the pin was given back");
    Ok(())
}

#[tokio::test]
async fn a_handler_that_is_stuck_for_longer_than_the_pin_lives_keeps_it() -> Result<()> {
    let stand = one_unit_pinned(PIN).await?;
    let (owner, standby) = (stand.broker().await?, stand.broker().await?);
    let blocks = store(&owner, 40).await?;
    let mut feed = owner.feed(UNIT, Budget { rows: 10, bytes: 1 << 20 }).await?;
    let mut taken = take(&mut *feed, 10).await?;
    let mut other = standby.feed(UNIT, WIDE).await?;
    let mut operator = stand.operator();
    let pin = pinned(&info(&mut operator, &stand).await?).context("it is pinned")?;
    let began = now();
    while began.elapsed() < PIN * 5 / 2 {
        let waited = tokio::time::timeout(SECOND / 2, other.next()).await;
        ensure!(waited.is_err(), "the standby got {waited:?}");
        let found = info(&mut operator, &stand).await?;
        assert_eq!(pinned(&found).as_ref(), Some(&pin), "after {:?}", began.elapsed());
        assert_eq!(found["num_ack_pending"], 10, "not a block past its share");
    }
    let by = feed.settle();
    settle(&*by, &taken, Verdict::Ack).await?;
    while taken.len() < blocks.len() {
        let more = take(&mut *feed, 10).await?;
        settle(&*by, &more, Verdict::Ack).await?;
        taken.extend(more);
    }
    ensure!(taken.iter().map(|delivery| &delivery.block).eq(&blocks));
    assert_eq!(pinned(&info(&mut operator, &stand).await?), Some(pin));
    Ok(())
}

#[tokio::test]
async fn a_draining_unit_keeps_its_pin_until_it_is_released() -> Result<()> {
    let stand = one_unit_pinned(PIN).await?;
    let (owner, next) = (stand.broker().await?, stand.broker().await?);
    store(&owner, 5).await?;
    let mut feed = owner.feed(UNIT, WIDE).await?;
    let taken = take(&mut *feed, 5).await?;
    feed.halt().await?;
    let mut other = next.feed(UNIT, WIDE).await?;
    store(&next, 2).await?;
    let began = now();
    while began.elapsed() < PIN * 3 / 2 {
        let waited = tokio::time::timeout(SECOND / 2, other.next()).await;
        ensure!(waited.is_err(), "the next owner got {waited:?} of a unit that is draining");
        let refused = next.release_orphan(UNIT).await;
        assert_eq!(refused.unwrap_err().class(), Class::Conflict);
    }
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    feed.release().await?;
    let began = now();
    take(&mut *other, 2).await?;
    ensure!(began.elapsed() < PIN * 3 / 4, "after the release it took {:?}", began.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_dead_owners_blocks_come_at_once_after_its_pin_lapsed_and_a_live_owners_never() -> Result<()> {
    let stand = one_unit_pinned(PIN).await?;
    let connection: Connection = stand.connect().await?;
    let (dead, next) = (stand.broker_on(connection.clone()).await?, stand.broker().await?);
    let blocks = store(&next, 20).await?;
    let mut feed = dead.feed(UNIT, WIDE).await?;
    let mut taken = take(&mut *feed, 20).await?;
    settle(&*feed.settle(), &taken[..3], Verdict::Ack).await?;
    let refused = async |what: &str| {
        let began = now();
        let refused = next.release_orphan(UNIT).await;
        assert_eq!(refused.unwrap_err().class(), Class::Conflict, "{what}");
        assert!(began.elapsed() < PIN * 3 / 4, "{what}: the answer took {:?}", began.elapsed());
    };
    refused("it lives").await;
    assert!(next.unowned().await?.is_empty());
    // as a process that dies: its connection ends and nothing is given back
    connection.close().await;
    refused("it died just now").await;
    let began = now();
    until(90 * SECOND, "it is an orphan", || async { next.release_orphan(UNIT).await.is_ok() }).await?;
    ensure!(began.elapsed() > PIN / 2, "a pin of {PIN:?} lapsed after {:?}", began.elapsed());
    assert!(next.unowned().await?.contains(&UNIT));
    let mut other = next.feed(UNIT, WIDE).await?;
    let began = now();
    let again = take(&mut *other, 17).await?;
    ensure!(began.elapsed() < SOON, "after the reset it took {:?}", began.elapsed());
    ensure!(again.iter().map(|delivery| &delivery.block).eq(&blocks[3..]), "in order");
    taken.clear();
    Ok(())
}

#[tokio::test]
async fn a_dropped_feeds_unit_is_not_given_up_by_another_process_before_its_pin_lapsed() -> Result<()> {
    let stand = one_unit().await?;
    let (owner, next) = (stand.broker().await?, stand.broker().await?);
    let blocks = store(&owner, 4).await?;
    let mut feed = owner.feed(UNIT, WIDE).await?;
    take(&mut *feed, 4).await?;
    let by = feed.settle();
    let taken = feed;
    drop(taken);
    assert_eq!(next.release_orphan(UNIT).await.unwrap_err().class(), Class::Conflict);
    // its own process knows that it is gone
    owner.release_orphan(UNIT).await?;
    let token = wh_mq::AckToken { delivery: 1, sequence: 1 };
    let fenced = by.settle(&[token], Verdict::Ack).await.remove(0);
    assert_eq!(fenced.unwrap_err().class(), Class::Fenced);
    let mut feed = next.feed(UNIT, WIDE).await?;
    let again = take(&mut *feed, 4).await?;
    ensure!(again.iter().map(|delivery| &delivery.block).eq(&blocks));
    Ok(())
}

#[tokio::test]
async fn what_a_closed_queue_held_comes_to_the_next_one_at_once() -> Result<()> {
    let stand = one_unit().await?;
    let owner = stand.broker().await?;
    let blocks = store(&owner, 10).await?;
    let mut feed = owner.feed(UNIT, WIDE).await?;
    let taken = take(&mut *feed, 8).await?;
    settle(&*feed.settle(), &taken[..2], Verdict::Ack).await?;
    let later = Verdict::Nak { delay: 600 * SECOND };
    settle(&*feed.settle(), &taken[4..5], later).await?;
    let (ended, ()) = tokio::join!(async { tokio::time::timeout(90 * SECOND, feed.next()).await }, async {
        // blocks 9 and 10 are taken by then, or not; the close is silent either way
        owner.close().await;
    });
    let mut ended = ended??;
    while ended.is_some() {
        ended = feed.next().await?;
    }
    let next = stand.broker().await?;
    let mut feed = next.feed(UNIT, WIDE).await?;
    let began = now();
    let again = take(&mut *feed, 8).await?;
    ensure!(began.elapsed() < SOON, "it took {:?}", began.elapsed());
    ensure!(again.iter().map(|delivery| &delivery.block).eq(&blocks[2..]), "in order, without its delay");
    Ok(())
}

#[tokio::test]
async fn an_empty_block_is_settled_and_never_delivered() -> Result<()> {
    let stand = one_unit().await?;
    let broker = stand.broker().await?;
    let real = block("t", 2);
    publish(&broker, &block("t", 1).probe()).await?;
    publish(&broker, &real).await?;
    publish(&broker, &block("t", 1).probe()).await?;
    let mut feed = broker.feed(UNIT, WIDE).await?;
    let taken = take(&mut *feed, 1).await?;
    assert_eq!(taken[0].block, real);
    wait(&stand, "the probes are settled", |info| info["num_ack_pending"] == 1 && info["num_pending"] == 0).await?;
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    assert_eq!(stand.messages().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_message_that_is_no_block_goes_to_the_dead_letters_whole_and_holds_nothing_up() -> Result<()> {
    let stand = one_unit().await?;
    let broker = stand.broker().await?;
    let subject = format!("{}.ingest.0.0.acme.t", stand.spec.names().prefix);
    stand.operator().request(&subject, "not a block").await?;
    let real = block("t", 1);
    publish(&broker, &real).await?;
    let mut feed = broker.feed(UNIT, WIDE).await?;
    let taken = take(&mut *feed, 1).await?;
    assert_eq!(taken[0].block, real);
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    wait(&stand, "both are settled", |info| info["num_ack_pending"] == 0 && info["num_pending"] == 0).await?;
    let filter = DeadLetterFilter { table: Some(table("t")), ..DeadLetterFilter::default() };
    let query = DeadLetterQuery { filter, ..DeadLetterQuery::default() };
    let page = broker.dead_letters(&tenant(), &query).await?;
    assert_eq!(page.letters.len(), 1, "{page:?}");
    assert_eq!(&page.letters[0].body[..], b"not a block");
    assert!(page.letters[0].reason.contains("Wh-Format"), "{}", page.letters[0].reason);
    Ok(())
}

#[tokio::test]
async fn what_all_units_hold_stays_within_the_processs_bytes() -> Result<()> {
    let stand = Stand::with(Choices { shards: 4, ..choices() }, &Shape::default(), Options::default()).await?;
    let connection = stand.connect().await?;
    let one = block("x", 100);
    let size = one.body.len();
    let mut options = wh_mq::nats::Options::new(stand.spec.clone());
    options.held_bytes = 10 * size;
    let broker = wh_mq::nats::Broker::open(connection, options).await?;
    let blocks: Vec<Block> = (0..120).map(|n| block(&format!("t{n}"), 100)).collect();
    for outcome in broker.publish(&blocks).await {
        outcome?;
    }
    let mut feeds = Vec::new();
    for unit in broker.units() {
        feeds.push(broker.feed(unit, WIDE).await?);
    }
    // everyone may always get one, and the first block of a term is asked for as if it were a full one
    let operator = tokio::sync::Mutex::new(stand.operator());
    let held = || async {
        let mut sum = 0;
        for shard in 0..4 {
            let (stream, durable) = (stand.spec.names().partition_stream(0), stand.spec.names().durable(shard));
            let info = operator.lock().await.consumer_info(&stream, &durable).await?;
            sum += info["num_ack_pending"].as_u64().context("a number")?;
        }
        anyhow::Ok(sum)
    };
    let mut total = 0;
    while total < blocks.len() {
        let now = held().await?;
        ensure!(now <= 14, "{now} blocks are held");
        for feed in &mut feeds {
            while let Ok(next) = tokio::time::timeout(Duration::from_millis(50), feed.next()).await {
                let delivery = next?.context("it ended")?;
                settle(&*feed.settle(), std::slice::from_ref(&delivery), Verdict::Ack).await?;
                total += 1;
            }
        }
    }
    Ok(())
}

/// What somebody takes under the owner's pin is what a leader swallows that dies: delivered, and not to us.
async fn steal(stand: &Stand, pin: &str, count: u64) -> Result<()> {
    let names = stand.spec.names();
    let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", names.partition_stream(0), names.durable(0));
    let group = wh_topology::defaults::PRIORITY_GROUP;
    let body = serde_json::json!({"batch": count, "expires": 1_000_000_000, "group": group, "id": pin});
    let before = info(&mut stand.operator(), stand).await?["delivered"]["consumer_seq"].as_u64();
    // the message is none of the API, so its reading fails once it has come
    stand.operator().request(&subject, &body.to_string()).await.ok();
    let after = info(&mut stand.operator(), stand).await?["delivered"]["consumer_seq"].as_u64();
    ensure!(after == before.map(|before| before + count), "{before:?} became {after:?}");
    Ok(())
}

#[tokio::test]
async fn blocks_that_were_swallowed_come_by_a_reset_in_order_and_nothing_comes_twice() -> Result<()> {
    let stand = one_unit().await?;
    let broker = stand.broker().await?;
    let blocks = store(&broker, 12).await?;
    let mut feed = broker.feed(UNIT, Budget { rows: 3, bytes: 1 << 20 }).await?;
    let mut came = take(&mut *feed, 3).await?;
    let pin = pinned(&info(&mut stand.operator(), &stand).await?).context("it is pinned")?;
    steal(&stand, &pin, 4).await?;
    // one of the first three stays with the handler over the reset
    settle(&*feed.settle(), &came[1..], Verdict::Ack).await?;
    feed.set_budget(WIDE);
    let began = now();
    came.extend(take(&mut *feed, 9).await?);
    ensure!(began.elapsed() < SOON, "it took {:?}", began.elapsed());
    ensure!(came.iter().map(|delivery| &delivery.block).eq(&blocks), "in order");
    ensure!(came.iter().all(|delivery| delivery.attempt == 1));
    // the one that was held is settled by the reply of its copy
    settle(&*feed.settle(), &came[..1], Verdict::Ack).await?;
    settle(&*feed.settle(), &came[3..], Verdict::Ack).await?;
    wait(&stand, "all is settled", |info| info["num_ack_pending"] == 0 && info["num_pending"] == 0).await?;
    assert_eq!(stand.messages().await?, 0);
    Ok(())
}

#[tokio::test]
async fn the_last_blocks_that_were_swallowed_are_missed_without_another_one() -> Result<()> {
    let stand = one_unit().await?;
    let broker = stand.broker().await?;
    let blocks = store(&broker, 5).await?;
    let mut feed = broker.feed(UNIT, Budget { rows: 2, bytes: 1 << 20 }).await?;
    let mut came = take(&mut *feed, 2).await?;
    let pin = pinned(&info(&mut stand.operator(), &stand).await?).context("it is pinned")?;
    steal(&stand, &pin, 3).await?;
    settle(&*feed.settle(), &came, Verdict::Ack).await?;
    feed.set_budget(WIDE);
    let began = now();
    came.extend(take(&mut *feed, 3).await?);
    ensure!(began.elapsed() < 2 * SOON, "it took {:?}", began.elapsed());
    ensure!(came.iter().map(|delivery| &delivery.block).eq(&blocks), "in order");
    Ok(())
}

#[tokio::test]
async fn a_reset_by_somebody_else_brings_nothing_twice() -> Result<()> {
    let stand = one_unit().await?;
    let broker = stand.broker().await?;
    let blocks = store(&broker, 30).await?;
    let mut feed = broker.feed(UNIT, WIDE).await?;
    let mut came = take(&mut *feed, 20).await?;
    settle(&*feed.settle(), &came[..5], Verdict::Ack).await?;
    let began = now();
    let later = Verdict::Nak { delay: 3 * SECOND };
    settle(&*feed.settle(), &came[5..6], later).await?;
    let names = stand.spec.names();
    let reset = format!("CONSUMER.RESET.{}.{}", names.partition_stream(0), names.durable(0));
    stand.operator().ask(&reset, "").await?;
    came.extend(take(&mut *feed, 11).await?);
    let delayed = came.iter().rposition(|delivery| delivery.block == blocks[5]).context("the delayed one")?;
    ensure!(began.elapsed() >= 3 * SECOND && delayed >= 20, "the delay outlives the reset");
    came.remove(delayed);
    ensure!(came.iter().map(|delivery| &delivery.block).eq(&blocks), "the rest once and in order");
    settle(&*feed.settle(), &came, Verdict::Ack).await?;
    Ok(())
}

#[tokio::test]
async fn an_operator_who_unpins_a_busy_unit_changes_nothing_for_its_blocks() -> Result<()> {
    let stand = one_unit().await?;
    let broker = stand.broker().await?;
    let blocks: Vec<Block> = (0..1_000).map(|_| block("t", 1)).collect();
    let mut feed = broker.feed(UNIT, WIDE).await?;
    let publishing = async {
        for piece in blocks.chunks(20) {
            for outcome in broker.publish(piece).await {
                outcome?;
            }
        }
        anyhow::Ok(())
    };
    let unpinning = async {
        let (mut operator, names) = (stand.operator(), stand.spec.names());
        let unpin = format!("CONSUMER.UNPIN.{}.{}", names.partition_stream(0), names.durable(0));
        let body = serde_json::json!({"group": wh_topology::defaults::PRIORITY_GROUP}).to_string();
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(30)).await;
            operator.ask(&unpin, &body).await?;
        }
        anyhow::Ok(())
    };
    let mut seen = Seen::default();
    let (published, unpinned, taken) = tokio::join!(publishing, unpinning, seen.take(&mut *feed, 1_000, 16));
    published.and(unpinned).and(taken)?;
    assert_eq!(seen.twice(), 0);
    seen.in_order(&blocks)
}

#[tokio::test]
async fn a_durable_that_is_no_longer_pinned_ends_delivery_with_one_error() -> Result<()> {
    let stand = one_unit().await?;
    let broker = stand.broker().await?;
    let mut feed = broker.feed(UNIT, WIDE).await?;
    store(&broker, 1).await?;
    let taken = take(&mut *feed, 1).await?;
    let (stream, durable) = (stand.spec.names().partition_stream(0), stand.spec.names().durable(0));
    let plain = serde_json::json!({"priority_policy": "none", "priority_groups": null, "priority_timeout": null});
    stand.operator().change_durable(&stream, &durable, &plain).await?;
    let error = tokio::time::timeout(90 * SECOND, feed.next()).await?.unwrap_err();
    assert_eq!(error.class(), Class::Denied, "{error}");
    assert!(feed.next().await?.is_none());
    assert!(broker.faults().last().is_some());
    settle(&*feed.settle(), &taken, Verdict::Ack).await?;
    feed.release().await?;
    Ok(())
}
