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
mod yardstick;

use anyhow::{Context, Result, bail, ensure};
use connection::Connection;
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
    let mode = args.next().context("usage: wh-load http|yardstick KEY=VALUE …")?;
    let options = Options::read(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let line = match mode.as_str() {
        "http" => runtime.block_on(http(options))?,
        "yardstick" => runtime.block_on(yardstick::run(options))?,
        other => bail!("no mode {other:?}: http or yardstick"),
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

/// Every connection sends one request at a time until the count or the time is spent.
async fn http(options: Options) -> Result<String> {
    let requests: Arc<[Vec<u8>]> = options
        .bodies()?
        .iter()
        .map(|body| {
            let mut request = format!(
                "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: {}\r\ncontent-length: {}\r\n\r\n",
                options.path,
                options.address,
                options.content_type,
                body.len()
            )
            .into_bytes();
            request.extend_from_slice(body);
            request
        })
        .collect();
    let (next, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let until = began + options.within;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..options.connections {
        let (requests, next) = (requests.clone(), next.clone());
        let mut connection = Connection::open(options.address).await?;
        let most = options.requests;
        tasks.spawn(async move {
            let (mut ok, mut refused, mut micros) = (0_u64, 0_u64, Vec::new());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let sent = Instant::now();
                if number >= most || sent >= until {
                    break;
                }
                let index = usize::try_from(number).unwrap_or(usize::MAX) % requests.len();
                match connection.exchange(&requests[index]).await? {
                    200..=299 => ok += 1,
                    // It said "not now": a real client waits too.
                    429 | 503 => {
                        refused += 1;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    status => bail!("the server answered {status}: {}", connection.last_body()),
                }
                micros.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
            }
            Ok((ok, refused, micros))
        });
    }
    let (mut ok, mut refused, mut micros) = (0, 0, Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (more, not_now, times) = done??;
        ok += more;
        refused += not_now;
        micros.extend(times);
    }
    let seconds = began.elapsed().as_secs_f64();
    micros.sort_unstable();
    let at = |q: usize| micros.get((micros.len() * q / 100).min(micros.len().saturating_sub(1))).copied().unwrap_or(0);
    Ok(format!(r#"{{"ok":{ok},"refused":{refused},"seconds":{seconds:.4},"p50_us":{},"p99_us":{}}}"#, at(50), at(99)))
}
