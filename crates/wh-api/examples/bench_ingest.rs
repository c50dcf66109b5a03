//! Measures the ingest path over loopback, client and server in one process of two threads, against a queue that
//! stores nothing: `cargo run --release -p wh-api --example bench_ingest`.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a benchmark prints its table")]

use async_trait::async_trait;
use axum::{Router, routing::post};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{collections::BTreeSet, convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tower::Service;
use wh_api::{Api, ApiOptions, OperatorKey, Parts, Pipes, TenantLimits, TenantRuntime, Version};
use wh_clickhouse::{Client, Column, ColumnKind, Options, Schema, SchemaHandle, TableSchema, types::Type};
use wh_mq::{
    Allowance, Broker, BrokerStatus, Budget, DeadLetter, DeadLetterId, DeadLetterPage, DeadLetterQuery, Error, Feed,
    From, History, Kind, Receipt, Result, Unit,
};
use wh_types::{
    Block, BlockId, Clock, Cursor, Encoding, Epoch, OsEntropy, Stop, SystemClock, Table, Tasks, Tenant, Timestamp,
};

const COLUMNS: &[(&str, &str)] = &[
    ("date", "String"),
    ("delay", "Int32"),
    ("distance", "UInt32"),
    ("origin", "String"),
    ("destination", "String"),
    ("carrier", "LowCardinality(String)"),
    ("flight", "UInt32"),
    ("cancelled", "Bool"),
    ("ratio", "Float64"),
    ("note", "Nullable(String)"),
    ("seen", "DateTime"),
    ("pad", "String"),
];

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    runtime.block_on(async {
        let tasks = Tasks::new();
        let empty = Router::new().route("/v1/ingest", post(|| async { "{}" }));
        let empty = listen(&tasks, empty).await;
        let (one, many) = (request(&row(0), "application/json"), request(&lines(500), "application/x-ndjson"));
        println!("{:<58} {:>10} {:>8} {:>8} {:>10}", "", "requests/s", "p50 ms", "p99 ms", "CPU us/req");
        let (events, batches) = ((256, 4), (32, 6));
        let base = load("empty axum handler, 256 connections, 1 event", empty, &one, events).await;
        for (what, encoding, delay) in [
            ("zstd, answers at once", Encoding::Zstd, Duration::ZERO),
            ("zstd, answers after 1 ms", Encoding::Zstd, Duration::from_millis(1)),
            ("lz4, answers after 1 ms", Encoding::Lz4, Duration::from_millis(1)),
        ] {
            let api = listen(&tasks, api(encoding, delay)).await;
            let got = load(&format!("ingest, 256 connections, 1 event ({what})"), api, &one, events).await;
            let (rate, cpu) = (100.0 * got.rate / base.rate, 100.0 * base.cpu / got.cpu);
            println!(
                "{:<58} {rate:>9.0}% {:>28}",
                "  of the empty handler (by wall time; by CPU time)",
                format!("{cpu:.0}%")
            );
            let got = load(&format!("ingest, 32 connections, 500 rows ({what})"), api, &many, batches).await;
            let (rate, cpu) = (500.0 * got.rate, 2.0 * 500.0 / got.cpu * 1e6);
            println!(
                "{:<58} {rate:>10.0} {:>28}",
                "  rows/s (by wall time; by CPU time of 2 cores)",
                format!("{cpu:.0}")
            );
        }
    });
}

fn row(n: usize) -> Vec<u8> {
    let row = format!(
        "{{\"date\":\"2001/01/{:02} 00:47\",\"delay\":{},\"distance\":{},\"origin\":\"DTW\",\"destination\":\"LAS\",\
         \"carrier\":\"NW\",\"flight\":{},\"cancelled\":false,\"ratio\":0.{:03},\"note\":null,\
         \"seen\":\"2001-01-01 00:47:00\",\"pad\":\"",
        n % 28 + 1,
        n % 90,
        400 + n,
        1_000 + n,
        n
    );
    let mut row = row.into_bytes();
    row.resize(254, b'x');
    row.extend_from_slice(b"\"}");
    row
}

fn lines(rows: usize) -> Vec<u8> {
    (0..rows).flat_map(|n| [row(n), b"\n".to_vec()].concat()).collect()
}

fn request(body: &[u8], media: &str) -> Vec<u8> {
    let head = format!(
        "POST /v1/ingest?table=flights HTTP/1.1\r\nhost: x\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn api(encoding: Encoding, delay: Duration) -> Api {
    let columns = (1..).zip(COLUMNS).map(|(position, (name, ty))| Column {
        name: (*name).to_owned(),
        type_text: (*ty).to_owned(),
        ty: Type::parse(ty),
        kind: ColumnKind::Ordinary,
        default_expression: String::new(),
        position,
    });
    let table = TableSchema::new("flights", "MergeTree", columns.collect());
    let schema = Schema {
        version: String::new(),
        timezone: "UTC".into(),
        settings: Arc::default(),
        tables: [("flights".to_owned(), Arc::new(table))].into(),
        taken_at: Timestamp::default(),
    };
    let tenant = TenantRuntime {
        tenant: Tenant::default(),
        schema: SchemaHandle::fixed(schema),
        clickhouse: Client::new(Options::default()).expect("client"),
        limits: TenantLimits::default(),
        pipes: Pipes::default(),
        default_role: None,
    };
    let parts = Parts {
        broker: Arc::new(Null(delay)),
        dedupe: None,
        cache: None,
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
    Api::new(parts, ApiOptions { encoding, ..ApiOptions::default() })
}

async fn listen<S>(tasks: &Tasks, service: S) -> SocketAddr
where
    S: Service<http::Request<hyper::body::Incoming>, Response = axum::response::Response, Error = Infallible>
        + Clone
        + Send
        + 'static,
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
                let mut http = hyper::server::conn::http1::Builder::new();
                http.timer(TokioTimer::new());
                drop(http.serve_connection(TokioIo::new(stream), service).await);
            }));
        }
    }));
    addr
}

/// What a load came to.
struct Got {
    /// Requests a second.
    rate: f64,
    /// Microseconds of CPU a request, client included.
    cpu: f64,
}

/// CPU seconds of this process.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("proc");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("ticks");
    (ticks(11) + ticks(12)) / 100.0
}

async fn load(what: &str, addr: SocketAddr, request: &[u8], (connections, seconds): (usize, u64)) -> Got {
    let (clock, request) = (SystemClock, Arc::<[u8]>::from(request));
    let warm = clock.now() + Duration::from_secs(1);
    let end = warm + Duration::from_secs(seconds);
    let tasks = Tasks::new();
    let clients: Vec<_> = (0..connections)
        .map(|_| {
            let request = Arc::clone(&request);
            tasks.spawn("client", async move {
                let mut stream = TcpStream::connect(addr).await.expect("a connection");
                stream.set_nodelay(true).expect("nodelay");
                let mut buffer = vec![0; 4096];
                let mut times = Vec::new();
                loop {
                    let start = clock.now();
                    if start >= end {
                        return times;
                    }
                    stream.write_all(&request).await.expect("sent");
                    let read = stream.read(&mut buffer).await.expect("an answer");
                    assert!(
                        buffer[..read].starts_with(b"HTTP/1.1 200"),
                        "{}",
                        String::from_utf8_lossy(&buffer[..read])
                    );
                    if start >= warm {
                        times.push(start.elapsed());
                    }
                }
            })
        })
        .collect();
    tokio::time::sleep_until(warm).await;
    let before = cpu();
    tokio::time::sleep_until(end).await;
    let used = cpu() - before;
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.expect("a client"));
    }
    times.sort_unstable();
    let rate = times.len() as f64 / seconds as f64;
    let at = |q: f64| times[((times.len() - 1) as f64 * q) as usize].as_secs_f64() * 1e3;
    let cpu = used / times.len() as f64 * 1e6;
    println!("{what:<58} {rate:>10.0} {:>8.2} {:>8.2} {cpu:>10.1}", at(0.5), at(0.99));
    Got { rate, cpu }
}

/// Takes everything and keeps nothing.
#[derive(Debug)]
struct Null(Duration);

#[async_trait]
impl Broker for Null {
    async fn publish(&self, blocks: &[Block]) -> Vec<Result<Receipt>> {
        if !self.0.is_zero() {
            tokio::time::sleep(self.0).await;
        }
        blocks.iter().map(|_| Ok(Receipt::Stored(Cursor { epoch: Epoch(1), sequence: 1 }))).collect()
    }
    async fn stored_rows(&self, _: &Tenant, _: &Table, _: BlockId, _: Cursor) -> Result<Option<u32>> {
        Ok(None)
    }
    fn units(&self) -> Vec<Unit> {
        vec![Unit { partition: 0, shard: 0 }]
    }
    fn unit_of(&self, _: &Tenant, _: &Table) -> Unit {
        Unit { partition: 0, shard: 0 }
    }
    async fn feed(&self, _: Unit, _: Budget) -> Result<Box<dyn Feed>> {
        Err(Error::new("feed", Kind::Stopping))
    }
    async fn release_orphan(&self, _: Unit) -> Result<()> {
        Ok(())
    }
    async fn unowned(&self) -> Result<BTreeSet<Unit>> {
        Ok(BTreeSet::new())
    }
    async fn history(&self, _: &Tenant, _: &Table, _: From) -> Result<Box<dyn History>> {
        Err(Error::new("history", Kind::Stopping))
    }
    async fn dead_letter(&self, letters: &[DeadLetter]) -> Vec<Result<()>> {
        letters.iter().map(|_| Ok(())).collect()
    }
    async fn dead_letters(&self, _: &Tenant, _: &DeadLetterQuery) -> Result<DeadLetterPage> {
        Ok(DeadLetterPage::default())
    }
    async fn purge_dead_letters(&self, _: &Tenant, _: &[DeadLetterId]) -> Result<usize> {
        Ok(0)
    }
    async fn set_allowance(&self, _: &Tenant, _: Allowance) -> Result<()> {
        Ok(())
    }
    async fn status(&self) -> Result<BrokerStatus> {
        Ok(BrokerStatus { accepting: true, ..BrokerStatus::default() })
    }
    async fn close(&self) {}
}
