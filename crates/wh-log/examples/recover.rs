//! Measures opening a log of 1,000,000 rows: one row a record, and 500 rows a record.
//!
//! `cargo run --profile quick -p wh-log --example recover -- [folder]`
#![allow(clippy::print_stdout, reason = "it prints a table")]

use rustix::fs::{Advice, fadvise};
use std::{error::Error, fs::File, path::Path, path::PathBuf};
use wh_log::{Detail, Log, Opening, Options, Position, Record};
use wh_types::{Clock, SystemClock, Timestamp};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let base = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::Builder::new().prefix("wh-log-recover").tempdir_in(base)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!(
        "{:>9} {:>7} {:>6} {:>6} {:>6} {:>9} {:>10}",
        "records", "bytes", "cache", "detail", "end", "ms", "records/s"
    );
    for (records, size) in [(1_000_000_u64, 256), (2_000, 25 * 1024), (2_000, 500 * 256)] {
        for clean in [true, false] {
            let path = dir.path().join("log");
            runtime.block_on(fill(&path, records, size, clean))?;
            for (cold, detail) in [
                (true, Detail::Full),
                (true, Detail::Heads),
                (true, Detail::Full),
                (true, Detail::Heads),
                (false, Detail::Heads),
                (false, Detail::Full),
            ] {
                if cold {
                    forget(&path)?;
                }
                let (begin, mut shown) = (SystemClock.now(), 0_u64);
                let opening = Opening::begin(Options::new(&path))?;
                let (log, recovered) = opening.replay(Position::START, detail, |record| {
                    shown += u64::from(record.meta.len() == 40);
                })?;
                let took = (SystemClock.now() - begin).as_secs_f64();
                if shown != records || recovered.damage_count > 0 {
                    return Err(format!("{shown} of {records} records, {recovered:?}").into());
                }
                std::mem::forget(log);
                println!(
                    "{records:>9} {size:>7} {:>6} {:>6} {:>6} {:>9.1} {:>10.0}",
                    if cold { "cold" } else { "warm" },
                    format!("{detail:?}"),
                    if clean { "closed" } else { "killed" },
                    took * 1e3,
                    records as f64 / took
                );
                // only this process's copy of the lock is left behind
                std::fs::remove_file(path.join("LOCK"))?;
            }
            std::fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

async fn fill(path: &Path, records: u64, size: usize, clean: bool) -> Outcome<()> {
    let (log, _) = Log::open(Options::new(path), |_| ())?;
    let (body, meta) = (vec![42_u8; size - 40], [1_u8; 40]);
    let parts: [&[u8]; 1] = [&body];
    let record = |sequence| Record {
        kind: 1,
        stream: sequence % 50,
        sequence,
        time: Timestamp::default(),
        meta: &meta,
        body: &parts,
    };
    let each = (1024 * 1024 / size).max(1) as u64;
    for first in (0..records).step_by(each as usize) {
        let some: Vec<Record<'_>> = (first..records.min(first + each)).map(record).collect();
        log.append(&some).await?;
    }
    if clean {
        log.close().await;
    } else {
        // as if the process died: no mark, and the files stay as they are
        std::mem::forget(log);
        std::fs::remove_file(path.join("LOCK"))?;
    }
    Ok(())
}

/// Drops the files from the page cache.
fn forget(path: &Path) -> Outcome<()> {
    for entry in std::fs::read_dir(path)? {
        let file = File::open(entry?.path())?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}
