//! The log as a whole, on real files.

mod copy;
mod damage;
mod extent;
mod faults;
mod format;
mod model;
mod support;
mod torn;

use crate::{Detail, Kind, Log, Opening, Options, Place, Position, Record};
use std::path::Path;
use wh_types::{Class, Timestamp};

fn options(dir: &Path) -> Options {
    Options { segment_bytes: 64 * 1024, group_bytes: 16 * 1024, queue_bytes: 64 * 1024, ..Options::new(dir) }
}

fn record<'a>(sequence: u64, body: &'a [&'a [u8]]) -> Record<'a> {
    Record { kind: 1, stream: 7, sequence, time: Timestamp::from_millis(sequence as i64), meta: b"meta", body }
}

fn sequences(options: Options) -> Vec<u64> {
    let mut seen = Vec::new();
    let (_, recovered) = Log::open(options, |record| {
        assert_eq!(record.meta, b"meta");
        seen.push(record.head.sequence);
    })
    .unwrap();
    assert_eq!(recovered.damage_count, 0);
    seen
}

/// The committer lets go of a group a moment after it told those who wait for it.
async fn caught_up(log: &Log) {
    while log.applied() != log.position() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn records_are_read_back_by_place_and_after_reopening_over_many_segments() {
    let dir = tempfile::tempdir().unwrap();
    let (log, recovered) = Log::open(options(dir.path()), |_| panic!("a new log is empty")).unwrap();
    assert_eq!((recovered.records, recovered.torn), (0, false));
    let body = [b'x'; 1000];
    let mut places: Vec<Place> = Vec::new();
    for i in 0..100_u64 {
        let parts: [&[u8]; 2] = [&body, &i.to_le_bytes()];
        let pair = [record(2 * i, &parts), record(2 * i + 1, &[])];
        places.extend(log.append(&pair).await.unwrap().iter());
    }
    for (i, place) in places.iter().enumerate() {
        let stored = log.read(*place).unwrap();
        assert_eq!((stored.head.sequence, &stored.meta[..]), (i as u64, &b"meta"[..]));
        assert_eq!(stored.body.len(), if i % 2 == 0 { 1008 } else { 0 });
    }
    assert!(places.is_sorted());
    let segments = log.segments();
    assert!(segments.len() > 1, "{segments:?}");
    let footer = log.footer(segments[0].number).unwrap();
    assert_eq!(footer.streams.unwrap()[0].first, 0);
    log.append_lazy(&[record(200, &[])]).unwrap();
    caught_up(&log).await;
    log.close().await;
    assert_eq!(log.append(&[record(9, &[])]).await.unwrap_err().class(), Class::Stopping);
    assert_eq!(sequences(options(dir.path())), (0..=200).collect::<Vec<_>>());
}

#[tokio::test]
async fn retired_segments_are_overwritten_and_never_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = Log::open(options(dir.path()), |_| ()).unwrap();
    let body = [b'x'; 4000];
    for i in 0..200 {
        log.append(&[record(i, &[&body])]).await.unwrap();
        let sealed: Vec<u64> = log.segments().iter().filter(|s| s.sealed).map(|s| s.number).collect();
        log.retire(&sealed).unwrap();
    }
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert!(files < 10, "{files} files");
    let active = log.segments()[0].number;
    assert_eq!(log.retire(&[active]).unwrap_err().kind(), Kind::Invalid);
    log.close().await;
    drop(log);
    let seen = sequences(options(dir.path()));
    assert!(seen.len() < 20 && seen.last() == Some(&199) && seen.is_sorted(), "{seen:?}");
}

#[tokio::test]
async fn a_second_opener_is_told_who_has_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = Log::open(options(dir.path()), |_| ()).unwrap();
    let error = Log::open(options(dir.path()), |_| ()).unwrap_err();
    assert_eq!(error.class(), Class::Conflict);
    assert!(error.to_string().contains(&format!("process {} on ", std::process::id())), "{error}");
    log.close().await;
    Log::open(options(dir.path()), |_| ()).unwrap();
}

#[test]
fn a_folder_that_cannot_be_used_is_named_with_the_cause() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Log::open(Options::new(&file), |_| ()).unwrap_err().to_string();
    assert!(error.contains("/file: ") && error.contains("exists"), "{error}");
    let below = Log::open(Options::new(file.join("log")), |_| ()).unwrap_err().to_string();
    assert!(below.contains("/file/log: "), "{below}");
    let deep = dir.path().join("a/b/c");
    Log::open(Options::new(&deep), |_| ()).unwrap();
    assert!(deep.join("identity").is_file());
}

#[tokio::test]
async fn a_checkpoint_spares_the_replay_of_what_is_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = Log::open(options(dir.path()), |_| ()).unwrap();
    let body = [b'x'; 4000];
    let mut held = None;
    for i in 0..100 {
        let places = log.append(&[record(i, &[&body])]).await.unwrap();
        if i == 70 {
            held = Some(places);
        }
    }
    let held = held.unwrap();
    assert!(log.applied() < held.first().position() && log.applied() < log.position());
    log.write_checkpoint(log.applied(), &[b"as of ", b"70"]).unwrap();
    drop(held);
    caught_up(&log).await;
    log.close().await;

    for detail in [Detail::Full, Detail::Heads] {
        let opening = Opening::begin(options(dir.path())).unwrap();
        let checkpoint = opening.checkpoint().unwrap().clone();
        assert_eq!(&checkpoint.content[..], b"as of 70");
        assert!(checkpoint.position > Position::START);
        let mut seen = Vec::new();
        opening.replay(checkpoint.position, detail, |record| seen.push(record.head.sequence)).unwrap();
        assert_eq!(seen, (70..100).collect::<Vec<_>>());
    }
}
