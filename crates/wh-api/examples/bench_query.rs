//! Measures structured queries over a real ClickHouse: kept, computed and shared answers, in the process and over HTTP,
//! in memory and on Redis; beside a direct query and beside a handler that does nothing.
//!
//! `cargo run --profile quick -p wh-api --example bench_query -- [seconds]`
#![allow(clippy::print_stdout, reason = "it prints tables")]
#![allow(clippy::expect_used, clippy::cast_precision_loss, reason = "a measurement ends where something is wrong")]

use axum::{Router, body::Body, routing::post};
use futures::future::join_all;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tower::Service;
use wh_api::{AnswerCache, Api, ApiOptions, OperatorKey, Parts, Pipes, TenantLimits, TenantRuntime, Version};
use wh_cache::{Cache, memory, redis};
use wh_clickhouse::{Client, Discovery, DiscoveryOptions, Options, Query, SchemaHandle};
use wh_mq::{Allowance, sim};
use wh_testkit::{
    clickhouse::Database,
    fault::{Action, Proxy, Rule},
};
use wh_types::{Clock as _, Epoch, OsEntropy, Stop, SystemClock, Tasks, Tenant};

const CONNECTIONS: usize = 8;
/// Short and long ones, by how many rows they read.
const COLUMNS: &str = "id UInt64, origin LowCardinality(String), delay Int32";
const FILL: &str =
    "INSERT INTO t SELECT number, ['DTW', 'ORD', 'JFK', 'SFO'][number % 4 + 1], number % 90 FROM numbers(4000000)";

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(measure(Duration::from_secs(seconds)));
}

/// A query that groups the rows below a bound; another bound is another query.
fn query(below: u64) -> String {
    format!(
        r#"{{"columns":["origin"],"group_by":["origin"],"aggregations":[{{"fn":"count","alias":"n"}},{{"fn":"avg","column":"delay","alias":"d"}}],"filters":[{{"column":"id","op":"lt","value":{below}}}],"order_by":[{{"column":"origin"}}]}}"#
    )
}

/// The statement of it, as the API sends it.
fn statement(below: u64) -> Query {
    let sql = "SELECT `origin`, count() AS `n`, avg(`delay`) AS `d` FROM `t` WHERE `id` < {p0:Int64} GROUP BY `origin` ORDER BY \
               `origin` ASC LIMIT 10001";
    Query::read(sql).format("JSONLines").param("p0", below.to_string())
}

fn request(body: &str, fresh: bool) -> Request<Body> {
    let builder = Request::post("/v1/query?table=t").header("content-type", "application/json");
    let builder = if fresh { builder.header("cache-control", "no-cache") } else { builder };
    builder.body(Body::from(body.to_owned())).expect("a request")
}

async fn measure(time: Duration) {
    let database = wh_testkit::clickhouse::database().await.expect("an engine");
    database.query(&format!("CREATE TABLE t ({COLUMNS}) ENGINE = MergeTree ORDER BY id")).await.expect("a table");
    database.query(FILL).await.expect("rows");
    let endpoint = database.endpoint();
    let client = Client::new(reaching(&database)).expect("a client");
    let (tasks, stop) = (Tasks::new(), Stop::new());
    let options = DiscoveryOptions { interval: Duration::from_secs(3_600), ..DiscoveryOptions::default() };
    let schema =
        Discovery::start(client.clone(), options, Arc::new(SystemClock), Arc::new(OsEntropy), &tasks, stop.clone());
    schema.refresh().await.expect("a schema");

    let memory: Arc<dyn Cache> =
        Arc::new(memory::Cache::new(memory::Options::new(Arc::new(SystemClock))).expect("a cache"));
    let server = wh_testkit::redis::Server::start().await.expect("a Redis");
    let shared = wh_cache::Options::new(Arc::new(SystemClock), Arc::new(OsEntropy), tasks.clone());
    let servers = redis::Servers::Standalone(redis::Address { host: "127.0.0.1".into(), port: server.port() });
    let remote: Arc<dyn Cache> = Arc::new(redis::Cache::new(redis::Options::new(servers, shared)).expect("a cache"));
    wh_testkit::until(Duration::from_secs(30), "Redis", || async { remote.status().away.is_none() })
        .await
        .expect("Redis");

    println!("one thing at a time, in the process\n");
    println!("{:<44} {:>9} {:>9} {:>8}", "", "p50 us", "p99 us", "ratio");
    let mut hits = Vec::new();
    for (name, store) in [("memory", &memory), ("Redis", &remote)] {
        let api = api(&client, &schema, Some(Arc::clone(store)));
        println!("{name}:");
        let body = query(50_000);
        once(&api, &body, false).await;
        let hit = alone(time, async |_| once(&api, &body, false).await).await;
        show("  hit", &hit, None);
        for (name, below) in [("short", 20_000_u64), ("long", 3_000_000)] {
            // by turns, so that what happens on the machine happens to both
            let (mut direct, mut miss) = (Vec::new(), Vec::new());
            let until = SystemClock.now() + time;
            let mut turn = 0;
            while SystemClock.now() < until {
                turn += 1;
                let began = SystemClock.now();
                let answer = client.query(statement(below + turn)).await.expect("an answer");
                answer.bytes(1 << 20).await.expect("its bytes");
                direct.push(SystemClock.now() - began);
                let (began, body) = (SystemClock.now(), query(below + turn));
                assert_eq!(once(&api, &body, false).await, "MISS");
                miss.push(SystemClock.now() - began);
            }
            let base = show(&format!("  {name} query, direct"), &direct, None);
            show(&format!("  {name} query, miss"), &miss, Some(base));
        }
        let mut waits = Vec::new();
        let until = SystemClock.now() + time;
        let mut turn = 0;
        while SystemClock.now() < until {
            turn += 1;
            let body = query(1_000_000 + turn);
            let wait = || async {
                let began = SystemClock.now();
                once(&api, &body, false).await;
                SystemClock.now() - began
            };
            waits.extend(join_all((0..64).map(|_| wait())).await);
        }
        let direct = alone(time, async |turn| {
            let answer = client.query(statement(1_000_000 + turn)).await.expect("an answer");
            answer.bytes(1 << 20).await.expect("its bytes");
            String::new()
        })
        .await;
        let base = show("  that of the next, direct", &direct, None);
        show("  64 who wait for one query", &waits, Some(base));
        hits.push((name, api));
    }

    println!("\nover HTTP, {CONNECTIONS} connections\n");
    println!("{:<44} {:>9} {:>9} {:>12} {:>8}", "", "p50 us", "p99 us", "requests/s", "ratio");
    let empty = Router::new().route("/v1/query", post(|| async { "" }));
    let address = serve(&tasks, empty).await;
    let limit = load(address, time, &query(50_000)).await;
    show_rate("a handler that does nothing", &limit, None);
    for (name, api) in hits {
        let address = serve(&tasks, api).await;
        let rate = load(address, time, &query(50_000)).await;
        show_rate(&format!("hit, {name}"), &rate, Some(limit.1));
    }

    // counted on the way to ClickHouse
    let way = Proxy::start(endpoint.url()).await.expect("a proxy");
    let counted = way.add(Rule::any(Action::Delay(Duration::ZERO)).contains("SELECT `origin`"));
    let through = Client::new(Options { url: way.url(), ..reaching(&database) }).expect("a client");
    let api = api(&through, &schema, Some(memory));
    let body = query(3_999_999);
    let all = join_all((0..1_000).map(|_| once(&api, &body, false))).await;
    let joined = all.iter().filter(|how| *how != "HIT").count();
    println!(
        "\n1,000 identical queries at once: {} reached ClickHouse, {joined} waited for it, the others found its answer",
        way.fired(counted)
    );
    stop.give();
}

fn reaching(database: &Database) -> Options {
    let endpoint = database.endpoint();
    Options {
        url: endpoint.url().into(),
        database: database.name().into(),
        user: endpoint.user_name().into(),
        password: Some(endpoint.password().into()),
        ..Options::default()
    }
}

fn api(client: &Client, schema: &SchemaHandle, store: Option<Arc<dyn Cache>>) -> Api {
    let queue = sim::Broker::new(sim::Options {
        epoch: Epoch(1),
        shards: 1,
        ack_wait: Duration::from_secs(60),
        duplicate_window: Duration::from_secs(120),
        default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::ZERO },
        dead_letter_share: 10,
        clock: Arc::new(SystemClock),
    });
    let tenant = TenantRuntime {
        tenant: Tenant::default(),
        schema: schema.clone(),
        clickhouse: client.clone(),
        limits: TenantLimits::default(),
        pipes: Pipes::default(),
        default_role: None,
    };
    let hour = Duration::from_secs(3_600);
    let cache = store.map(|store| AnswerCache { store, max_value_bytes: 1 << 20, longest: hour, by_marks: false });
    let parts = Parts {
        broker: Arc::new(queue),
        dedupe: None,
        cache,
        tenants: vec![tenant],
        operator_key: OperatorKey::new(None),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(OsEntropy),
        stop: Stop::new(),
        process: "bench".into(),
        version: Version { version: String::new(), git_commit: String::new(), build_time: String::new() },
        checks: Vec::new(),
        metrics: None,
    };
    Api::new(parts, ApiOptions::default())
}

/// Asks once, and gives how the answer came about.
async fn once(api: &Api, body: &str, fresh: bool) -> String {
    let Ok(response) = api.clone().call(request(body, fresh)).await;
    assert_eq!(response.status(), 200);
    let how = response.headers()["x-cache"].to_str().expect("text").to_owned();
    response.into_body().collect().await.expect("a body");
    how
}

/// The times of something done again and again.
async fn alone(time: Duration, act: impl AsyncFn(u64) -> String) -> Vec<Duration> {
    let until = SystemClock.now() + time;
    let mut times = Vec::new();
    while SystemClock.now() < until {
        let began = SystemClock.now();
        act(times.len() as u64).await;
        times.push(SystemClock.now() - began);
    }
    times
}

fn quantiles(times: &[Duration]) -> (f64, f64) {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = |share: usize| sorted[(sorted.len() - 1) * share / 100].as_secs_f64() * 1e6;
    (at(50), at(99))
}

/// Gives the median.
fn show(name: &str, times: &[Duration], base: Option<f64>) -> f64 {
    let (p50, p99) = quantiles(times);
    let ratio = base.map(|base| format!("{:.2}", p50 / base)).unwrap_or_default();
    println!("{name:<44} {p50:>9.1} {p99:>9.1} {ratio:>8}");
    p50
}

fn show_rate(name: &str, (times, rate): &(Vec<Duration>, f64), base: Option<f64>) {
    let (p50, p99) = quantiles(times);
    let ratio = base.map(|base| format!("{:.2}", rate / base)).unwrap_or_default();
    println!("{name:<44} {p50:>9.1} {p99:>9.1} {rate:>12.0} {ratio:>8}");
}

async fn serve<S>(tasks: &Tasks, service: S) -> SocketAddr
where
    S: Service<Request<hyper::body::Incoming>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let connections = tasks.clone();
    drop(tasks.spawn("accept", async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("nodelay");
            let service = TowerToHyperService::new(service.clone());
            drop(connections.spawn("connection", async move {
                let http = hyper::server::conn::http1::Builder::new();
                drop(http.serve_connection(TokioIo::new(stream), service).await);
            }));
        }
    }));
    addr
}

/// Times of requests and how many there were a second.
async fn load(address: SocketAddr, time: Duration, body: &str) -> (Vec<Duration>, f64) {
    let head = format!(
        "POST /v1/query?table=t HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let began = SystemClock.now();
    let until = began + time;
    let connection = || async {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("nodelay");
        let (mut times, mut read) = (Vec::new(), Vec::new());
        while SystemClock.now() < until {
            let sent = SystemClock.now();
            stream.write_all(head.as_bytes()).await.expect("sent");
            answer(&mut stream, &mut read).await;
            times.push(SystemClock.now() - sent);
        }
        times
    };
    let times = join_all((0..CONNECTIONS).map(|_| connection())).await.concat();
    let rate = times.len() as f64 / (SystemClock.now() - began).as_secs_f64();
    (times, rate)
}

/// Reads one answer that has a length.
async fn answer(stream: &mut TcpStream, read: &mut Vec<u8>) {
    read.clear();
    loop {
        assert!(stream.read_buf(read).await.expect("bytes") > 0, "the connection ended");
        let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&read[..end]).expect("a head").to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let whole = end + 4 + length.unwrap_or(0_usize);
        while read.len() < whole {
            assert!(stream.read_buf(read).await.expect("bytes") > 0, "the connection ended");
        }
        return;
    }
}
