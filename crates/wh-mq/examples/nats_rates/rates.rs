//! Blocks published, and pulled and settled, beside a bare client of the same bytes: what one has published the other
//! pulls, so that the work queue is empty again after each round. The bare publisher's bytes of headers are in two headers,
//! ours in six, which cost the client library that parses them; so a bare client pulls the queue's own messages, too.

use super::{
    PLACES,
    blocks::{self, HEADER_BYTES},
    cost,
    setup::Setup,
};
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use std::{
    process::Command,
    time::{Duration, Instant},
};
use wh_mq::{AckToken, Broker, Budget, Unit, Verdict, nats};
use wh_testkit::nats::PASSWORD;
use wh_topology::{Role, defaults};

const UNIT: Unit = Unit { partition: 0, shard: 0 };
/// Tables with many blocks a call, and tables with one block in flight each.
const FEW: usize = 4;
const MANY: usize = 1024;
/// Longer than this without a block is a stall.
const STALL: Duration = Duration::from_secs(10);

/// One side's times.
#[derive(Default)]
struct Times {
    took: Vec<Duration>,
    server: Vec<Duration>,
    client: Vec<Duration>,
    longest: Duration,
}

pub(crate) async fn run(setup: &mut Setup, bare: &str, rounds: u64) {
    let (server, url) = (setup.server.process().id(), setup.server.url());
    let bare = (bare, url.as_str());
    println!(
        "— rows/s, median of {rounds} rounds; in brackets seconds of processor time a million messages, server and client"
    );
    for (rows, count) in [(1, 60_000), (50, 20_000), (500, 6_000)] {
        let body = blocks::body(rows);
        println!("\nblocks of {rows} rows of 256 bytes, {} bytes compressed, {count} a round", body.len());
        let [mut few, mut many, mut calls, mut tables, mut heard] = [const { Times::new() }; 5];
        let [mut few_pull, mut many_pull, mut few_unit, mut many_unit, mut own_pull] = [const { Times::new() }; 5];
        let ingest = setup.broker(PLACES[0], Role::Ingest).await;
        for _ in 0..rounds {
            few.add(server, raw_publish(bare, FEW, count, &body)).await;
            few_pull.add(server, raw_pull(bare, count)).await;
            calls.add(server, publish_in_calls(&ingest, rows, count, &body)).await;
            few_unit.add(server, settle(&ingest, count)).await;
            publish_in_calls(&ingest, rows, count, &body).await;
            own_pull.add(server, raw_pull(bare, count)).await;
            many.add(server, raw_publish(bare, MANY, count, &body)).await;
            many_pull.add(server, raw_pull(bare, count)).await;
            tables.add(server, publish(&ingest, rows, count, &body)).await;
            many_unit.add(server, settle(&ingest, count)).await;
            let both = setup.broker(PLACES[0], Role::Both).await;
            heard.add(server, publish(&both, rows, count, &body)).await;
            both.close().await;
            settle(&ingest, count).await;
            setup.server.operator().purge(&PLACES[0].spec().names().history).await.unwrap();
        }
        ingest.close().await;
        few.line("4 tables: bare publisher, window 1024", rows, count, None);
        calls.line("  queue, calls of 256 blocks", rows, count, Some(&few));
        few_pull.line("  bare pull and plain ack", rows, count, None);
        few_unit.line("  feed, settled in batches", rows, count, Some(&few_pull));
        own_pull.line("  bare pull of the queue's own messages", rows, count, None);
        few_unit.line("  feed, beside that", rows, count, Some(&own_pull));
        many.line("1024 tables: bare publisher, window 1024", rows, count, None);
        tables.line("  queue, one block in flight each", rows, count, Some(&many));
        heard.line("  the same, and it hears the history", rows, count, Some(&many));
        many_pull.line("  bare pull and plain ack", rows, count, None);
        many_unit.line("  feed, settled in batches", rows, count, Some(&many_pull));
    }
}

impl Times {
    const fn new() -> Self {
        Self { took: Vec::new(), server: Vec::new(), client: Vec::new(), longest: Duration::ZERO }
    }

    /// `measure` says its time, its longest wait for a block, and the processor time of another process that did it.
    async fn add(&mut self, server: u32, measure: impl Future<Output = Measured>) {
        let own = std::process::id();
        let before = (cost::cpu(server), cost::cpu(own));
        let measured = measure.await;
        self.server.push(cost::cpu(server) - before.0);
        self.client.push(measured.other.unwrap_or_else(|| cost::cpu(own) - before.1));
        self.took.push(measured.took);
        self.longest = self.longest.max(measured.longest);
    }

    #[expect(clippy::cast_precision_loss, reason = "rates")]
    fn line(&self, what: &str, rows: u32, count: usize, beside: Option<&Self>) {
        let rate = |times: &Self| count as f64 * f64::from(rows) / median(&times.took).as_secs_f64();
        let cpu = |times: &[Duration]| median(times).as_secs_f64() * 1e6 / count as f64;
        let ratio = beside.map(|beside| format!("{:4.0} %", 100.0 * rate(self) / rate(beside))).unwrap_or_default();
        let stall = if self.longest > STALL { "  STALLED" } else { "" };
        println!(
            "{what:44} {:>12.0} {ratio:6} ({:4.1}, {:4.1})  longest wait {:?}{stall}",
            rate(self),
            cpu(&self.server),
            cpu(&self.client),
            Duration::from_millis(u64::try_from(self.longest.as_millis()).unwrap()),
        );
    }
}

struct Measured {
    took: Duration,
    longest: Duration,
    other: Option<Duration>,
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 2]
}

/// When the last block came, and the longest that one was waited for.
struct Gaps {
    begun: Instant,
    last: Instant,
    longest: Duration,
}

impl Gaps {
    fn new() -> Self {
        let now = Instant::now();
        Self { begun: now, last: now, longest: Duration::ZERO }
    }

    fn seen(&mut self) {
        let now = Instant::now();
        self.longest = self.longest.max(now - self.last);
        self.last = now;
    }

    fn end(self) -> Measured {
        Measured { took: self.begun.elapsed(), longest: self.longest, other: None }
    }
}

async fn raw((bare, url): (&str, &str), mode: &str, args: &[&str]) -> Measured {
    let mut command = Command::new(bare);
    command.args([mode, url, PLACES[0].prefix, PASSWORD]).args(args);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|number| Duration::from_secs_f64(number.parse().unwrap()));
    Measured { took: numbers.next().unwrap(), longest: Duration::ZERO, other: numbers.next() }
}

async fn raw_publish(bare: (&str, &str), tables: usize, count: usize, body: &Bytes) -> Measured {
    let (spec, count) = (PLACES[0].spec(), count.to_string());
    let (subject, tables) = (format!("{}.ingest.0.0.0.t", spec.names().prefix), tables.to_string());
    let (body, headers) = (body.len().to_string(), HEADER_BYTES.to_string());
    raw(bare, "publish", &[&subject, &tables, &count, &body, &headers]).await
}

async fn raw_pull(bare: (&str, &str), count: usize) -> Measured {
    let (spec, count) = (PLACES[0].spec(), count.to_string());
    let (stream, durable) = (spec.names().partition_stream(0), spec.names().durable(0));
    raw(bare, "pull", &[&stream, &durable, defaults::PRIORITY_GROUP, &count]).await
}

/// As coalescers publish: each table waits for its block before the next.
async fn publish(broker: &nats::Broker, rows: u32, count: usize, body: &Bytes) -> Measured {
    let mut gaps = Gaps::new();
    let one = |table| async move {
        broker.publish(&[blocks::block(table, rows, body)]).await.pop().unwrap().unwrap();
        table
    };
    let mut under_way: FuturesUnordered<_> = (0..MANY.min(count)).map(one).collect();
    let mut begun = under_way.len();
    while let Some(table) = under_way.next().await {
        gaps.seen();
        if begun < count {
            begun += 1;
            under_way.push(one(table));
        }
    }
    gaps.end()
}

/// Four calls at a time, each of many blocks of one table, which are stored in order.
async fn publish_in_calls(broker: &nats::Broker, rows: u32, count: usize, body: &Bytes) -> Measured {
    let mut gaps = Gaps::new();
    let call = |table: usize| {
        let blocks: Vec<_> = (0..256).map(|_| blocks::block(table % FEW, rows, body)).collect();
        async move {
            broker.publish(&blocks).await.into_iter().for_each(|outcome| _ = outcome.unwrap());
            blocks.len()
        }
    };
    let (mut under_way, mut begun, mut done) = (FuturesUnordered::new(), 0, 0);
    while done < count {
        while under_way.len() < FEW && begun * 256 < count {
            under_way.push(call(begun));
            begun += 1;
        }
        done += under_way.next().await.unwrap();
        gaps.seen();
    }
    let mut measured = gaps.end();
    measured.took = measured.took.mul_f64(ratio(count, done));
    // what is beyond the round's count is pulled here, not there
    if done > count {
        settle(broker, done - count).await;
    }
    measured
}

#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b as f64
}

/// A feed whose owner settles what has come, as a worker does: in batches, never waiting for the one before.
async fn settle(broker: &nats::Broker, count: usize) -> Measured {
    let mut feed = broker.feed(UNIT, Budget { rows: 200_000, bytes: 256 << 20 }).await.unwrap();
    let by = feed.settle();
    let (mut acks, mut taken, mut gaps) = (FuturesUnordered::new(), 0, Gaps::new());
    while taken < count {
        let mut tokens: Vec<AckToken> = vec![feed.next().await.unwrap().unwrap().token];
        gaps.seen();
        while tokens.len() < 1_000.min(count - taken)
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
    let measured = gaps.end();
    feed.release().await.unwrap();
    measured
}
