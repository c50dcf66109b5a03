//! The yardstick of `cargo xtask bench nats`: the vendor's client alone, as fast as it goes. It publishes with ids over
//! one raw inbox, a window of 1,024 at a time, or pulls batches of 500 under a pin with plain acks, the last one
//! confirmed. It prints the seconds it took and its seconds of processor time.
//! `bare publish <url> <user> <password> <subject> <subjects> <count> <bytes of body> <bytes of headers>`
//! `bare ours …` is the publisher of this crate with the same arguments.
//! `bare pull <url> <user> <password> <stream> <durable> <group> <count>`
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods, missing_docs, reason = "a measurement")]

use async_nats::{Client, ConnectOptions, HeaderMap};
use bytes::Bytes;
use futures::StreamExt as _;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;
use wh_types::{Entropy as _, OsEntropy};

const WINDOW: usize = 1024;
const BATCH: usize = 500;

async fn publish(
    client: Client,
    subject: &str,
    subjects: usize,
    count: usize,
    body: usize,
    headers: usize,
) -> Duration {
    let mut bytes = vec![0_u8; body];
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&OsEntropy.next_u64().to_le_bytes()[..chunk.len()]);
    }
    let (body, pad, inbox) = (Bytes::from(bytes), "x".repeat(headers), client.new_inbox());
    let mut acks = client.subscribe(format!("{inbox}.*")).await.unwrap();
    let window = Arc::new(Semaphore::new(WINDOW));
    let begun = Instant::now();
    let freed = window.clone();
    let reader = tokio::spawn(async move {
        for _ in 0..count {
            let ack = acks.next().await.unwrap();
            assert!(ack.status.is_none() && !ack.payload.windows(7).any(|part| part == b"\"error\""), "{ack:?}");
            freed.add_permits(1);
        }
    });
    for number in 0..count {
        window.acquire().await.unwrap().forget();
        let mut map = HeaderMap::new();
        map.insert("Nats-Msg-Id", format!("{:016x}{:016x}", OsEntropy.next_u64(), OsEntropy.next_u64()));
        map.insert("Wh-Pad", pad.as_str());
        let reply = format!("{inbox}.{number}");
        let subject = format!("{subject}{}", number % subjects);
        client.publish_with_reply_and_headers(subject, reply, map, body.clone()).await.unwrap();
    }
    reader.await.unwrap();
    begun.elapsed()
}

/// The same over our own publisher, to see what it costs.
async fn ours(url: &str, login: (&str, &str), subject: &str, subjects: usize, count: usize, body: usize) -> Duration {
    let mut options = wh_nats::Options::new([url]);
    options.credentials = wh_nats::Credentials::Password { user: login.0.into(), password: login.1.into() };
    let connection = wh_nats::Connection::open(options).await.unwrap();
    let publisher = wh_nats::Publisher::open(&connection).await.unwrap();
    let (body, begun) = (Bytes::from(vec![7; body]), Instant::now());
    let publish = |number: usize| {
        let id = format!("{:016x}{:016x}", OsEntropy.next_u64(), OsEntropy.next_u64());
        let headers = [("Nats-Msg-Id", id)].into_iter().collect();
        publisher.publish(&format!("{subject}{}", number % subjects), headers, body.clone(), Duration::from_secs(5))
    };
    let mut next = WINDOW.min(count);
    let mut under_way: std::collections::VecDeque<_> = (0..next).map(|number| Box::pin(publish(number))).collect();
    while let Some(oldest) = under_way.pop_front() {
        oldest.await.unwrap();
        if next < count {
            under_way.push_back(Box::pin(publish(next)));
            next += 1;
        }
    }
    begun.elapsed()
}

async fn pull(client: Client, stream: &str, durable: &str, group: &str, count: usize) -> Duration {
    let (next, inbox) = (format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"), client.new_inbox());
    let mut rows = client.subscribe(format!("{inbox}.*")).await.unwrap();
    let (begun, mut taken, mut left, mut pin) = (Instant::now(), 0, 0, None);
    while taken < count {
        if left == 0 {
            left = BATCH;
            let id = pin.as_ref().map(|pin| format!(",\"id\":\"{pin}\"")).unwrap_or_default();
            let body = format!("{{\"batch\":{BATCH},\"expires\":5000000000,\"group\":\"{group}\"{id}}}");
            client.publish_with_reply(next.clone(), format!("{inbox}.{taken}"), body.into()).await.unwrap();
        }
        let row = rows.next().await.unwrap();
        if let Some(status) = row.status {
            assert_eq!(status.as_u16(), 408, "{row:?}");
            left = 0;
            continue;
        }
        (left, taken) = (left - 1, taken + 1);
        pin = row.headers.unwrap().get_last("Nats-Pin-Id").map(|pin| pin.as_str().to_owned());
        let ack = (row.reply.unwrap(), Bytes::from_static(b"+ACK"));
        if taken < count {
            client.publish(ack.0, ack.1).await.unwrap();
        } else {
            client.request(ack.0, ack.1).await.unwrap();
        }
    }
    let took = begun.elapsed();
    let body = format!("{{\"group\":\"{group}\"}}");
    client.request(format!("$JS.API.CONSUMER.UNPIN.{stream}.{durable}"), body.into()).await.unwrap();
    took
}

/// Processor time of this process, by the kernel's count of hundredths of a second.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    Duration::from_millis(10 * (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()))
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [mode, url, user, password, rest @ ..] = args.as_slice() else { panic!("see the first lines of this file") };
    let options = ConnectOptions::with_user_and_password((*user).to_owned(), (*password).to_owned());
    let client = options.custom_inbox_prefix("_INBOX_wh").client_capacity(8192).connect(*url).await.unwrap();
    let number = |at: usize| rest[at].parse().unwrap();
    let took = match *mode {
        "publish" => publish(client, rest[0], number(1), number(2), number(3), number(4)).await,
        "ours" => ours(url, (user, password), rest[0], number(1), number(2), number(3)).await,
        "pull" => pull(client, rest[0], rest[1], rest[2], number(3)).await,
        other => panic!("no mode {other}"),
    };
    println!("{} {}", took.as_secs_f64(), cpu().as_secs_f64());
}
