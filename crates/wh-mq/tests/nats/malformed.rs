//! Messages that the server stores and the client library cannot parse: what each does to a connection, what becomes of
//! everything else, and how an operator gets rid of one.

use crate::{
    raw::Raw,
    stand::{Stand, block, publish, table, tenant},
};
use anyhow::{Context as _, Result, ensure};
use std::time::Duration;
use wh_mq::{Broker as _, Budget, Feed, From, Happening, Unit, Verdict, nats};
use wh_testkit::{
    nats::{Options, Shape},
    until,
};
use wh_topology::{Role, route};
use wh_types::Block;

const SOON: Duration = Duration::from_secs(60);
const BUDGET: Budget = Budget { rows: 1_000, bytes: 1 << 20 };

/// Header blocks that no client of ours can parse.
const MALFORMED: [(&str, &[u8]); 3] = [
    ("a value that is not UTF-8", b"NATS/1.0\r\nWh-Rows: \xff\xfe\r\n\r\n"),
    ("a line without a colon", b"NATS/1.0\r\nWh-Rows 5\r\n\r\n"),
    ("a name with a space", b"NATS/1.0\r\nWh Rows: 5\r\n\r\n"),
];

fn unit(stand: &Stand, block: &Block) -> Unit {
    let choices = stand.spec.choices();
    let route = route(&block.tenant, &block.table, choices.partitions, choices.shards);
    Unit { partition: route.partition, shard: route.shard }
}

/// Names of tables of both units: one that gets the malformed message, one that has nothing to do with it.
fn tables(stand: &Stand) -> Result<(String, String)> {
    let of = |shard| (0..99).map(|n| format!("t{n}")).find(|name| unit(stand, &block(name, 1)).shard == shard);
    of(0).zip(of(1)).context("tables of both units")
}

async fn settle(feed: &mut dyn Feed) -> Result<Block> {
    let delivery = tokio::time::timeout(SOON, feed.next()).await??.context("a block")?;
    for outcome in feed.settle().settle(&[delivery.token], Verdict::Ack).await {
        // a connection that breaks leaves an ack in doubt, and it is sent again
        drop(outcome);
    }
    Ok(delivery.block)
}

async fn stored(broker: &nats::Broker, block: &Block) -> Result<()> {
    // a break leaves an outcome unknown; the same block is stored once
    until(SOON, "it is stored", || publish(broker, block)).await?;
    Ok(())
}

#[tokio::test]
async fn a_malformed_message_stops_its_unit_and_nothing_else_and_an_operator_can_remove_it() -> Result<()> {
    let shape = Shape { pinned_ttl: Some(Duration::from_secs(2)), ..Shape::default() };
    let stand = Stand::with(crate::stand::choices(), &shape, Options::default()).await?;
    let (struck, other) = tables(&stand)?;
    let mut options = nats::Options::new(stand.spec.clone());
    options.role = Role::Ingest;
    let connection = stand.connect().await?;
    let broker = nats::Broker::open(connection.clone(), options.clone()).await?;
    let writer = stand.broker_on(stand.connect().await?).await?;
    let (before, stream) = (block(&struck, 1), stand.spec.names().partition_stream(0));
    let (bad_unit, good_unit) = (unit(&stand, &before), unit(&stand, &block(&other, 1)));
    let mut bad = broker.feed(bad_unit, BUDGET).await?;
    let mut good = broker.feed(good_unit, BUDGET).await?;
    stored(&writer, &before).await?;
    ensure!(settle(&mut *bad).await?.id == before.id);
    drop(writer);

    // the server takes it as it is
    let subject = format!("wh.ingest.0.{}.{}.{struck}", bad_unit.shard, tenant());
    Raw::connect(&stand).await?.publish(&subject, MALFORMED[0].1, b"{}").await?;
    let last = || async { anyhow::Ok(stand.operator().stream_info(&stream).await?["state"]["last_seq"] == 2) };
    until(SOON, "it is stored", || async { last().await.is_ok_and(|stored| stored) }).await?;

    // the unit stands still, is said to, and asks for it less and less often
    until(SOON, "its unit stands still", || async { broker.stalled().contains(&bad_unit) }).await?;
    let breaks = connection.generation();
    ensure!(breaks > 3, "{breaks}");
    // meanwhile everything else of the process goes on
    for _ in 0..20 {
        let next = block(&other, 1);
        stored(&broker, &next).await?;
        ensure!(settle(&mut *good).await?.id == next.id);
    }
    ensure!(!broker.stalled().contains(&good_unit));

    // the owner goes; whoever parses nothing takes the message out of the queue
    let after = block(&struck, 1);
    stored(&broker, &after).await?;
    bad.release().await.ok();
    let durable = stand.spec.names().durable(bad_unit.shard);
    let mut raw = Raw::connect(&stand).await?;
    let taken = async {
        while !raw.take(&stream, &durable).await? {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(SOON, taken).await.context("nobody is pinned any more")??;
    stand.operator().ask(&format!("CONSUMER.UNPIN.{stream}.{durable}"), r#"{"group":"wavehouse"}"#).await?;
    let mut again = broker.feed(bad_unit, BUDGET).await?;
    ensure!(settle(&mut *again).await?.id == after.id, "the block behind it");
    Ok(())
}

#[tokio::test]
async fn each_malformed_form_is_stored_and_breaks_who_hears_it_once() -> Result<()> {
    for (form, headers) in MALFORMED {
        let stand = Stand::new().await?;
        let connection = stand.connect().await?;
        let mut heard = connection.subscribe("wh.hist.>").await?;
        connection.round_trip().await?;
        let subject = format!("wh.ingest.0.0.{}.t", tenant());
        Raw::connect(&stand).await?.publish(&subject, headers, b"{}").await?;
        until(SOON, form, || async { connection.generation() == 2 }).await?;
        ensure!(stand.messages().await? == 1, "{form}: the server stores it");
        // a live subscription is sent it once: the next connection lasts
        until(SOON, "it is connected", || async { connection.round_trip().await }).await?;
        let broker = stand.broker_on(stand.connect().await?).await?;
        stored(&broker, &block("u", 1)).await?;
        let next = tokio::time::timeout(SOON, heard.next()).await?.context("the next message")?;
        ensure!(next.subject().ends_with(".u"), "{form}: {next:?}");
        ensure!(connection.generation() == 2, "{form}: {}", connection.generation());
    }
    Ok(())
}

/// Thirty seconds long: so long a process looks for what it missed in a history that breaks its connection.
#[tokio::test]
async fn live_readers_are_told_of_a_gap_where_a_malformed_message_was() -> Result<()> {
    let stand = Stand::new().await?;
    let writer = stand.broker().await?;
    let mut options = nats::Options::new(stand.spec.clone());
    options.role = Role::Api;
    let reading = nats::Broker::open(stand.connect().await?, options).await?;
    let mut history = reading.history(&tenant(), &table("t"), From::Now).await?;
    let mut next = async || {
        let next = tokio::time::timeout(3 * SOON, history.next()).await??;
        next.context("the end")
    };
    let first = block("t", 1);
    stored(&writer, &first).await?;
    while !matches!(next().await?, Happening::Block(_, block) if block.id == first.id) {}
    let subject = format!("wh.ingest.0.0.{}.u", tenant());
    Raw::connect(&stand).await?.publish(&subject, MALFORMED[0].1, b"{}").await?;
    // what is stored while the connection breaks may be lost with it, so the next block waits
    while !matches!(next().await?, Happening::Gap(_)) {}
    let last = block("t", 1);
    stored(&writer, &last).await?;
    while !matches!(next().await?, Happening::Block(_, block) if block.id == last.id) {}
    Ok(())
}
