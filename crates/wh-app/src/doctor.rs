//! What the data folder's disk can do, measured, and what ingest rate follows from it. Needs no running server, and
//! makes no folder.

use crate::data_dir;
use anyhow::Context;
use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};
use wh_types::Clock;

/// What a single event costs: one small write.
const SMALL: usize = 4 << 10;
/// What a full group of the queue is written as.
const LARGE: usize = 1 << 20;
/// The file is written over from its start after so much.
const FILE: u64 = 64 << 20;
/// The row that rates are told for.
const ROW: f64 = 256.0;

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    dir: PathBuf,
    /// Where it was measured, when the data folder is not there yet.
    instead: Option<PathBuf>,
    /// Times of a small write made durable, shortest first. Never empty.
    small: Vec<Duration>,
    /// Bytes per second of large writes, each made durable.
    bandwidth: f64,
}

/// Measures for about twice `span`. Leaves nothing behind.
pub(crate) fn measure(dir: &Path, span: Duration, clock: &dyn Clock) -> anyhow::Result<Measured> {
    let instead = nearest(dir)?;
    if instead.is_none() {
        data_dir::prepare(dir)?;
    }
    let place = instead.as_deref().unwrap_or(dir);
    let path = place.join(format!(".wavehouse-doctor-{}", std::process::id()));
    let measured = measure_in(&path, span, clock).with_context(|| format!("{} cannot be written", place.display()));
    let removed = fs::remove_file(&path);
    let (mut small, large) = measured?;
    removed?;
    small.sort_unstable();
    let total: Duration = large.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let bandwidth = (large.len() * LARGE) as f64 / total.as_secs_f64().max(1e-9);
    Ok(Measured { dir: dir.to_owned(), instead, small, bandwidth })
}

/// The folder that a missing data folder would be made in, or the nearest above it; `None` where the data folder is
/// there. It is on the same disk, unless another one is to be mounted.
fn nearest(dir: &Path) -> anyhow::Result<Option<PathBuf>> {
    let there = |path: &Path| fs::symlink_metadata(path).is_ok();
    if there(dir) {
        return Ok(None);
    }
    let full = std::path::absolute(dir).with_context(|| format!("where {} is cannot be told", dir.display()))?;
    Ok(full.ancestors().skip(1).find(|above| there(above)).map(Path::to_path_buf))
}

fn measure_in(path: &Path, span: Duration, clock: &dyn Clock) -> io::Result<(Vec<Duration>, Vec<Duration>)> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    // as the queue does: the blocks are there before they are written, so that only data is made durable
    let zeros = vec![0; LARGE];
    for _ in 0..FILE / LARGE as u64 {
        file.write_all(&zeros)?;
    }
    file.sync_all()?;
    Ok((times(&mut file, SMALL, span, clock)?, times(&mut file, LARGE, span, clock)?))
}

/// How long each durable write of so many bytes took, over and over for `span`.
fn times(file: &mut File, bytes: usize, span: Duration, clock: &dyn Clock) -> io::Result<Vec<Duration>> {
    let piece = vec![0x5a; bytes];
    let (started, mut times, mut at) = (clock.now(), Vec::new(), 0);
    while times.is_empty() || clock.now() - started < span {
        if at == 0 {
            file.seek(SeekFrom::Start(0))?;
        }
        let before = clock.now();
        file.write_all(&piece)?;
        file.sync_data()?;
        times.push(clock.now() - before);
        at = (at + bytes as u64) % FILE;
    }
    Ok(times)
}

impl Measured {
    fn at(&self, share: usize) -> Duration {
        self.small[(self.small.len() - 1) * share / 100]
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, slow) = (self.at(50), self.at(99));
        let (dir, bandwidth) = (self.dir.display(), self.bandwidth);
        writeln!(f, "data folder {dir}")?;
        if let Some(instead) = &self.instead {
            writeln!(f, "it is not there yet: measured in {}", instead.display())?;
        }
        writeln!(f, "a small durable write: {median:.1?} at the median, {slow:.1?} at the 99th percentile")?;
        writeln!(f, "large durable writes: {:.0} MB/s", bandwidth / 1e6)?;
        let alone = 1.0 / median.as_secs_f64().max(1e-9);
        writeln!(f, "so at most, as far as the disk goes:")?;
        writeln!(f, "  one client that posts single events: {alone:.0} events/s; many at a time share their writes")?;
        write!(f, "  batches: {:.0} rows/s of {ROW} bytes, more where they compress", bandwidth / ROW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::SystemClock;

    #[test]
    fn a_folder_is_measured_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let measured = measure(folder.path(), Duration::from_millis(1), &SystemClock).unwrap();
        assert!(measured.bandwidth > 0.0 && measured.at(50) <= measured.at(99));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let error = measure(Path::new("/proc/wavehouse"), Duration::ZERO, &SystemClock).unwrap_err().to_string();
        assert!(error.contains("/proc"), "{error}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let measured = measure(&folder.path().join("a/b"), Duration::from_millis(1), &SystemClock).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let said = format!("it is not there yet: measured in {}", folder.path().display());
        assert!(measured.to_string().contains(&said), "{measured}");
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(measure(&folder.path().join("file/below"), Duration::ZERO, &SystemClock).is_err());
    }

    #[test]
    fn the_rates_follow_from_the_figures() {
        let small = (1..=100).map(|n| Duration::from_micros(n * 100)).collect();
        let text = Measured { dir: "/d".into(), instead: None, small, bandwidth: 256e6 }.to_string();
        for part in ["5.0ms at the median", "9.9ms at the 99th", "256 MB/s", ": 200 events/s", "1000000 rows/s of 256"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
