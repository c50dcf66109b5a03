//! Measures durable appends against the disk's own limit: a plain loop that writes the same bytes and syncs them.
//!
//! `cargo run --profile quick -p wh-log --example append -- [folder] [seconds per case]`
#![allow(clippy::print_stdout, reason = "it prints a table")]

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

/// One measured case.
struct Figures {
    appends: u64,
    seconds: f64,
    p50: Duration,
    p99: Duration,
    groups: u64,
    log_bytes: u64,
    device_bytes: u64,
}

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let base = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds = args.next().map_or(Ok(3), |text| text.parse())?;
    let dir = tempfile::Builder::new().prefix("wh-log-append").tempdir_in(base)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!(
        "{:>7} {:>8} {:>6} {:>10} {:>9} {:>8} {:>8} {:>9} {:>8} {:>9} {:>9} {:>9}",
        "writers", "bytes", "log", "appends/s", "MiB/s", "p50 µs", "p99 µs", "in group", "of raw", "log/byte", "dev/byte", "raw dev"
    );
    for size in [256, 25 * 1024] {
        for writers in [1_usize, 16, 256] {
            for recycled in [false, true] {
                let time = Duration::from_secs(seconds);
                let raw = raw(&dir.path().join("raw"), writers * size, time)?;
                let path = dir.path().join("log");
                let log = runtime.block_on(append(&path, writers, size, time, recycled))?;
                std::fs::remove_dir_all(&path)?;
                let payload = log.appends as f64 * size as f64;
                let rate = payload / log.seconds;
                let raw_payload = raw.groups as f64 * (writers * size) as f64;
                println!(
                    "{writers:>7} {size:>8} {:>6} {:>10.0} {:>9.1} {:>8} {:>8} {:>9.1} {:>8.2} {:>9.2} {:>9.2} {:>9.2}",
                    if recycled { "reused" } else { "new" },
                    log.appends as f64 / log.seconds,
                    rate / 1024.0 / 1024.0,
                    log.p50.as_micros(),
                    log.p99.as_micros(),
                    log.appends as f64 / log.groups.max(1) as f64,
                    rate / (raw_payload / raw.seconds),
                    log.log_bytes as f64 / payload,
                    log.device_bytes as f64 / payload,
                    raw.device_bytes as f64 / raw_payload,
                );
            }
        }
    }
    Ok(())
}

/// Every writer appends one record after the other. `recycled`: sealed segments are retired, and overwritten.
async fn append(dir: &Path, writers: usize, size: usize, time: Duration, recycled: bool) -> Outcome<Figures> {
    let mut options = Options::new(dir);
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
    let before = (log.stats(), device_bytes(dir));
    let (clock, stop, tasks) = (SystemClock, Arc::new(AtomicBool::new(false)), Tasks::new());
    let begin = clock.now();
    let mut running = Vec::new();
    for _ in 0..writers {
        let (log, stop) = (Arc::clone(&log), Arc::clone(&stop));
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
    while clock.now() - begin < time {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if recycled {
            retire(&log)?;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for writer in running {
        took.extend(writer.await??);
    }
    let seconds = (clock.now() - begin).as_secs_f64();
    took.sort_unstable();
    let at = |share: f64| took.get((took.len() as f64 * share) as usize).copied().unwrap_or_default();
    let stats = log.stats();
    let device = device_bytes(dir) - before.1;
    log.close().await;
    Ok(Figures {
        appends: took.len() as u64,
        seconds,
        p50: at(0.5),
        p99: at(0.99),
        groups: stats.groups - before.0.groups,
        log_bytes: stats.bytes - before.0.bytes,
        device_bytes: device,
    })
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
fn raw(path: &Path, group: usize, time: Duration) -> Outcome<Figures> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    let (bytes, mut offset, mut took) = (vec![42_u8; group], 0, Vec::new());
    let (clock, device) = (SystemClock, device_bytes(path));
    let begin = clock.now();
    while clock.now() - begin < time {
        let at = clock.now();
        file.write_all_at(&bytes, offset)?;
        file.sync_data()?;
        offset += group as u64;
        took.push(clock.now() - at);
    }
    let seconds = (clock.now() - begin).as_secs_f64();
    took.sort_unstable();
    let at = |share: f64| took.get((took.len() as f64 * share) as usize).copied().unwrap_or_default();
    let device_bytes = device_bytes(path) - device;
    let groups = took.len() as u64;
    std::fs::remove_file(path)?;
    Ok(Figures { appends: groups, seconds, p50: at(0.5), p99: at(0.99), groups, log_bytes: offset, device_bytes })
}

/// Bytes written so far to the device that a path is on, by everybody.
fn device_bytes(path: &Path) -> u64 {
    let Ok(device) = File::open(path).and_then(|file| Ok(file.metadata()?.dev())) else { return 0 };
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & !0xff));
    let stat = read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).unwrap_or_default();
    stat.split_whitespace().nth(6).and_then(|sectors| sectors.parse::<u64>().ok()).map_or(0, |sectors| sectors * 512)
}
