//! How soon the next owner of a unit has rows: after a release, and after a kill.

use super::{PLACES, blocks, setup, setup::Setup};
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use wh_mq::{Broker, Budget, Feed, Unit, Verdict, nats};
use wh_topology::Role;
use wh_types::Class;

const UNIT: Unit = Unit { partition: 0, shard: 0 };
const BUDGET: Budget = Budget { rows: 20_000, bytes: 64 << 20 };
const HELD: usize = 50;

pub(crate) async fn run(setup: &mut Setup) {
    println!("\n— ownership, blocks of 50 rows waiting");
    let (one, two) = (setup.broker(PLACES[0], Role::Ingest).await, setup.broker(PLACES[0], Role::Ingest).await);
    let body = blocks::body(50);
    let mut times = Vec::new();
    for _ in 0..20 {
        fill(&one, &body, 2 * HELD).await;
        let mut feed = take(&one, HELD).await;
        let begun = Instant::now();
        feed.halt().await.unwrap();
        let halted = begun.elapsed();
        let by = feed.settle();
        while let Some(more) = feed.next().await.unwrap() {
            by.settle(&[more.token], Verdict::Ack).await.pop().unwrap().unwrap();
        }
        fill(&one, &body, HELD).await;
        let begun = Instant::now();
        feed.release().await.unwrap();
        let released = begun.elapsed();
        let mut next = two.feed(UNIT, BUDGET).await.unwrap();
        let first = next.next().await.unwrap().unwrap();
        times.push((begun.elapsed() - released, released, halted));
        let by = next.settle();
        by.settle(&[first.token], Verdict::Ack).await.pop().unwrap().unwrap();
        drain(next).await;
    }
    times.sort();
    let (rows, released, halted) = times[times.len() / 2];
    let worst = times[times.len() - 1].0;
    println!(
        "a halt takes {halted:.1?}, a release {released:.1?}; from the release to the next owner's first block {rows:.1?}, \
         at worst {worst:.1?}"
    );

    fill(&one, &body, 2 * HELD).await;
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["hold", &setup.server.url()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let out = holder.stdout.take().unwrap();
    let said = tokio::task::spawn_blocking(move || {
        BufReader::new(out).read_line(&mut said).unwrap();
        said
    });
    assert_eq!(said.await.unwrap().trim(), "holding");
    holder.kill().unwrap();
    let begun = Instant::now();
    holder.wait().unwrap();
    loop {
        match two.release_orphan(UNIT).await {
            Ok(()) => break,
            Err(error) => assert!(matches!(error.class(), Class::Conflict | Class::Unavailable), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let released = begun.elapsed();
    let mut next = two.feed(UNIT, BUDGET).await.unwrap();
    let by = next.settle();
    let mut first = Duration::ZERO;
    for count in 0..2 * HELD {
        let delivery = next.next().await.unwrap().unwrap();
        if count == 0 {
            first = begun.elapsed();
        }
        by.settle(&[delivery.token], Verdict::Ack).await.pop().unwrap().unwrap();
    }
    let all = begun.elapsed();
    println!(
        "after kill -9: reset after {released:.2?}, the first block after {first:.2?}, all held and waiting after {all:.2?}"
    );
    next.release().await.unwrap();
    one.close().await;
    two.close().await;
}

/// Owns the unit and settles nothing, until it is killed.
pub(crate) async fn hold(url: &str) {
    let broker = setup::broker(url, PLACES[0], Role::Ingest).await;
    let mut feed = broker.feed(UNIT, BUDGET).await.unwrap();
    for _ in 0..HELD {
        feed.next().await.unwrap().unwrap();
    }
    println!("holding");
    std::future::pending::<()>().await;
}

async fn fill(broker: &nats::Broker, body: &bytes::Bytes, count: usize) {
    let all: Vec<_> = (0..count).map(|_| blocks::block(0, 50, body)).collect();
    for outcome in broker.publish(&all).await {
        outcome.unwrap();
    }
}

/// A feed that has settled some blocks.
async fn take(broker: &nats::Broker, count: usize) -> Box<dyn Feed> {
    let mut feed = broker.feed(UNIT, BUDGET).await.unwrap();
    let by = feed.settle();
    for _ in 0..count {
        let delivery = feed.next().await.unwrap().unwrap();
        by.settle(&[delivery.token], Verdict::Ack).await.pop().unwrap().unwrap();
    }
    feed
}

/// Settles what is left, until nothing comes.
async fn drain(mut feed: Box<dyn Feed>) {
    let by = feed.settle();
    while let Ok(delivery) = tokio::time::timeout(Duration::from_millis(200), feed.next()).await {
        by.settle(&[delivery.unwrap().unwrap().token], Verdict::Ack).await.pop().unwrap().unwrap();
    }
    feed.release().await.unwrap();
}
