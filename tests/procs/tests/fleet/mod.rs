//! Several processes over one queue on NATS.

mod alone;
mod answers;
mod counts;
mod ends;
mod members;
mod servers;
mod slow;
mod streams;
mod waits;
mod whole_way;

use procs::{Fleet, Member, Setup, create_tables};
use std::time::Duration;
use wh_testkit::{clickhouse, fault};

/// How long anything may take that is not measured.
const WAIT: Duration = Duration::from_secs(60);
/// Every table has a writer of its own.
const TABLES: usize = 16;
/// Units of the usual topology.
const UNITS: u32 = 32;

/// A fleet behind a proxy that can be told to slow ClickHouse down, with its tables.
async fn proxied(setup: Setup) -> (fault::Proxy, Fleet) {
    let engine = clickhouse::Server::start().await.unwrap();
    create_tables(&engine, TABLES).await.unwrap();
    let proxy = fault::Proxy::start(engine.url()).await.unwrap();
    let fleet = Fleet::behind(engine, &proxy.url(), setup).await.unwrap();
    (proxy, fleet)
}

/// A fleet with its tables.
async fn fleet(setup: Setup) -> Fleet {
    let fleet = Fleet::new(setup).await.unwrap();
    create_tables(&fleet.engine, TABLES).await.unwrap();
    fleet
}

/// Small batches and a short wait: what happens to members meets inserts, not only waiting rows.
fn busy() -> Setup {
    Setup { more: "ingest: {batch_wait: 200ms}".into(), ..Setup::default() }
}

/// Two processes that take events, and their addresses.
async fn two_apis(fleet: &Fleet) -> (Vec<Member>, Vec<String>) {
    let apis = vec![fleet.api("api-1").await.unwrap(), fleet.api("api-2").await.unwrap()];
    let urls = apis.iter().map(|api| api.url("")).collect();
    (apis, urls)
}

/// Stops them all in order.
async fn stop(members: impl IntoIterator<Item = Member>) {
    for mut member in members {
        member.stop(WAIT).await.unwrap();
    }
}

/// Rows that may have doubled because their insert's outcome was not known (decision D14).
async fn in_doubt(members: &[&Member]) -> f64 {
    let mut rows = 0.0;
    for member in members {
        rows += member.metric("wavehouse_ingest_insert_doubt_total").await.unwrap();
    }
    rows
}
