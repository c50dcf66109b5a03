//! How fast one connection inserts 10,000-row batches: this client, a plain HTTP client, and the official crate.
//!
//! `cargo run --profile quick -p wh-clickhouse --example insert_rate [rounds]`, after `cargo xtask setup`. The engine's
//! data is on tmpfs. The arms take turns within a round, so that a busy machine slows all of them alike; the last column
//! is the median over the rounds of the ratio to the plain client.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool that prints its findings")]
#![allow(clippy::cast_precision_loss, reason = "rates are approximate")]

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use tokio::net::TcpStream;
use wh_clickhouse::{Client, Insert, Options};
use wh_testkit::clickhouse::Server;
use wh_types::{Clock, Encoding, SystemClock, Table, Tasks, frame};

const BATCH: usize = 10_000;
const BLOCK: usize = 500;
const BATCHES: usize = 20;

#[derive(clickhouse::Row, serde::Serialize)]
struct Flight {
    date: u32,
    delay: i32,
    distance: u32,
    origin: String,
    destination: String,
    pad: String,
}

/// The flights of the sample, padded to 256 bytes a line with words that compress like text.
fn lines() -> Vec<String> {
    let data = include_str!("../../../examples/data/flights.ndjson");
    let words = ["alpha", "beta ", "gamma", "delta", "/home", "item "];
    let mut seed = 7_u64;
    let line = |text: &str| {
        let mut row: Map<String, Value> = serde_json::from_str(text).unwrap();
        row.insert("pad".into(), Value::from(""));
        let mut pad = String::new();
        let short = 255 - serde_json::to_string(&row).unwrap().len();
        while pad.len() < short {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match words.get((seed >> 33) as usize % 7) {
                Some(word) => pad.push_str(word),
                None => pad.push_str(&(seed >> 50).to_string()),
            }
        }
        pad.truncate(short);
        row.insert("pad".into(), Value::from(pad));
        serde_json::to_string(&row).unwrap() + "\n"
    };
    data.lines().take(2 * BATCH).map(line).collect()
}

fn frames(lines: &[String], encoding: Encoding) -> Vec<Bytes> {
    lines.chunks(BLOCK).map(|block| frame::encode(encoding, block.concat().as_bytes()).unwrap()).collect()
}

/// One connection of the barest client.
struct Plain(SendRequest<Full<Bytes>>);

impl Plain {
    async fn connect(port: u16, tasks: &Tasks) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        drop(tasks.spawn("connection", connection));
        Self(sender)
    }

    async fn insert(&mut self, encoding: Option<&str>, body: Bytes) {
        let uri = "/?database=bench&async_insert=0&date_time_input_format=best_effort&query=INSERT%20INTO%20f%20FORMAT%20JSONEachRow";
        let mut request = http::Request::post(uri).header("host", "bench");
        if let Some(encoding) = encoding {
            request = request.header("content-encoding", encoding);
        }
        self.0.ready().await.unwrap();
        let answer = self.0.send_request(request.body(Full::new(body)).unwrap()).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(status, 200, "{body:?}");
    }
}

#[tokio::main]
async fn main() {
    let rounds = std::env::args().nth(1).map_or(7, |text| text.parse().unwrap());
    let dir = tempfile::TempDir::with_prefix_in("wh-bench-", "/dev/shm").unwrap();
    let server = Server::options().dir(dir.path()).start().await.unwrap();
    server.query("CREATE DATABASE bench").await.unwrap();
    let lines = lines();
    let batches: Vec<&[String]> = lines.chunks(BATCH).collect();
    let packed = |encoding| -> Vec<Vec<Bytes>> { batches.iter().map(|batch| frames(batch, encoding)).collect() };
    let (zstd, lz4) = (packed(Encoding::Zstd), packed(Encoding::Lz4));
    let joined = |frames: &[Vec<Bytes>]| -> Vec<Bytes> { frames.iter().map(|f| Bytes::from(f.concat())).collect() };
    let (zstd_joined, plain_bodies) =
        (joined(&zstd), batches.iter().map(|b| Bytes::from(b.concat())).collect::<Vec<_>>());
    println!(
        "bytes a batch: plain {}, zstd {}, lz4 {}",
        plain_bodies[0].len(),
        zstd_joined[0].len(),
        joined(&lz4)[0].len()
    );

    let typed: Vec<Vec<Flight>> = batches.iter().map(|batch| batch.iter().map(|line| flight(line)).collect()).collect();

    let tasks = Tasks::new();
    let mut plain = Plain::connect(server.port(), &tasks).await;
    let client = Client::new(Options { url: server.url(), database: "bench".into(), ..Options::default() }).unwrap();
    let official = clickhouse::Client::default().with_url(server.url()).with_database("bench");
    let (table, clock) = (Table::new("f").unwrap(), SystemClock);
    let arms = [
        "plain client, zstd",
        "plain client, no compression",
        "wh-clickhouse, zstd frames",
        "wh-clickhouse, lz4 frames",
        "official crate, RowBinary lz4",
    ];
    let mut rates = vec![Vec::new(); arms.len()];
    for _ in 0..rounds {
        for (arm, rates) in rates.iter_mut().enumerate() {
            server.query("DROP TABLE IF EXISTS bench.f SYNC").await.unwrap();
            server.query("CREATE TABLE bench.f (date DateTime, delay Int32, distance UInt32, origin LowCardinality(String), destination LowCardinality(String), pad String) ENGINE = MergeTree ORDER BY (origin, date)").await.unwrap();
            let begin = clock.now();
            for n in 0..BATCHES {
                let at = n % 2;
                let token = n.to_string();
                match arm {
                    0 => plain.insert(Some("zstd"), zstd_joined[at].clone()).await,
                    1 => plain.insert(None, plain_bodies[at].clone()).await,
                    2 | 3 => {
                        let (encoding, packed) = if arm == 2 { (Encoding::Zstd, &zstd) } else { (Encoding::Lz4, &lz4) };
                        let insert = Insert {
                            table: &table,
                            columns: None,
                            encoding,
                            frames: &packed[at],
                            rows: BATCH as u64,
                            token: Some(&token),
                            settings: &[],
                        };
                        client.insert(insert).await.unwrap();
                    }
                    _ => {
                        let mut insert = official.insert::<Flight>("f").await.unwrap();
                        for flight in &typed[at] {
                            insert.write(flight).await.unwrap();
                        }
                        insert.end().await.unwrap();
                    }
                }
            }
            let seconds = (clock.now() - begin).as_secs_f64();
            rates.push((BATCH * BATCHES) as f64 / seconds);
            assert_eq!(server.query("SELECT count() FROM bench.f").await.unwrap(), (BATCH * BATCHES).to_string());
        }
    }
    let yardstick = rates[0].clone();
    for (name, rates) in arms.iter().zip(&rates) {
        let ratios = rates.iter().zip(&yardstick).map(|(rate, plain)| rate / plain).collect();
        println!("{name:32} {:>9.0} rows/s  {:>5.2} of plain", median(rates.clone()), median(ratios));
    }
    drop((plain, client));
    server.stop().await.unwrap();
}

/// What a typed client would have at hand: its rows are parsed before the clock runs, ours inside the server.
fn flight(line: &str) -> Flight {
    let row: Value = serde_json::from_str(line).unwrap();
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    let number = |name: &str| row[name].as_i64().unwrap();
    Flight {
        date: 978_307_200,
        delay: i32::try_from(number("delay")).unwrap(),
        distance: u32::try_from(number("distance")).unwrap(),
        origin: text("origin"),
        destination: text("destination"),
        pad: text("pad"),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
