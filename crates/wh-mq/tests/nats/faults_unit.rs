//! Units under faults of servers and of the way to them: nothing accepted is lost, doubles are counted and printed.

use crate::{
    flow::{PATIENCE, Seen, WIDE, now, settle, take},
    stand::{Stand, block, choices},
    three::Three,
};
use anyhow::{Context as _, Result, ensure};
use std::{future::Future, time::Duration};
use wh_mq::{Broker as _, BrokerStatus, Receipt, Unit, Verdict, nats};
use wh_nats::Connection;
use wh_testkit::{
    chaos::{End, Tcp, Way},
    nats::{Operator, Options, Shape},
    until,
};
use wh_topology::{Choices, Spec};
use wh_types::{Block, Class};

const SECOND: Duration = Duration::from_secs(1);
pub(crate) const UNIT: Unit = Unit { partition: 0, shard: 0 };

/// Publishes blocks of three tables, each until it is stored, in order.
pub(crate) async fn publish_all(broker: &nats::Broker, blocks: &[Block], pause: Duration) -> Result<()> {
    for piece in blocks.chunks(20) {
        let mut left: Vec<Block> = piece.to_vec();
        let began = now();
        while !left.is_empty() {
            ensure!(began.elapsed() < 180 * SECOND, "{} blocks cannot be published", left.len());
            let outcomes = broker.publish(&left).await;
            let failed = left.iter().zip(outcomes).filter_map(|(block, outcome)| match outcome {
                Ok(Receipt::Stored(_) | Receipt::Duplicate(_)) => None,
                Err(_) => Some(block.clone()),
            });
            left = failed.collect();
            if !left.is_empty() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

#[expect(clippy::print_stderr, reason = "the figures of a fault are part of its test")]
fn say(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn blocks(count: usize) -> Vec<Block> {
    (0..count).map(|n| block(["a", "b", "c"][n % 3], 1)).collect()
}

/// Publishes, takes and settles everything while faults happen, until the queue is empty.
async fn under(
    what: &str,
    publisher: &nats::Broker,
    owner: &nats::Broker,
    blocks: &[Block],
    faults: impl Future<Output = Result<()>>,
) -> Result<Seen> {
    let mut feed = owner.feed(UNIT, WIDE).await?;
    let began = now();
    let consuming = async {
        let mut seen = Seen::default();
        seen.take(&mut *feed, blocks.len(), 32).await?;
        let took = began.elapsed();
        // blocks whose acks were lost come again, or are acked again by the feed
        let deadline = now() + PATIENCE;
        while publisher.status().await.ok().and_then(|status| unsettled(&status)) != Some(0) {
            ensure!(now() < deadline, "the queue is not empty after {:?}", began.elapsed());
            if let Ok(next) = tokio::time::timeout(SECOND / 20, feed.next()).await {
                let delivery = next?.context("it ended")?;
                seen.note(&delivery);
                settle(&*feed.settle(), std::slice::from_ref(&delivery), Verdict::Ack).await.ok();
            }
        }
        anyhow::Ok((seen, took))
    };
    let (published, consumed, faults) =
        tokio::join!(publish_all(publisher, blocks, Duration::from_millis(10)), consuming, faults);
    published.context("publishing")?;
    faults.context("making faults")?;
    let (seen, took) = consumed?;
    seen.all(blocks)?;
    let (twice, stored, unsettled, all) = (seen.twice(), seen.stored_twice(), seen.unsettled, began.elapsed());
    let ordered = if seen.in_order(blocks).is_ok() { "in order" } else { "not in order" };
    let count = blocks.len();
    say(&format!(
        "{what}: {count} blocks, {twice} twice, {stored} stored twice, {unsettled} settles failed, {ordered}, taken after {took:.1?}, settled after {all:.1?}"
    ));
    feed.halt().await?;
    assert!(feed.next().await?.is_none());
    // in the middle of an election it frees itself later
    feed.release().await.or_else(|error| if error.class() == Class::Unavailable { Ok(()) } else { Err(error) })?;
    Ok(seen)
}

/// Blocks in the queue, where it can be reached.
fn unsettled(status: &BrokerStatus) -> Option<u64> {
    let blocks = status.tenants.values().map(|tenant| tenant.unsettled_blocks);
    status.accepting.then(|| blocks.sum())
}

pub(crate) async fn one_unit() -> Result<Stand> {
    let shape = Shape { pinned_ttl: Some(5 * SECOND), ..Shape::default() };
    Stand::with(Choices { shards: 1, ..choices() }, &shape, Options::default()).await
}

/// Waits until some blocks came and are settled: what is lost before a first one has come waits for `ack_wait`.
async fn begun(mut operator: Operator, spec: &Spec) -> Result<()> {
    let (stream, durable) = (spec.names().partition_stream(0), spec.names().durable(0));
    for _ in 0..6_000 {
        if operator.consumer_info(&stream, &durable).await.is_ok_and(|info| info["ack_floor"]["consumer_seq"] != 0) {
            return Ok(());
        }
        tokio::time::sleep(SECOND / 100).await;
    }
    anyhow::bail!("nothing is settled")
}

pub(crate) async fn broker_through(stand: &Stand, port: u16) -> Result<nats::Broker> {
    let connection = Connection::open(stand.connecting(Some(port))).await?;
    stand.broker_on(connection).await
}

#[tokio::test]
async fn a_server_that_is_killed_and_comes_back_loses_nothing() -> Result<()> {
    let mut stand = one_unit().await?;
    let (publisher, owner) = (stand.broker().await?, stand.broker().await?);
    let blocks = blocks(2_000);
    let (operator, spec) = (stand.operator(), stand.spec.clone());
    let server = &mut stand.server;
    let seen = under("kill -9 of the server, three times", &publisher, &owner, &blocks, async {
        begun(operator, &spec).await?;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            server.restart().await?;
        }
        Ok(())
    });
    let seen = seen.await?;
    ensure!(seen.twice() < 400, "{} came twice", seen.twice());
    seen.in_order(&blocks)?;
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_frozen_for_a_while_loses_nothing() -> Result<()> {
    let mut stand = one_unit().await?;
    let (publisher, owner) = (stand.broker().await?, stand.broker().await?);
    let blocks = blocks(1_500);
    let server = stand.server.process();
    let seen = under("a server stopped for 1 s and for 9 s", &publisher, &owner, &blocks, async {
        for span in [SECOND, 9 * SECOND] {
            tokio::time::sleep(Duration::from_millis(200)).await;
            server.pause()?;
            tokio::time::sleep(span).await;
            server.resume()?;
        }
        Ok(())
    });
    seen.await?;
    Ok(())
}

#[tokio::test]
async fn an_owner_whose_way_is_cut_blocked_or_half_open_loses_nothing() -> Result<()> {
    let stand = one_unit().await?;
    let proxy = Tcp::start(stand.server.port()).await?;
    let (publisher, owner) = (stand.broker().await?, broker_through(&stand, proxy.port()).await?);
    let blocks = blocks(3_000);
    let seen = under("cuts, black holes and a half-open way", &publisher, &owner, &blocks, async {
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(150)).await;
            proxy.cut();
        }
        for way in [Way::ToClient, Way::ToServer, Way::Both] {
            tokio::time::sleep(Duration::from_millis(150)).await;
            proxy.black_hole(way);
            tokio::time::sleep(2 * SECOND).await;
            proxy.cut();
            proxy.heal();
        }
        for end in [End::Client, End::Server] {
            tokio::time::sleep(Duration::from_millis(300)).await;
            proxy.half_open(end);
        }
        Ok(())
    });
    seen.await?;
    Ok(())
}

#[tokio::test]
async fn a_black_hole_of_ten_seconds_is_noticed_and_left_behind() -> Result<()> {
    let stand = one_unit().await?;
    let proxy = Tcp::start(stand.server.port()).await?;
    let (publisher, owner) = (stand.broker().await?, broker_through(&stand, proxy.port()).await?);
    let blocks = blocks(600);
    let seen = under("a black hole of 10 s", &publisher, &owner, &blocks, async {
        begun(stand.operator(), &stand.spec).await?;
        proxy.black_hole(Way::Both);
        tokio::time::sleep(10 * SECOND).await;
        proxy.heal();
        Ok(())
    });
    // what went into the hole is missed although the pin lapsed meanwhile: nobody else was delivered to
    seen.await?.in_order(&blocks)?;
    Ok(())
}

#[tokio::test]
async fn a_release_that_cannot_reach_the_server_ends_and_the_unit_frees_itself() -> Result<()> {
    let stand = one_unit().await?;
    let proxy = Tcp::start(stand.server.port()).await?;
    let (next, owner) = (stand.broker().await?, broker_through(&stand, proxy.port()).await?);
    let blocks = blocks(10);
    publish_all(&next, &blocks, Duration::ZERO).await?;
    let mut feed = owner.feed(UNIT, WIDE).await?;
    take(&mut *feed, 10).await?;
    proxy.black_hole(Way::Both);
    let began = now();
    feed.halt().await?;
    let outcome = feed.release().await;
    assert_eq!(outcome.unwrap_err().class(), Class::Unavailable);
    ensure!(began.elapsed() < 60 * SECOND, "it took {:?}", began.elapsed());
    until(90 * SECOND, "it is an orphan", || async { next.release_orphan(UNIT).await.is_ok() }).await?;
    let mut feed = next.feed(UNIT, WIDE).await?;
    let mut seen = Seen::default();
    seen.take(&mut *feed, 10, 10).await?;
    seen.in_order(&blocks)
}

#[tokio::test]
async fn a_durable_or_a_stream_that_is_deleted_ends_delivery_with_one_error() -> Result<()> {
    for whole in [false, true] {
        let stand = one_unit().await?;
        let broker = stand.broker().await?;
        let mut feed = broker.feed(UNIT, WIDE).await?;
        let (stream, durable) = (stand.spec.names().partition_stream(0), stand.spec.names().durable(0));
        publish_all(&broker, &blocks(2), Duration::ZERO).await?;
        let taken = take(&mut *feed, 1).await?;
        let mut operator = stand.operator();
        if whole {
            operator.delete_stream(&stream).await?;
        } else {
            operator.delete_durable(&stream, &durable).await?;
        }
        let began = now();
        // what was taken before comes first
        let error = loop {
            match tokio::time::timeout(90 * SECOND, feed.next()).await.context("it waits")? {
                Ok(delivery) => ensure!(delivery.is_some(), "it ended without an error"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.class(), Class::NotFound, "{error}");
        ensure!(began.elapsed() < 30 * SECOND, "it took {:?}", began.elapsed());
        for _ in 0..3 {
            assert!(feed.next().await?.is_none());
        }
        assert!(broker.faults().last().is_some());
        // nothing hangs: the ack has nobody to confirm it
        let outcome = feed.settle().settle(&[taken[0].token], Verdict::Ack).await.remove(0);
        ensure!(outcome.is_err(), "{outcome:?}");
        feed.halt().await?;
        feed.release().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_durable_that_is_made_anew_under_a_feed_ends_it() -> Result<()> {
    let stand = one_unit().await?;
    let broker = stand.broker().await?;
    let mut feed = broker.feed(UNIT, WIDE).await?;
    publish_all(&broker, &blocks(3), Duration::ZERO).await?;
    take(&mut *feed, 3).await?;
    let (stream, durable) = (stand.spec.names().partition_stream(0), stand.spec.names().durable(0));
    let mut operator = stand.operator();
    let config = operator.consumer_info(&stream, &durable).await?["config"].take();
    operator.delete_durable(&stream, &durable).await?;
    operator.create_durable(&stream, &config).await?;
    let error = loop {
        match tokio::time::timeout(90 * SECOND, feed.next()).await.context("it waits")? {
            Ok(delivery) => ensure!(delivery.is_some(), "it ended without an error"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.class(), Class::NotFound, "{error}");
    // and a new one goes on where the durable stands
    drop(feed);
    let mut feed = broker.feed(UNIT, WIDE).await?;
    take(&mut *feed, 3).await?;
    Ok(())
}

#[tokio::test]
async fn a_consumer_leader_that_steps_down_under_load_loses_nothing() -> Result<()> {
    let three = Three::new().await?;
    let (publisher, owner) = (three.broker().await?, three.broker().await?);
    let blocks = blocks(2_500);
    let (stream, durable) = (three.stream(), three.durable());
    let seen = under("five step-downs of the consumer's leader", &publisher, &owner, &blocks, async {
        let mut operator = three.cluster.operator();
        begun(three.cluster.operator(), &three.spec).await?;
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(400)).await;
            // one that has no leader at the moment cannot step down
            while operator.step_down_consumer(&stream, &durable).await.is_err() {
                tokio::time::sleep(SECOND / 10).await;
            }
        }
        Ok(())
    });
    let seen = seen.await?;
    seen.in_order(&blocks)?;
    Ok(())
}

#[tokio::test]
async fn a_consumer_leader_that_is_killed_under_load_loses_nothing() -> Result<()> {
    let mut three = Three::new().await?;
    let (publisher, owner) = (three.broker().await?, three.broker().await?);
    let blocks = blocks(3_000);
    let (stream, durable) = (three.stream(), three.durable());
    let spec = three.spec.clone();
    let cluster = &mut three.cluster;
    let seen = under("kill -9 of the consumer's leader, twice", &publisher, &owner, &blocks, async {
        begun(cluster.operator(), &spec).await?;
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let look = || async { cluster.consumer_leader(&stream, &durable).await };
            let leader = until(90 * SECOND, "the consumer has a leader", look).await?;
            cluster.node_mut(leader).restart().await?;
        }
        Ok(())
    });
    seen.await?.in_order(&blocks)?;
    Ok(())
}
