//! What the queue on NATS does on one server beside a bare client: blocks published, pulled and settled; how soon another
//! owner has rows after a release and after a kill; what units cost that have nothing to do. `cargo xtask bench nats` runs it.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods, missing_docs, reason = "a measurement")]

mod blocks;
mod cost;
mod handover;
mod idle;
mod rates;
mod setup;

use setup::{Place, Setup};
use std::time::Duration;

/// One topology with one unit for the rates; two with nothing to do.
const PLACES: [Place; 3] = [
    Place { prefix: "wh", partitions: 1, shards: 1 },
    Place { prefix: "idle32", partitions: 1, shards: 32 },
    Place { prefix: "idle256", partitions: 4, shards: 64 },
];

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let mode = args.next().unwrap();
    if mode == "hold" {
        return handover::hold(&args.next().unwrap()).await;
    }
    let mut flag = |default: u64| args.next().map_or(default, |text| text.parse().unwrap());
    let (rounds, seconds, ttl) = (flag(3), flag(20), Duration::from_secs(flag(10)));
    let (version, only) = (args.next(), args.next());
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let mut setup = Setup::start(version.as_deref(), ttl).await;
    println!("nats-server {}, pinned TTL {ttl:?}\n", setup.version);
    if wanted("rates") {
        rates::run(&mut setup, &mode, rounds).await;
    }
    if wanted("ownership") {
        handover::run(&mut setup).await;
    }
    if wanted("idle") {
        idle::run(&mut setup, Duration::from_secs(seconds)).await;
    }
}
