//! `wh-load`: sends load to an address of this machine and prints what it measured, as one line of JSON.
//!
//! A client of its own, and a small one: requests are made once and written as they are, answers are read just far
//! enough to find their end. On a machine that the server shares with it, every cycle it spends is missing there.
#![expect(clippy::print_stdout, reason = "its result is a line on standard output")]
#![expect(
    clippy::disallowed_methods,
    reason = "a load generator measures with the machine's clock and starts its tasks"
)]

mod connection;
mod ids;
mod stream;
mod yardstick;

use anyhow::{Context, Result, bail, ensure};
use connection::Connection;
use ids::Ids;
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mode = args.next().context("usage: wh-load http|yardstick|stream|replay KEY=VALUE …")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let line = match mode.as_str() {
        "http" => runtime.block_on(http(Options::read(args)?))?,
        "yardstick" => runtime.block_on(yardstick::run(Options::read(args)?))?,
        "stream" => runtime.block_on(stream::run(args))?,
        "replay" => runtime.block_on(stream::replay(args))?,
        other => bail!("no mode {other:?}: http, yardstick, stream or replay"),
    };
    println!("{line}");
    Ok(())
}

/// What is sent where, bounded in count and time.
struct Options {
    address: SocketAddr,
    path: String,
    content_type: String,
    file: PathBuf,
    rows_per_request: usize,
    connections: usize,
    /// Ends after so many requests,
    requests: u64,
    /// or after this time.
    within: Duration,
    /// Each row has a place for an id, and gets one of its own whenever it is sent.
    ids: bool,
}

impl Options {
    fn read(args: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            path: "/".to_owned(),
            content_type: "application/x-ndjson".to_owned(),
            file: PathBuf::new(),
            rows_per_request: 500,
            connections: 1,
            requests: u64::MAX,
            within: Duration::from_secs(30),
            ids: false,
        };
        for arg in args {
            let (key, value) = arg.split_once('=').with_context(|| format!("{arg:?} is not KEY=VALUE"))?;
            let number = || value.parse::<u64>().with_context(|| format!("{key} wants a number, not {value:?}"));
            match key {
                "address" => options.address = value.parse().context("address")?,
                "path" => value.clone_into(&mut options.path),
                "content-type" => value.clone_into(&mut options.content_type),
                "file" => options.file = value.into(),
                "rows" => options.rows_per_request = usize::try_from(number()?)?.max(1),
                "connections" => options.connections = usize::try_from(number()?)?.clamp(1, 4_096),
                "requests" => options.requests = number()?,
                "seconds" => options.within = Duration::from_secs(number()?.min(600)),
                "ids" => options.ids = value.parse().context("ids is true or false")?,
                _ => bail!("no option {key:?}"),
            }
        }
        ensure!(options.address.ip().is_loopback(), "load goes to this machine only, not to {}", options.address);
        Ok(options)
    }

    /// The file's lines in bodies of so many rows each, every row ending in a line feed.
    fn bodies(&self) -> Result<Vec<Vec<u8>>> {
        let text = std::fs::read(&self.file).with_context(|| self.file.display().to_string())?;
        let lines = text.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
        ensure!(!lines.is_empty(), "{} is empty", self.file.display());
        Ok(lines.chunks(self.rows_per_request).map(<[&[u8]]>::concat).collect())
    }
}

/// A request's head, for a body of that length.
fn head(options: &Options, length: usize) -> Vec<u8> {
    let Options { path, address, content_type, .. } = options;
    let lines = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: {content_type}\r\n");
    format!("{lines}content-length: {length}\r\n\r\n").into_bytes()
}

/// Every connection sends one request at a time until the count or the time is spent.
async fn http(options: Options) -> Result<String> {
    let request = |body: &Vec<u8>| {
        let mut request = head(&options, body.len());
        request.extend_from_slice(body);
        let places = if options.ids { ids::places(&request) } else { Vec::new() };
        (request, places)
    };
    let bodies = options.bodies()?;
    let requests: Arc<[(Vec<u8>, Vec<usize>)]> = bodies.iter().map(request).collect();
    let rows: Arc<[usize]> = bodies.iter().map(|body| body.iter().filter(|byte| **byte == b'\n').count()).collect();
    let placed = requests.iter().zip(&*rows).all(|((_, places), rows)| places.len() == *rows);
    ensure!(placed || !options.ids, "not every row has a place for an id");
    drop(bodies);
    let ids = Arc::new(Ids::draw());
    let (next, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let until = began + options.within;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..options.connections {
        let (requests, rows, next, ids) = (requests.clone(), rows.clone(), next.clone(), ids.clone());
        let mut connection = Connection::open(options.address).await?;
        let most = options.requests;
        tasks.spawn(async move {
            let (mut ok, mut stored, mut refused, mut micros, mut own) = (0_u64, 0, 0_u64, Vec::new(), Vec::new());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let index = usize::try_from(number).unwrap_or(usize::MAX) % requests.len();
                let (request, places) = &requests[index];
                let request = if places.is_empty() { request } else { ids.put(request, places, &mut own) };
                let sent = Instant::now();
                if number >= most || sent >= until {
                    break;
                }
                match connection.exchange(request).await? {
                    200..=299 => {
                        let fresh = places.is_empty() || connection.says(b"\"duplicates\":0,");
                        ensure!(fresh, "an id came twice: {}", connection.last_body());
                        ok += 1;
                        stored += rows[index];
                    }
                    // It said "not now": a real client waits too.
                    429 | 503 => {
                        refused += 1;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    status => bail!("the server answered {status}: {}", connection.last_body()),
                }
                micros.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
            }
            Ok((ok, stored, refused, micros))
        });
    }
    let (mut ok, mut stored, mut refused, mut micros) = (0, 0, 0, Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (more, more_rows, not_now, times) = done??;
        ok += more;
        stored += more_rows;
        refused += not_now;
        micros.extend(times);
    }
    let seconds = began.elapsed().as_secs_f64();
    micros.sort_unstable();
    let at = |q: usize| micros.get((micros.len() * q / 100).min(micros.len().saturating_sub(1))).copied().unwrap_or(0);
    let (p50, p99) = (at(50), at(99));
    Ok(format!(
        r#"{{"ok":{ok},"rows":{stored},"refused":{refused},"seconds":{seconds:.4},"p50_us":{p50},"p99_us":{p99}}}"#
    ))
}
