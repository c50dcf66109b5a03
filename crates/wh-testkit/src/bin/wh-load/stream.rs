//! `wh-load stream`: many subscribers to one table, rows posted at a steady rate, and how late each row came. `wh-load
//! replay`: one subscriber that reads so many rows and goes.
//!
//! Rows are posted from a thread of their own: what delays the subscribers must not delay the clock they are judged by.
//! Answers are stamped when they were read, rows when their bytes were.

use crate::connection::Connection;
use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use std::{
    cell::{Cell, RefCell},
    fmt::Write as _,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::LocalSet};

/// Subscribers that are being opened at a time.
const OPENING: usize = 64;
/// Most time for one to open.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the last rows may take.
const LAST: Duration = Duration::from_secs(20);
/// What stands before a row's number, which has [`DIGITS`] digits.
const NUMBER: &[u8] = b"data: {\"n\":1";
const DIGITS: usize = 9;
/// Steps of the latencies, and how many there are; the last one is everything beyond.
const STEP: u64 = 50;
const STEPS: usize = 400_000;

/// What is done.
struct Options {
    address: SocketAddr,
    /// Where subscribers go.
    path: String,
    /// Where rows go.
    ingest: String,
    connections: usize,
    /// Of one request.
    rows: u64,
    /// Rows a second.
    rate: u64,
    /// Of a row.
    bytes: usize,
    seconds: u64,
    /// Rows that a replay reads.
    expect: u64,
    /// Whose processor time and memory are told.
    pid: Option<u32>,
}

impl Options {
    fn read(args: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            path: "/v1/stream".to_owned(),
            ingest: "/v1/ingest".to_owned(),
            connections: 100,
            rows: 10,
            rate: 30,
            bytes: 128,
            seconds: 10,
            expect: 1,
            pid: None,
        };
        for arg in args {
            let (key, value) = arg.split_once('=').with_context(|| format!("{arg:?} is not KEY=VALUE"))?;
            let number = || value.parse::<u64>().with_context(|| format!("{key} wants a number, not {value:?}"));
            match key {
                "address" => options.address = value.parse().context("address")?,
                "path" => value.clone_into(&mut options.path),
                "ingest" => value.clone_into(&mut options.ingest),
                "connections" => options.connections = usize::try_from(number()?)?.clamp(1, 50_000),
                "rows" => options.rows = number()?.clamp(1, 10_000),
                "rate" => options.rate = number()?.clamp(1, 1_000_000),
                "bytes" => options.bytes = usize::try_from(number()?)?.clamp(32, 65_536),
                "seconds" => options.seconds = number()?.clamp(1, 600),
                "expect" => options.expect = number()?.max(1),
                "pid" => options.pid = Some(value.parse().context("pid")?),
                _ => bail!("no option {key:?}"),
            }
        }
        ensure!(options.address.ip().is_loopback(), "load goes to this machine only, not to {}", options.address);
        Ok(options)
    }

    /// How many requests there are in all.
    fn requests(&self) -> u64 {
        (self.seconds * self.rate).div_ceil(self.rows)
    }
}

/// Processor time and memory of the server.
#[derive(Clone, Copy, Default)]
struct Usage {
    cpu_us: u64,
    rss_kb: u64,
}

impl Usage {
    fn of(pid: Option<u32>) -> Result<Self> {
        let Some(pid) = pid else { return Ok(Self::default()) };
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let fields: Vec<&str> = stat.rsplit_once(')').context("stat")?.1.split_whitespace().collect();
        let ticks: u64 =
            fields.get(11).context("utime")?.parse::<u64>()? + fields.get(12).context("stime")?.parse::<u64>()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        let rss_kb = rss.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(Self { cpu_us: ticks * 10_000, rss_kb })
    }
}

/// What subscribers saw, all together.
struct Seen {
    deliveries: Cell<u64>,
    gaps: Cell<u64>,
    ended: Cell<u64>,
    late: RefCell<Vec<u32>>,
    /// Scratch that all read into, one after the other.
    buffer: RefCell<Vec<u8>>,
}

impl Seen {
    fn new() -> Self {
        Self {
            deliveries: Cell::new(0),
            gaps: Cell::new(0),
            ended: Cell::new(0),
            late: RefCell::new(vec![0; STEPS + 1]),
            buffer: RefCell::new(vec![0; 256 << 10]),
        }
    }

    /// Microseconds below which this part of the deliveries came.
    fn quantile(&self, of: f64) -> u64 {
        let late = self.late.borrow();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank"
        )]
        let rank = (self.deliveries.get() as f64 * of) as u64;
        let mut below = 0;
        for (step, count) in late.iter().enumerate() {
            below += u64::from(*count);
            if below > rank {
                return step as u64 * STEP;
            }
        }
        0
    }
}

/// When each request was answered, in microseconds since the start; 0: not yet.
type Answered = Arc<[AtomicU64]>;

pub(crate) async fn run(args: impl Iterator<Item = String>) -> Result<String> {
    let options = Rc::new(Options::read(args)?);
    let before = Usage::of(options.pid)?;
    let sockets = open_all(&options).await?;
    let opened = Usage::of(options.pid)?;
    let answered: Answered = (0..options.requests()).map(|_| AtomicU64::new(0)).collect();
    let (seen, began) = (Rc::new(Seen::new()), Instant::now());
    let local = LocalSet::new();
    for (socket, rest) in sockets {
        let (seen, answered, rows) = (Rc::clone(&seen), Arc::clone(&answered), options.rows);
        local.spawn_local(async move {
            let late = |number: u64, at: Instant| {
                let answered = answered.get(usize::try_from(number / rows).ok()?)?.load(Ordering::Acquire);
                let at = u64::try_from((at - began).as_micros()).ok()?;
                Some(if answered == 0 { 0 } else { at.saturating_sub(answered) })
            };
            // however it ended, this subscriber is gone
            drop(subscribe(&socket, rest, &seen, late).await);
            seen.ended.set(seen.ended.get() + 1);
        });
    }
    let poster = {
        let (address, ingest, rows) = (options.address, options.ingest.clone(), options.rows);
        let (rate, bytes, answered) = (options.rate, options.bytes, Arc::clone(&answered));
        thread::spawn(move || post_all(address, &ingest, rows, rate, bytes, &answered, began))
    };
    let expected = options.requests() * options.rows * options.connections as u64;
    let arrived = async {
        while !poster.is_finished() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let until = Instant::now() + LAST;
        while seen.deliveries.get() < expected && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        began.elapsed().as_secs_f64()
    };
    let seconds = local.run_until(arrived).await;
    let after = Usage::of(options.pid)?;
    poster.join().map_err(|_| anyhow::anyhow!("posting panicked"))??;
    let (deliveries, gaps, ended) = (seen.deliveries.get(), seen.gaps.get(), seen.ended.get());
    let (p50, p99, most) = (seen.quantile(0.5), seen.quantile(0.99), seen.quantile(0.999_999));
    let (cpu, opening) = (after.cpu_us - opened.cpu_us, opened.rss_kb.saturating_sub(before.rss_kb));
    Ok(format!(
        r#"{{"connections":{},"deliveries":{deliveries},"expected":{expected},"seconds":{seconds:.4},"p50_us":{p50},"p99_us":{p99},"max_us":{most},"gaps":{gaps},"ended":{ended},"cpu_us":{cpu},"opening_kb":{opening},"rss_kb":{}}}"#,
        options.connections, after.rss_kb
    ))
}

/// One subscriber that reads so many rows.
pub(crate) async fn replay(args: impl Iterator<Item = String>) -> Result<String> {
    let options = Options::read(args)?;
    let (seen, began) = (Seen::new(), Instant::now());
    let (socket, rest) = open(&options).await?;
    let head = began.elapsed().as_secs_f64();
    let enough = async {
        while seen.deliveries.get() < options.expect {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        ended = subscribe(&socket, rest, &seen, |_, _| Some(0)) => {
            ended?;
            bail!("the stream ended after {} rows", seen.deliveries.get());
        }
        () = enough => {}
    }
    let (seconds, rows, gaps) = (began.elapsed().as_secs_f64(), seen.deliveries.get(), seen.gaps.get());
    Ok(format!(r#"{{"rows":{rows},"seconds":{seconds:.4},"head_seconds":{head:.4},"gaps":{gaps}}}"#))
}

/// An open stream, and what came with its first bytes.
type Opened = (TcpStream, Vec<u8>);

async fn open_all(options: &Rc<Options>) -> Result<Vec<Opened>> {
    let local = LocalSet::new();
    let left = Rc::new(Cell::new(options.connections));
    let workers: Vec<_> = (0..OPENING.min(options.connections))
        .map(|_| {
            let (options, left) = (Rc::clone(options), Rc::clone(&left));
            local.spawn_local(async move {
                let mut own = Vec::new();
                while let Some(fewer) = left.get().checked_sub(1) {
                    left.set(fewer);
                    own.push(tokio::time::timeout(PATIENCE, open(&options)).await.context("opening a stream")??);
                }
                Ok::<_, anyhow::Error>(own)
            })
        })
        .collect();
    local
        .run_until(async {
            let mut all = Vec::with_capacity(options.connections);
            for worker in workers {
                all.extend(worker.await??);
            }
            Ok(all)
        })
        .await
}

/// Opens a stream and reads until it is live, or replays.
async fn open(options: &Options) -> Result<Opened> {
    let mut socket = TcpStream::connect(options.address).await.context("connecting")?;
    let Options { path, address, .. } = options;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut head = Vec::with_capacity(1_024);
    loop {
        socket.readable().await?;
        match socket.try_read_buf(&mut head) {
            Ok(0) => bail!("the server closed: {}", String::from_utf8_lossy(&head)),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        }
        if memmem::find(&head, b"\r\n\r\n").is_some() {
            ensure!(head.starts_with(b"HTTP/1.1 200"), "refused: {}", String::from_utf8_lossy(&head));
        }
        let live = memmem::find(&head, b"event: ready\n").is_some() || memmem::find(&head, NUMBER).is_some();
        if live {
            head.shrink_to_fit();
            return Ok((socket, head));
        }
    }
}

/// Reads one stream to its end. `late` says how late a row is that was read now.
async fn subscribe(
    socket: &TcpStream,
    first: Vec<u8>,
    seen: &Seen,
    late: impl Fn(u64, Instant) -> Option<u64>,
) -> Result<()> {
    let (numbers, gaps) = (memmem::Finder::new(NUMBER), memmem::Finder::new(b"event: gap\n"));
    let mut rest = first;
    loop {
        {
            let mut buffer = seen.buffer.borrow_mut();
            let kept = rest.len();
            if buffer.len() < kept + (64 << 10) {
                buffer.resize(kept + (64 << 10), 0);
            }
            buffer[..kept].copy_from_slice(&rest);
            let read = match socket.try_read(&mut buffer[kept..]) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error.into()),
            };
            let text = &buffer[..kept + read];
            let at = Instant::now();
            // whole events; what follows is looked at with what comes next
            let whole = memmem::rfind(text, b"\n\n").map_or(0, |end| end + 2);
            for begin in numbers.find_iter(&text[..whole]) {
                let digits = &text[begin + NUMBER.len()..][..DIGITS];
                let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
                let step = usize::try_from(late(number, at).unwrap_or(0) / STEP).unwrap_or(STEPS).min(STEPS);
                seen.late.borrow_mut()[step] += 1;
                seen.deliveries.set(seen.deliveries.get() + 1);
            }
            seen.gaps.set(seen.gaps.get() + gaps.find_iter(&text[..whole]).count() as u64);
            rest.clear();
            rest.extend_from_slice(&text[whole..]);
        }
        socket.readable().await?;
    }
}

/// Posts every request at its time and stamps its answer.
fn post_all(
    address: SocketAddr,
    path: &str,
    rows: u64,
    rate: u64,
    bytes: usize,
    answered: &Answered,
    began: Instant,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connection = Connection::open(address).await?;
        let (mut body, mut request) = (String::new(), Vec::new());
        for (number, answer) in (0_u64..).zip(answered.iter()) {
            let due = began + Duration::from_micros(number * rows * 1_000_000 / rate);
            tokio::time::sleep_until(due.into()).await;
            body.clear();
            for row in number * rows..(number + 1) * rows {
                row_text(&mut body, row, bytes)?;
            }
            request.clear();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/x-ndjson\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            request.extend_from_slice(head.as_bytes());
            request.extend_from_slice(body.as_bytes());
            let status = connection.exchange(&request).await?;
            ensure!(status == 200, "the server answered {status}: {}", connection.last_body());
            let at = u64::try_from(began.elapsed().as_micros())?;
            answer.store(at.max(1), Ordering::Release);
        }
        Ok(())
    })
}

/// A row of so many bytes, with its number where subscribers look for it.
fn row_text(out: &mut String, number: u64, bytes: usize) -> Result<()> {
    let before = out.len();
    write!(out, "{{\"n\":1{number:09},\"pad\":\"")?;
    let mut state = number;
    while out.len() - before < bytes.saturating_sub(3) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        write!(out, "{:x}", (state >> 40) % 16)?;
    }
    out.push_str("\"}\n");
    Ok(())
}
