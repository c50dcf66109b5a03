//! Everything the queue does on a server, one operation a case.

use crate::stand::{block, tenant};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use std::time::Duration;
use wh_mq::{
    Broker as _, Budget, DeadLetter, DeadLetterId, DeadLetterQuery, Delivery, Feed, From, Happening, Receipt, Unit,
    Verdict,
    nats::{self, boot::Check},
};
use wh_nats::{Bucket, Connection, DirectGet};
use wh_testkit::{nats::Operator, until};
use wh_topology::{Role, Severity, Spec, route};
use wh_types::{Cursor, Epoch, RowCursor, Table, Timestamp};

const SOON: Duration = Duration::from_secs(60);
/// The unit whose rights are taken away line by line.
const UNIT: Unit = Unit { partition: 0, shard: 1 };
const STREAM: &str = "WH_INGEST_0";
const DURABLE: &str = "wh-ingest-1";
const BUCKET: &str = "wh_coord";

/// A process, and the operator who looks at what it did.
pub(super) struct Actor {
    pub(super) connection: Connection,
    pub(super) spec: Spec,
    pub(super) role: Role,
    pub(super) operator: tokio::sync::Mutex<Operator>,
}

/// An operation.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) roles: &'static [Role],
    /// Whether it needs streams and durables that nobody used.
    pub(super) alone: bool,
    pub(super) run: for<'a> fn(&'a Actor) -> BoxFuture<'a, Result<()>>,
}

const API: &[Role] = &[Role::Api, Role::Both];
const INGEST: &[Role] = &[Role::Ingest, Role::Both];
const EVERYONE: &[Role] = &Role::ALL;

macro_rules! case {
    ($roles:expr, $name:literal, $run:path) => {
        Case { name: $name, roles: $roles, alone: false, run: |actor| $run(actor).boxed() }
    };
    (alone, $roles:expr, $name:literal, $run:path) => {
        Case { alone: true, ..case!($roles, $name, $run) }
    };
}

pub(super) const CASES: &[Case] = &[
    case!(EVERYONE, "ask", ask),
    case!(EVERYONE, "round trip", round_trip),
    case!(EVERYONE, "start", start),
    case!(EVERYONE, "open", open),
    case!(EVERYONE, "publish", publish),
    case!(EVERYONE, "look a block up", look_up),
    case!(EVERYONE, "list dead letters", list),
    case!(alone, EVERYONE, "purge a dead letter", purge),
    case!(EVERYONE, "say what the queue holds", status),
    case!(API, "follow a table live", live),
    case!(alone, API, "replay a table", replay),
    case!(API, "look the rows of a block up", stored_rows),
    case!(EVERYONE, "see how far a unit is", progress),
    case!(API, "hear progress", hear_progress),
    case!(INGEST, "park a row", park),
    case!(alone, INGEST, "deliver", deliver),
    case!(alone, INGEST, "settle", settle),
    case!(alone, INGEST, "hand a unit over", hand_over),
    case!(alone, INGEST, "take a unit over", take_over),
    case!(INGEST, "find units without an owner", unowned),
    case!(INGEST, "announce progress", announce),
    case!(INGEST, "write a lease", write_lease),
    case!(INGEST, "read a lease", read_lease),
    case!(INGEST, "read all leases", read_leases),
    case!(INGEST, "hear of leases", hear_leases),
];

impl Actor {
    async fn broker(&self) -> Result<nats::Broker> {
        let options = nats::Options { role: self.role, ..nats::Options::new(self.spec.clone()) };
        Ok(nats::Broker::open(self.connection.clone(), options).await?)
    }

    /// A table of the unit.
    fn table(&self) -> Result<Table> {
        let choices = self.spec.choices();
        for n in 0..1_000 {
            let table = Table::new(&format!("t{n}"))?;
            if route(&tenant(), &table, choices.partitions, choices.shards).shard == UNIT.shard {
                return Ok(table);
            }
        }
        anyhow::bail!("no table of the unit")
    }

    /// A block of the unit, stored by us.
    async fn stored(&self, broker: &nats::Broker) -> Result<Cursor> {
        let outcomes = broker.publish(&[block(self.table()?.as_str(), 2)]).await;
        match outcomes.into_iter().next().context("one outcome")?? {
            Receipt::Stored(cursor) => Ok(cursor),
            Receipt::Duplicate(_) => anyhow::bail!("a new block is no duplicate"),
        }
    }

    /// A dead letter, parked by the operator as a worker would have.
    async fn parked(&self) -> Result<()> {
        let subject = format!("wh.dlq.acme.{}", self.table()?);
        self.operator.lock().await.request(&subject, "{}").await?;
        Ok(())
    }
}

async fn ask(actor: &Actor) -> Result<()> {
    actor.connection.api().stream_info(STREAM).await?;
    Ok(())
}

async fn round_trip(actor: &Actor) -> Result<()> {
    Ok(actor.connection.round_trip().await?)
}

async fn start(actor: &Actor) -> Result<()> {
    let report = Check::new(&actor.connection, &actor.spec, actor.role).run().await?;
    let required: Vec<_> = report.of(Severity::Required).collect();
    ensure!(report.is_sound(), "{required:#?}");
    Ok(())
}

async fn open(actor: &Actor) -> Result<()> {
    actor.broker().await?.close().await;
    Ok(())
}

async fn publish(actor: &Actor) -> Result<()> {
    let broker = actor.broker().await?;
    actor.stored(&broker).await?;
    Ok(())
}

/// As a worker does it, which follows no history.
async fn look_up(actor: &Actor) -> Result<()> {
    let subject = format!("wh.hist.acme.{}", actor.table()?);
    actor.connection.api().direct_get("WH_HISTORY", DirectGet::LastOf(&subject)).await?;
    Ok(())
}

async fn list(actor: &Actor) -> Result<()> {
    let broker = actor.broker().await?;
    broker.dead_letters(&tenant(), &DeadLetterQuery { limit: 10, ..DeadLetterQuery::default() }).await?;
    Ok(())
}

async fn purge(actor: &Actor) -> Result<()> {
    actor.parked().await?;
    actor.connection.api().message_delete("WH_DLQ", 1).await?;
    let left = actor.operator.lock().await.stream_info("WH_DLQ").await?;
    ensure!(left["state"]["messages"] == 0, "{left}");
    Ok(())
}

async fn status(actor: &Actor) -> Result<()> {
    ensure!(actor.broker().await?.status().await?.accepting);
    Ok(())
}

async fn next_block(history: &mut dyn wh_mq::History) -> Result<Cursor> {
    loop {
        match tokio::time::timeout(SOON, history.next()).await?? {
            Some(Happening::Block(cursor, _)) => return Ok(cursor),
            Some(Happening::Live) => {}
            other => anyhow::bail!("{other:?}"),
        }
    }
}

async fn live(actor: &Actor) -> Result<()> {
    let broker = actor.broker().await?;
    let mut history = broker.history(&tenant(), &actor.table()?, From::Now).await?;
    let stored = actor.stored(&broker).await?;
    ensure!(next_block(&mut *history).await? == stored);
    Ok(())
}

async fn replay(actor: &Actor) -> Result<()> {
    let broker = actor.broker().await?;
    let stored = actor.stored(&broker).await?;
    let since = From::Time(Timestamp::from_millis(0));
    // by a process that did not hear it
    let other = actor.broker().await?;
    let mut history = other.history(&tenant(), &actor.table()?, since).await?;
    ensure!(next_block(&mut *history).await? == stored);
    Ok(())
}

async fn stored_rows(actor: &Actor) -> Result<()> {
    let broker = actor.broker().await?;
    let block = block(actor.table()?.as_str(), 2);
    let stored = broker.publish(std::slice::from_ref(&block)).await.remove(0)?;
    let other = actor.broker().await?;
    let rows = other.stored_rows(&block.tenant, &block.table, block.id, stored.cursor()).await?;
    ensure!(rows == Some(2), "{rows:?}");
    Ok(())
}

/// Where no worker has announced anything yet (decision D32).
async fn progress(actor: &Actor) -> Result<()> {
    actor.connection.api().consumer_info(STREAM, DURABLE).await?;
    Ok(())
}

async fn hear_progress(actor: &Actor) -> Result<()> {
    let mut heard = actor.connection.subscribe("wh.done.>").await?;
    actor.connection.round_trip().await?;
    actor.operator.lock().await.publish("wh.done.acme.t", "{}").await?;
    tokio::time::timeout(SOON, heard.next()).await?.context("it was announced")?;
    Ok(())
}

async fn announce(actor: &Actor) -> Result<()> {
    actor.connection.send("wh.done.acme.t", None, None, Bytes::from_static(b"{}")).await?;
    Ok(actor.connection.round_trip().await?)
}

async fn park(actor: &Actor) -> Result<()> {
    let broker = actor.broker().await?;
    let letter = DeadLetter {
        id: DeadLetterId(RowCursor { block: Cursor { epoch: Epoch(7), sequence: 1 }, row: 0 }),
        tenant: tenant(),
        table: actor.table()?,
        body: Bytes::from_static(b"{}"),
        reason: "no such column".into(),
        code: "16".into(),
        column: None,
        attempted: Timestamp::from_millis(2),
        received: Timestamp::from_millis(1),
        retry_until: None,
    };
    for outcome in broker.dead_letter(&[letter]).await {
        outcome?;
    }
    Ok(())
}

/// The unit's feed with its one block, and the queue that they live as long as.
async fn delivered(actor: &Actor) -> Result<(nats::Broker, Box<dyn Feed>, Delivery)> {
    let broker = actor.broker().await?;
    actor.stored(&broker).await?;
    let mut feed = broker.feed(UNIT, Budget { rows: 100, bytes: 1 << 20 }).await?;
    let delivery = tokio::time::timeout(SOON, feed.next()).await??.context("a delivery")?;
    Ok((broker, feed, delivery))
}

async fn deliver(actor: &Actor) -> Result<()> {
    let (_broker, _feed, delivery) = delivered(actor).await?;
    ensure!(delivery.attempt == 1 && delivery.block.rows == 2);
    Ok(())
}

async fn settle(actor: &Actor) -> Result<()> {
    let (_broker, feed, delivery) = delivered(actor).await?;
    for outcome in feed.settle().settle(&[delivery.token], Verdict::Ack).await {
        outcome?;
    }
    let info = actor.operator.lock().await.consumer_info(STREAM, DURABLE).await?;
    ensure!(info["num_ack_pending"] == 0 && info["ack_floor"]["consumer_seq"] == 1, "{info}");
    Ok(())
}

async fn hand_over(actor: &Actor) -> Result<()> {
    let (_broker, mut feed, delivery) = delivered(actor).await?;
    for outcome in feed.settle().settle(&[delivery.token], Verdict::Ack).await {
        outcome?;
    }
    feed.halt().await?;
    feed.release().await?;
    let unpinned = || async {
        let info = actor.operator.lock().await.consumer_info(STREAM, DURABLE).await?;
        ensure!(info["priority_groups"][0]["pinned_client_id"].is_null(), "{info}");
        anyhow::Ok(())
    };
    // well before the pin would lapse by itself
    until(SOON / 2, "nobody is pinned", unpinned).await?;
    Ok(())
}

/// From an owner that is gone and had something.
async fn take_over(actor: &Actor) -> Result<()> {
    drop(delivered(actor).await?);
    let broker = actor.broker().await?;
    until(SOON, "the unit is quiet", || broker.release_orphan(UNIT)).await?;
    let info = actor.operator.lock().await.consumer_info(STREAM, DURABLE).await?;
    ensure!(info["num_pending"] == 1 && info["num_ack_pending"] == 0, "{info}");
    Ok(())
}

async fn unowned(actor: &Actor) -> Result<()> {
    let broker = actor.broker().await?;
    actor.stored(&broker).await?;
    let look = || async { broker.unowned().await.map(|units| units.contains(&UNIT)).ok().filter(|found| *found) };
    until(SOON, "the unit has no owner", look).await?;
    Ok(())
}

async fn write_lease(actor: &Actor) -> Result<()> {
    let bucket = Bucket::open(&actor.connection, BUCKET).await?;
    let revision = bucket.create("lease.ingest.0", Bytes::from_static(b"a")).await?;
    let revision = bucket.update("lease.ingest.0", Bytes::from_static(b"b"), revision).await?;
    bucket.delete("lease.ingest.0", revision).await?;
    Ok(())
}

async fn read_lease(actor: &Actor) -> Result<()> {
    let bucket = Bucket::open(&actor.connection, BUCKET).await?;
    bucket.read("lease.ingest.0").await?;
    Ok(())
}

async fn read_leases(actor: &Actor) -> Result<()> {
    let bucket = Bucket::open(&actor.connection, BUCKET).await?;
    bucket.read_many("lease.ingest.*").await?;
    Ok(())
}

async fn hear_leases(actor: &Actor) -> Result<()> {
    ensure!(heard_lease(actor).await?, "what came after the lease was heard, and the lease was not");
    Ok(())
}

/// Whether a lease that the operator writes is heard of before what the operator says next.
pub(super) async fn heard_lease(actor: &Actor) -> Result<bool> {
    let bucket = Bucket::open(&actor.connection, BUCKET).await?;
    let mut leases = bucket.watch("lease.>").await?;
    let next = format!("{}.next", actor.spec.names().inbox());
    let mut after = actor.connection.subscribe(&next).await?;
    actor.connection.round_trip().await?;
    let mut operator = actor.operator.lock().await;
    // the interest of a leafnode reaches its hub in its own time
    let reached = async {
        loop {
            operator.publish(&next, "hello").await?;
            if tokio::time::timeout(Duration::from_millis(50), after.next()).await.is_ok() {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(SOON, reached).await??;
    operator.publish("$KV.wh_coord.lease.ingest.1", "x").await?;
    operator.publish(&next, "last").await?;
    let last = async { while after.next().await.is_some_and(|message| message.body() != "last") {} };
    tokio::select! {
        biased;
        change = leases.next() => Ok(change.context("a change")?.key == "lease.ingest.1"),
        outcome = tokio::time::timeout(SOON, last) => { outcome?; Ok(false) }
    }
}
