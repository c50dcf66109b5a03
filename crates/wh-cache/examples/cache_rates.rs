//! Measures the cache: operations a second and the times of a hit, in memory beside a locked map, on Redis beside the
//! bare client with the same commands.
//!
//! `cargo run --profile quick -p wh-cache --features memory,redis --example cache_rates -- [seconds] [value bytes]`
#![allow(clippy::print_stdout, reason = "it prints a table")]

use bytes::Bytes;
use fred::{
    clients::Client,
    interfaces::{ClientLike as _, KeysInterface as _},
    types::{
        Expiration, Value,
        config::{Config, ServerConfig},
    },
};
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use std::{collections::HashMap, error::Error, sync::Arc, time::Duration};
use wh_cache::{
    Cache, Change, Key, Landing, Read, View, memory,
    redis::{self, Address, Servers},
};
use wh_testkit::redis::Server;
use wh_types::{Clock as _, OsEntropy, SystemClock, Table, Tasks, Tenant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Answers that are asked for in turn.
const KEYS: usize = 1_000;
const TTL: Duration = Duration::from_secs(600);

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let seconds: u64 = args.next().map_or(Ok(3), |text| text.parse())?;
    let bytes: usize = args.next().map_or(Ok(4_096), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(Duration::from_secs(seconds), bytes))
}

/// One task's operation, by turn: whether it worked.
#[async_trait::async_trait]
trait Work: Send + Sync + 'static {
    async fn once(&self, turn: usize) -> bool;
}

struct Hit(Arc<dyn Cache>, View, Vec<Key>);
struct Put(Arc<dyn Cache>, View, Vec<Key>, Bytes);
struct Invalidate(Arc<dyn Cache>, Vec<Change>);
struct Map(Mutex<HashMap<usize, Bytes>>);
struct BareGet(Client, Vec<String>);
struct BareLookup(Client, Vec<String>, Vec<String>);
struct BareSet(Client, Vec<String>, Bytes);

#[async_trait::async_trait]
impl Work for Hit {
    async fn once(&self, turn: usize) -> bool {
        self.0.lookup(&self.1, &self.2[turn % KEYS]).await.outcome.hit().is_some()
    }
}

#[async_trait::async_trait]
impl Work for Put {
    async fn once(&self, turn: usize) -> bool {
        let at = self.0.snapshot(&self.1).await;
        self.0.put(&at, &self.2[turn % KEYS], self.3.clone(), TTL).await.is_ok()
    }
}

#[async_trait::async_trait]
impl Work for Invalidate {
    async fn once(&self, turn: usize) -> bool {
        let change = std::slice::from_ref(&self.1[turn % self.1.len()]);
        matches!(self.0.invalidate(change).await.pop(), Some(Ok(Landing::Landed)))
    }
}

#[async_trait::async_trait]
impl Work for Map {
    async fn once(&self, turn: usize) -> bool {
        self.0.lock().get(&(turn % KEYS)).cloned().is_some()
    }
}

#[async_trait::async_trait]
impl Work for BareGet {
    async fn once(&self, turn: usize) -> bool {
        self.0.get::<Value, _>(self.1[turn % KEYS].as_str()).await.is_ok_and(|value| !value.is_null())
    }
}

#[async_trait::async_trait]
impl Work for BareLookup {
    async fn once(&self, turn: usize) -> bool {
        let pipeline = self.0.pipeline();
        let queued = pipeline.mget::<(), _>(self.1.clone()).await.is_ok()
            && pipeline.get::<(), _>(self.2[turn % KEYS].as_str()).await.is_ok();
        queued && pipeline.try_all::<Value>().await.iter().all(Result::is_ok)
    }
}

#[async_trait::async_trait]
impl Work for BareSet {
    async fn once(&self, turn: usize) -> bool {
        let ttl = Some(Expiration::PX(600_000));
        self.0.set::<(), _, _>(self.1[turn % KEYS].as_str(), self.2.clone(), ttl, None, false).await.is_ok()
    }
}

async fn measure(time: Duration, bytes: usize) -> Outcome<()> {
    // half of it repeats, as JSON does; packing is part of the cost
    let value: Bytes = (0..bytes).map(|n| if n % 2 == 0 { b'"' } else { ((n * 2_654_435_761) >> 9) as u8 }).collect();
    let tenant = Tenant::new("bench")?;
    let view = View::new(tenant.clone(), [Read::from(Table::new("clicks")?)])?;
    let keys: Vec<_> = (0..KEYS).map(|n| Key::of([&n.to_be_bytes()[..]])).collect();
    let changes = (0..100).map(|n| Ok(Change::table(tenant.clone(), Table::new(&format!("t{n}"))?)));
    let changes: Vec<Change> = changes.collect::<Outcome<_>>()?;
    println!("answers of {bytes} bytes, {KEYS} of them, {time:?} each, 2 threads\n");
    println!("{:<34} {:>6} {:>12} {:>10} {:>10} {:>8}", "", "tasks", "a second", "p50 us", "p99 us", "ratio");

    let memory = memory::Cache::new(memory::Options { bytes: 1 << 30, ..memory::Options::new(Arc::new(SystemClock)) })?;
    let memory: Arc<dyn Cache> = Arc::new(memory);
    let map = Map(Mutex::new((0..KEYS).map(|n| (n, value.clone())).collect()));
    let bare = run("a locked map, get", 2, time, Arc::new(map), None).await?;
    run("memory, put", 2, time, Arc::new(Put(Arc::clone(&memory), view.clone(), keys.clone(), value.clone())), None)
        .await?;
    run("memory, hit", 2, time, Arc::new(Hit(Arc::clone(&memory), view.clone(), keys.clone())), Some(bare)).await?;
    run("memory, invalidate", 2, time, Arc::new(Invalidate(memory, changes.clone())), None).await?;

    let server = Server::start().await?;
    let client = Client::new(
        Config { server: ServerConfig::new_centralized("127.0.0.1", server.port()), ..Config::default() },
        None,
        None,
        None,
    );
    drop(client.init().await?);
    let names: Vec<_> = (0..KEYS).map(|n| format!("bare:{n}")).collect();
    let versions: Vec<_> = ["a", "b", "c"].map(|n| format!("{{bare}}:{n}")).into();
    for version in &versions {
        client.set::<(), _, _>(version.as_str(), "12345678", None, None, false).await?;
    }
    let shared = wh_cache::Options::new(Arc::new(SystemClock), Arc::new(OsEntropy), Tasks::new());
    let servers = Servers::Standalone(Address { host: "127.0.0.1".into(), port: server.port() });
    let cache: Arc<dyn Cache> = Arc::new(redis::Cache::new(redis::Options::new(servers, shared))?);
    wh_testkit::until(Duration::from_secs(10), "connected", || async { cache.status().away.is_none() }).await?;
    for tasks in [1, 64] {
        let set = Arc::new(BareSet(client.clone(), names.clone(), value.clone()));
        let set = run("bare client, SET", tasks, time, set, None).await?;
        let put = Arc::new(Put(Arc::clone(&cache), view.clone(), keys.clone(), value.clone()));
        run("redis, snapshot and put", tasks, time, put, Some(set)).await?;
        run("bare client, GET", tasks, time, Arc::new(BareGet(client.clone(), names.clone())), None).await?;
        let look = Arc::new(BareLookup(client.clone(), versions.clone(), names.clone()));
        let look = run("bare client, MGET and GET", tasks, time, look, None).await?;
        let hit = Arc::new(Hit(Arc::clone(&cache), view.clone(), keys.clone()));
        run("redis, hit", tasks, time, hit, Some(look)).await?;
        run("redis, invalidate", tasks, time, Arc::new(Invalidate(Arc::clone(&cache), changes.clone())), Some(set))
            .await?;
    }
    cache.close().await;
    server.stop().await?;
    Ok(())
}

async fn run(name: &str, tasks: usize, time: Duration, work: Arc<dyn Work>, beside: Option<f64>) -> Outcome<f64> {
    let (group, began) = (Tasks::new(), SystemClock.now());
    let run = |task: usize| {
        let work = Arc::clone(&work);
        group.spawn("work", async move {
            let mut times = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3)?;
            let (mut turn, mut failed) = (task * KEYS / 64, 0_u64);
            while SystemClock.now() - began < time {
                // so that reading the clock is not most of what is measured
                for _ in 0..8 {
                    let before = SystemClock.now();
                    failed += u64::from(!work.once(turn).await);
                    times.record(u64::try_from((SystemClock.now() - before).as_nanos())?.max(1))?;
                    turn += 1;
                }
                tokio::task::yield_now().await;
            }
            Outcome::Ok((times, failed))
        })
    };
    let running: Vec<_> = (0..tasks).map(run).collect();
    let (mut all, mut failed) = (Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3)?, 0);
    for one in running {
        let (times, not) = one.await??;
        all.add(times)?;
        failed += not;
    }
    let rate = all.len() as f64 / (SystemClock.now() - began).as_secs_f64();
    let us = |quantile| all.value_at_quantile(quantile) as f64 / 1e3;
    let ratio = beside.map_or(String::new(), |beside| format!("{:.2}", rate / beside));
    let failed = if failed > 0 { format!("  {failed} failed") } else { String::new() };
    println!("{name:<34} {tasks:>6} {rate:>12.0} {:>10.1} {:>10.1} {ratio:>8}{failed}", us(0.5), us(0.99));
    Ok(rate)
}
