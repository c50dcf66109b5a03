//! What one unit on NATS takes and settles a second, beside a bare loop of pulls and plain acks over the same client: for
//! blocks of 1, 50 and 500 rows of 256 bytes. Starts a server of its own.
//! `cargo run --profile quick -p wh-mq --features nats --example unit_rates`
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods, missing_docs, reason = "a measurement")]

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use std::time::{Duration, Instant};
use wh_mq::{AckToken, Broker, Budget, Unit, Verdict, nats};
use wh_nats::{Ack, Connection, Credentials, PullRequest, Pulled, Puller};
use wh_testkit::nats::{Options, PASSWORD, Server, Shape};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, defaults, renderer};
use wh_types::{Block, BlockId, Encoding, Entropy as _, OsEntropy, Secret, Table, Tenant, Timestamp};

const UNIT: Unit = Unit { partition: 0, shard: 0 };
const ROUNDS: usize = 3;

fn block(rows: u32, body: &Bytes) -> Block {
    Block {
        id: BlockId::draw(&OsEntropy),
        tenant: Tenant::default(),
        table: Table::new("t").unwrap(),
        received: Timestamp::default(),
        rows,
        decoded_bytes: 256 * rows,
        encoding: Encoding::Zstd,
        body: body.clone(),
        chain: None,
        trace: None,
    }
}

/// Rows of 256 bytes, half of it random: about what events compress to.
fn body(rows: u32) -> Bytes {
    let mut text = String::new();
    for _ in 0..rows {
        let mut row = String::from("{\"event\":\"page_view\",\"path\":\"/docs/getting-started\",\"k\":\"");
        while row.len() < 120 {
            row += &format!("{:016x}", OsEntropy.next_u64());
        }
        while row.len() < 253 {
            row.push('a');
        }
        text += &row[..253];
        text += "\"}\n";
    }
    wh_types::frame::encode(Encoding::Zstd, text.as_bytes()).unwrap()
}

async fn connect(server: &Server) -> Connection {
    let mut options = wh_nats::Options::new([server.url()]);
    options.credentials = Credentials::Password { user: Role::Both.user().into(), password: Secret::from(PASSWORD) };
    Connection::open(options).await.unwrap()
}

async fn fill(broker: &nats::Broker, rows: u32, body: &Bytes, blocks: usize) {
    let all: Vec<Block> = (0..blocks).map(|_| block(rows, body)).collect();
    for outcome in broker.publish(&all).await {
        outcome.unwrap();
    }
}

/// Pulls of 500, plain acks, the last one confirmed.
async fn bare(connection: &Connection, spec: &Spec, blocks: usize) -> Duration {
    let (stream, durable) = (spec.names().partition_stream(0), spec.names().durable(0));
    let mut puller = Puller::open(connection, &stream, &durable, defaults::PRIORITY_GROUP).await.unwrap();
    let (expires, idle_heartbeat) = (Duration::from_secs(5), Duration::from_secs(2));
    let (begun, mut taken, mut left, mut pin) = (Instant::now(), 0, 0, None);
    while taken < blocks {
        if left == 0 {
            left = 500;
            puller.pull(&PullRequest { batch: 500, expires, idle_heartbeat, pin: pin.clone() }).await.unwrap();
        }
        if let Some(Pulled::Delivered(delivered)) = puller.next().await {
            (left, taken, pin) = (left - 1, taken + 1, delivered.pin);
            if taken < blocks {
                connection.ack(&delivered.reply, Ack::Ack).await.unwrap();
            } else {
                connection.ack_confirmed(&delivered.reply, Ack::Ack, Duration::from_secs(60)).await.unwrap();
            }
        }
    }
    let took = begun.elapsed();
    connection.api().unpin(&stream, &durable, defaults::PRIORITY_GROUP).await.unwrap();
    puller.stop_pulling().await;
    took
}

/// A feed whose handler settles what has come, as a worker does: in batches, never waiting for the one before.
async fn unit(broker: &nats::Broker, blocks: usize) -> Duration {
    let budget = Budget { rows: 200_000, bytes: 256 << 20 };
    let mut feed = broker.feed(UNIT, budget).await.unwrap();
    let by = feed.settle();
    let mut acks = FuturesUnordered::new();
    let (begun, mut taken) = (Instant::now(), 0);
    while taken < blocks {
        let mut tokens: Vec<AckToken> = vec![feed.next().await.unwrap().unwrap().token];
        while tokens.len() < 1_000
            && let Some(next) = feed.next().now_or_never()
        {
            tokens.push(next.unwrap().unwrap().token);
        }
        taken += tokens.len();
        let by = by.clone();
        acks.push(async move {
            by.settle(&tokens, Verdict::Ack).await.into_iter().for_each(|outcome| outcome.unwrap());
        });
        while acks.next().now_or_never().flatten().is_some() {}
    }
    while acks.next().await.is_some() {}
    let took = begun.elapsed();
    feed.release().await.unwrap();
    took
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(rows: u32, blocks: usize, mut took: Vec<Duration>) -> f64 {
    took.sort();
    blocks as f64 * f64::from(rows) / took[took.len() / 2].as_secs_f64()
}

#[tokio::main]
async fn main() {
    println!("{:>5} {:>8} {:>14} {:>14} {:>7}", "rows", "blocks", "bare rows/s", "unit rows/s", "ratio");
    for (rows, blocks) in [(1, 60_000), (50, 20_000), (500, 8_000)] {
        let choices = Choices { partitions: 1, shards: 1, replicas: 1, file_store: 64 << 30, ..Choices::default() };
        let topology = Topology::new(Spec::new(choices).unwrap()).unwrap();
        let rights = Rights::new(&topology.spec, Role::Both).print(RightsFormat::Nats);
        let options = Options { jetstream: "max_file_store: 64G".into(), ..Options::default() };
        let server = Server::with(options.user(Role::Both.user(), rights)).await.unwrap();
        let files = renderer("nats-cli").unwrap().render(&topology).unwrap();
        let files = files.into_iter().map(|file| (file.name, file.text));
        server.operator().apply(files, &Shape::default()).await.unwrap();
        let writer =
            nats::Broker::open(connect(&server).await, nats::Options::new(topology.spec.clone())).await.unwrap();
        let (taker, connection, body) = (connect(&server).await, connect(&server).await, body(rows));
        let mut only = nats::Options::new(topology.spec.clone());
        only.role = Role::Ingest;
        let reader = nats::Broker::open(taker, only).await.unwrap();
        let (mut bares, mut units) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            fill(&writer, rows, &body, blocks).await;
            bares.push(bare(&connection, &topology.spec, blocks).await);
            fill(&writer, rows, &body, blocks).await;
            units.push(unit(&reader, blocks).await);
        }
        let (bare, unit) = (rate(rows, blocks, bares), rate(rows, blocks, units));
        println!("{rows:5} {blocks:8} {bare:14.0} {unit:14.0} {:6.0}%", 100.0 * unit / bare);
        reader.close().await;
        writer.close().await;
    }
}
