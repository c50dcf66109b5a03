//! What a history on NATS shows a second: replay of a table, and live to many readers. Starts a server of its own.
//! `cargo run --profile quick -p wh-mq --features nats --example history_rates`
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods, missing_docs, reason = "a measurement")]

use bytes::Bytes;
use std::time::Instant;
use wh_mq::{Broker, From, Happening, nats};
use wh_nats::{Connection, Credentials};
use wh_testkit::nats::{Options, PASSWORD, Server, Shape};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, renderer};
use wh_types::{Block, BlockId, Encoding, Entropy as _, OsEntropy, Secret, Table, Tenant, Timestamp};

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

async fn open(server: &Server, spec: &Spec) -> nats::Broker {
    let mut options = wh_nats::Options::new([server.url()]);
    options.credentials = Credentials::Password { user: Role::Both.user().into(), password: Secret::from(PASSWORD) };
    let connection = Connection::open(options).await.unwrap();
    nats::Broker::open(connection, nats::Options::new(spec.clone())).await.unwrap()
}

async fn shown(broker: &nats::Broker, from: From, mut blocks: usize) {
    let mut history = broker.history(&Tenant::default(), &Table::new("t").unwrap(), from).await.unwrap();
    while blocks > 0 {
        match history.next().await.unwrap().unwrap() {
            Happening::Block(..) => blocks -= 1,
            Happening::Live => {}
            Happening::Gap(gap) => panic!("{gap:?}"),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn say(what: &str, rows: u32, blocks: usize, begun: Instant) {
    let (rate, took) = (blocks as f64 * f64::from(rows) / begun.elapsed().as_secs_f64(), begun.elapsed());
    println!("{what:24} {rows:4} rows a block {blocks:7} blocks {rate:12.0} rows/s {took:8.0?}");
}

#[tokio::main]
async fn main() {
    for (rows, blocks) in [(1, 50_000), (50, 20_000), (500, 8_000)] {
        let choices = Choices { partitions: 1, shards: 1, replicas: 1, file_store: 16 << 30, ..Choices::default() };
        let topology = Topology::new(Spec::new(choices).unwrap()).unwrap();
        let rights = Rights::new(&topology.spec, Role::Both).print(RightsFormat::Nats);
        let server = Server::with(Options::default().user(Role::Both.user(), rights)).await.unwrap();
        let files = renderer("nats-cli").unwrap().render(&topology).unwrap();
        let files = files.into_iter().map(|file| (file.name, file.text));
        server.operator().apply(files, &Shape::default()).await.unwrap();
        let (writer, body) = (open(&server, &topology.spec).await, body(rows));
        let all: Vec<Block> = (0..blocks).map(|_| block(rows, &body)).collect();
        let begun = Instant::now();
        let mut first = None;
        for some in all.chunks(1_000) {
            for outcome in writer.publish(some).await {
                first.get_or_insert(outcome.unwrap().cursor());
            }
        }
        say("publish", rows, blocks, begun);
        println!("{:24} {} bytes a block", "", body.len());
        let from = From::After(wh_types::Cursor { sequence: 0, ..first.unwrap() });
        let other = open(&server, &topology.spec).await;
        let begun = Instant::now();
        shown(&other, from, blocks).await;
        say("replay", rows, blocks, begun);
        let begun = Instant::now();
        shown(&other, from, blocks).await;
        say("replay again", rows, blocks, begun);

        // a table heard once, for many readers
        let some: Vec<Block> = (0..blocks / 10).map(|_| block(rows, &body)).collect();
        for readers in [1, 200] {
            let followed = (0..readers).map(|_| shown(&other, From::Now, some.len()));
            let begun = Instant::now();
            let publish = async {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                for chunk in some.chunks(1_000) {
                    let again: Vec<Block> =
                        chunk.iter().map(|one| Block { id: BlockId::draw(&OsEntropy), ..one.clone() }).collect();
                    writer.publish(&again).await;
                }
            };
            tokio::join!(futures::future::join_all(followed), publish);
            say(&format!("live, {readers} readers"), rows, some.len() * readers, begun);
        }
        other.close().await;
        writer.close().await;
    }
}
