//! What the tests on the disk in memory share: a log that writes when it is told to.

use crate::{
    Detail, Log, Opening, Options, Pending, Place, Places, Position, Record, Recovered, Result,
    disk::{Disk, Mode, read_file, sim::SimDisk, write_all},
    names::Name,
};
use crc32c::crc32c;
use std::{
    future::Future,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use wh_types::{SeededEntropy, Timestamp};

pub(super) const DIR: &str = "/log";

pub(super) fn pathed(name: Name) -> PathBuf {
    name.path(Path::new(DIR))
}

pub(super) fn disk_options(disk: &SimDisk) -> Options {
    Options {
        disk: Arc::new(disk.clone()),
        entropy: Arc::new(SeededEntropy::new(1)),
        segment_bytes: 64 * 1024,
        group_bytes: 16 * 1024,
        queue_bytes: 64 * 1024,
        reserve_bytes: 4 * 1024,
        ..Options::new(DIR)
    }
}

/// Opens the log; gives the sequences it shows.
pub(super) fn open(disk: &SimDisk) -> (Log, Recovered, Vec<u64>) {
    let mut seen = Vec::new();
    let opening = Opening::begin(disk_options(disk)).unwrap();
    let (log, recovered) = opening
        .replay_stepped(Position::START, Detail::Full, |record| {
            assert_eq!(record.body.unwrap(), body(record.head.sequence));
            seen.push(record.head.sequence);
        })
        .unwrap();
    (log, recovered, seen)
}

/// The process that had the log is gone, whatever it was doing.
pub(super) fn reopen(disk: &SimDisk, log: Log) -> (Log, Recovered, Vec<u64>) {
    disk.kill_process();
    drop(log);
    open(disk)
}

pub(super) fn body(sequence: u64) -> Vec<u8> {
    (0..200 + sequence).map(|i| (i * 7 + sequence) as u8).collect()
}

/// Queues records, one append.
pub(super) fn submit(log: &Log, sequences: &[u64]) -> Pending {
    let bodies: Vec<Vec<u8>> = sequences.iter().map(|s| body(*s)).collect();
    let parts: Vec<[&[u8]; 1]> = bodies.iter().map(|b| [&b[..]]).collect();
    let records: Vec<Record<'_>> = sequences
        .iter()
        .zip(&parts)
        .map(|(sequence, body)| Record {
            kind: 1,
            stream: 1,
            sequence: *sequence,
            time: Timestamp::from_millis(*sequence as i64),
            meta: b"meta",
            body,
        })
        .collect();
    log.try_submit(&records).unwrap()
}

/// What became of an append that was written by now.
pub(super) fn outcome(pending: Pending) -> Result<Places> {
    now(pending).expect("it was written")
}

pub(super) fn now<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Appends records as one group.
pub(super) fn fill(log: &Log, sequences: &[u64]) -> Vec<Place> {
    let pending = submit(log, sequences);
    while log.step() {}
    outcome(pending).unwrap().iter().collect()
}

pub(super) fn seal(log: &Log) {
    let mut seal = Box::pin(log.seal());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(seal.as_mut().poll(&mut cx).is_pending());
    while log.step() {}
    assert!(seal.as_mut().poll(&mut cx).is_ready());
}

/// As a log is that was never told how far it was.
pub(super) fn forget_extent(disk: &SimDisk) {
    disk.remove(&Path::new(DIR).join(crate::names::EXTENT)).unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
}

pub(super) fn close(log: &Log) {
    assert!(now(log.close()).is_some());
}

pub(super) fn put(disk: &SimDisk, path: &Path, content: &[u8]) {
    disk.make_dir(Path::new(DIR)).unwrap();
    disk.truncate(path, 0);
    let file = disk.open(path, Mode::Create).or_else(|_| disk.open(path, Mode::Write)).unwrap();
    write_all(&*file, content, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
}

pub(super) fn copy(from: &SimDisk, to: &SimDisk, path: &Path) {
    put(to, path, &read_file(from, path, u64::MAX).unwrap());
}

/// Rewrites a file's header as if a later version had written it.
pub(super) fn set_version(disk: &SimDisk, path: &Path, version: u32) {
    let mut bytes = read_file(disk, path, u64::MAX).unwrap();
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[12..16].fill(0);
    let crc = crc32c(&bytes[..64]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    put(disk, path, &bytes);
}
