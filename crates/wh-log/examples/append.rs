//! Measures durable appends against two limits: the disk's own, a plain loop that writes the same bytes and syncs them, and
//! the hand-over's, as many tasks that are told in rounds with nothing in place of the disk.
//!
//! `cargo run --profile quick -p wh-log --example append -- [folder] [seconds per case] [writers] [bytes]`
#![allow(clippy::print_stdout, reason = "it prints a table")]

mod handover;

use std::{
    error::Error,
    fs::{File, OpenOptions, read_to_string},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use wh_log::{Log, Options, Record};
use wh_types::{Clock, SystemClock, Tasks, Timestamp};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What one side of a case did, over all its rounds.
#[derive(Default)]
struct Figures {
    appends: u64,
    payload: f64,
    seconds: f64,
    took: Vec<Duration>,
    device_bytes: u64,
    rates: Vec<f64>,
}

impl Figures {
    fn at(&mut self, share: f64) -> u128 {
        self.took.sort_unstable();
        self.took.get((self.took.len() as f64 * share) as usize).copied().unwrap_or_default().as_micros()
    }

    fn add(&mut self, took: Vec<Duration>, bytes: usize, seconds: f64, device_bytes: u64) {
        let payload = took.len() as f64 * bytes as f64;
        self.appends += took.len() as u64;
        self.took.extend(took);
        self.payload += payload;
        self.seconds += seconds;
        self.device_bytes += device_bytes;
        self.rates.push(payload / seconds);
    }
}

/// Rounds of a case; the disk's own limit and the log take turns, so that what else the machine does hits both.
const ROUNDS: u32 = 10;

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let base = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds: u32 = args.next().map_or(Ok(6), |text| text.parse())?;
    let only = args.map(|text| text.parse()).collect::<Result<Vec<usize>, _>>()?;
    let dir = tempfile::Builder::new().prefix("wh-log-append").tempdir_in(base)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!(
        "disk: the same bytes by a plain loop; hand: as many tasks told in rounds, no disk; binds: the lower of the two"
    );
    println!(
        "{:>7} {:>6} {:>6} {:>10} {:>8} {:>7} {:>7} {:>8} {:>7} {:>8} {:>8} {:>10} {:>10} {:>7} {:>7} {:>5} {:>8} {:>8}",
        "writers",
        "bytes",
        "files",
        "appends/s",
        "MiB/s",
        "p50 µs",
        "p99 µs",
        "in group",
        "cpu µs",
        "disk p50",
        "disk p99",
        "disk/s",
        "hand/s",
        "of disk",
        "of hand",
        "binds",
        "dev/byte",
        "disk dev"
    );
    for size in [256, 25 * 1024] {
        for writers in [1_usize, 16, 256] {
            let wanted = [writers, size];
            if only.iter().zip(wanted).any(|(only, wanted)| *only != wanted) {
                continue;
            }
            for recycled in [false, true] {
                let slice = Duration::from_secs(seconds.into()) / (2 * ROUNDS);
                runtime.block_on(case(dir.path(), writers, size, slice, recycled))?;
            }
        }
    }
    Ok(())
}

/// Every writer appends one record after the other. `recycled`: sealed segments are retired, and overwritten.
async fn case(dir: &Path, writers: usize, size: usize, slice: Duration, recycled: bool) -> Outcome<()> {
    let path = dir.join("log");
    let mut options = Options::new(&path);
    options.pool_segments = if recycled { 4 } else { 0 };
    let log = Arc::new(Log::open(options, |_| ())?.0);
    if recycled {
        // until the pool is full of segments that were written once
        let fill = vec![7_u8; 1024 * 1024];
        for _ in 0..6 * 64 {
            log.append(&[record(&[&fill])]).await?;
        }
        retire(&log)?;
    }
    let before = log.stats();
    let mut raw = Raw::new(&dir.join("raw"), writers * size)?;
    let (mut limit, mut figures, mut cpu) = (Figures::default(), Figures::default(), 0.0);
    let mut hands = Vec::new();
    for _ in 0..ROUNDS {
        hands.push(handover::rate(writers, slice / 4).await);
        let device = device_bytes(dir);
        let (took, seconds) = raw.run(slice)?;
        limit.add(took, writers * size, seconds, device_bytes(dir) - device);
        let device = device_bytes(dir);
        let begin = cpu_seconds();
        let (took, seconds) = append(&log, writers, size, slice).await?;
        cpu += cpu_seconds() - begin;
        figures.add(took, size, seconds, device_bytes(dir) - device);
        retire(&log)?;
    }
    let groups = log.stats().groups - before.groups;
    log.close().await;
    drop(log);
    std::fs::remove_dir_all(&path)?;
    let of_disk = median(figures.rates.iter().zip(&limit.rates).map(|(log, raw)| log / raw));
    let of_hand = median(figures.rates.iter().zip(&hands).map(|(log, hand)| log / size as f64 / hand));
    let (disk, hand) = (limit.payload / limit.seconds / size as f64, median(hands.into_iter()));
    println!(
        "{writers:>7} {size:>6} {:>6} {:>10.0} {:>8.1} {:>7} {:>7} {:>8.1} {:>7.2} {:>8} {:>8} {disk:>10.0} {hand:>10.0} \
         {of_disk:>7.2} {of_hand:>7.2} {:>5} {:>8.2} {:>8.2}",
        if recycled { "reused" } else { "new" },
        figures.appends as f64 / figures.seconds,
        figures.payload / figures.seconds / 1024.0 / 1024.0,
        figures.at(0.5),
        figures.at(0.99),
        figures.appends as f64 / groups.max(1) as f64,
        cpu * 1e6 / figures.appends as f64,
        limit.at(0.5),
        limit.at(0.99),
        if disk < hand { "disk" } else { "hand" },
        figures.device_bytes as f64 / figures.payload,
        limit.device_bytes as f64 / limit.payload,
    );
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn append(log: &Arc<Log>, writers: usize, size: usize, time: Duration) -> Outcome<(Vec<Duration>, f64)> {
    let (clock, stop, tasks) = (SystemClock, Arc::new(AtomicBool::new(false)), Tasks::new());
    let begin = clock.now();
    let mut running = Vec::new();
    for _ in 0..writers {
        let (log, stop) = (Arc::clone(log), Arc::clone(&stop));
        running.push(tasks.spawn("writer", async move {
            let body = vec![42_u8; size];
            let mut took = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let begin = clock.now();
                log.append(&[record(&[&body])]).await?;
                took.push(clock.now() - begin);
            }
            Ok::<_, wh_log::Error>(took)
        }));
    }
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for writer in running {
        took.extend(writer.await??);
    }
    Ok((took, (clock.now() - begin).as_secs_f64()))
}

fn record<'a>(body: &'a [&'a [u8]]) -> Record<'a> {
    Record { kind: 1, stream: 1, sequence: 1, time: Timestamp::from_nanos(1), meta: &[], body }
}

fn retire(log: &Log) -> Outcome<()> {
    let sealed: Vec<u64> = log.segments().iter().filter(|s| s.sealed).map(|s| s.number).collect();
    if !sealed.is_empty() {
        log.retire(&sealed)?;
    }
    Ok(())
}

/// The disk's own limit: append as many bytes as all writers have at once, sync, again.
struct Raw {
    file: File,
    bytes: Vec<u8>,
    offset: u64,
}

impl Raw {
    fn new(path: &Path, group: usize) -> Outcome<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        Ok(Self { file, bytes: vec![42_u8; group], offset: 0 })
    }

    fn run(&mut self, time: Duration) -> Outcome<(Vec<Duration>, f64)> {
        let clock = SystemClock;
        let (begin, mut took) = (clock.now(), Vec::new());
        while clock.now() - begin < time {
            let at = clock.now();
            self.file.write_all_at(&self.bytes, self.offset)?;
            self.file.sync_data()?;
            self.offset += self.bytes.len() as u64;
            took.push(clock.now() - at);
        }
        Ok((took, (clock.now() - begin).as_secs_f64()))
    }
}

/// Bytes written so far to the device that a path is on, by everybody.
fn device_bytes(path: &Path) -> u64 {
    let Ok(device) = File::open(path).and_then(|file| Ok(file.metadata()?.dev())) else { return 0 };
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & !0xff));
    let stat = read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).unwrap_or_default();
    stat.split_whitespace().nth(6).and_then(|sectors| sectors.parse::<u64>().ok()).map_or(0, |sectors| sectors * 512)
}

/// Processor time of this process so far.
fn cpu_seconds() -> f64 {
    let stat = read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
