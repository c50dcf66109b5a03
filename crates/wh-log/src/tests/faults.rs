//! Failing and full disks, a full queue, and what waits meanwhile.

use super::support::{close, disk_options, fill, now, open, outcome, reopen, seal, submit};
use crate::{
    Kind, Log, Options, Position, Record,
    disk::{Disk, sim::SimDisk},
};
use std::{future::Future as _, path::Path, sync::Arc, time::Duration};
use wh_types::{Class, Timestamp};

fn lazy<'a>(sequence: u64, body: &'a [&'a [u8]]) -> Record<'a> {
    Record { kind: 2, stream: 2, sequence, time: Timestamp::from_nanos(0), meta: b"meta", body }
}

fn append_lazy(log: &Log, sequence: u64) {
    log.append_lazy(&[lazy(sequence, &[&super::support::body(sequence)])]).unwrap();
}

#[test]
fn a_failed_sync_is_an_unknown_outcome_and_the_segment_is_written_no_more() {
    for seed in 0..20 {
        let disk = SimDisk::new(seed);
        let (log, _, _) = open(&disk);
        let first = fill(&log, &[1])[0];
        disk.fail_syncs(1);
        let doubtful = submit(&log, &[2]);
        let syncs = disk.counts().syncs;
        log.step();
        let error = outcome(doubtful).unwrap_err();
        assert_eq!((error.kind(), error.class()), (Kind::Sync, Class::Unknown));
        assert_eq!(disk.counts().syncs, syncs, "a failed sync is not repeated");
        let third = fill(&log, &[3])[0];
        assert!(third.segment > first.segment);
        assert_eq!(log.stats().sync_failed, 1);
        // a later group is durable, so the doubtful one never comes back, readable or not
        disk.cut_power();
        disk.power_on();
        let (_, recovered, seen) = reopen(&disk, log);
        assert_eq!((recovered.damages, seen), (vec![], vec![1, 3]));
    }
}

#[test]
fn what_is_in_the_page_cache_only_is_made_durable_before_it_is_shown() {
    let disk = SimDisk::new(3);
    let (log, _, _) = open(&disk);
    fill(&log, &[1]);
    // the process dies while the sync of a whole group fails, the machine runs on
    disk.fail_syncs(1);
    drop(submit(&log, &[2]));
    log.step();
    let (log, _, seen) = reopen(&disk, log);
    assert_eq!(seen, [1, 2]);
    disk.survive(crate::disk::sim::Survive::Nothing);
    disk.cut_power();
    disk.power_on();
    assert_eq!(reopen(&disk, log).2, [1, 2]);
}

#[test]
fn a_failed_write_stores_nothing_and_the_next_group_goes_elsewhere() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    fill(&log, &[1]);
    disk.fail_writes(1);
    let failed = submit(&log, &[2]);
    log.step();
    assert_eq!(outcome(failed).unwrap_err().class(), Class::Unavailable);
    assert_eq!(fill(&log, &[3])[0].segment, 2);
    // nothing piles up when every attempt fails
    for _ in 0..20 {
        disk.fail_syncs(1);
        let failed = submit(&log, &[9]);
        log.step();
        assert_eq!(outcome(failed).unwrap_err().kind(), Kind::Sync);
    }
    fill(&log, &[4]);
    assert!(disk.files().len() < 12, "{:?}", disk.files());
    assert_eq!(reopen(&disk, log).2, [1, 3, 4]);
}

#[test]
fn a_full_disk_refuses_clearly_and_goes_on_when_there_is_space() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    fill(&log, &[1, 2, 3]);
    disk.set_capacity(Some(disk.used() + 300));
    append_lazy(&log, 50);
    for _ in 0..3 {
        let refused = submit(&log, &[7, 8, 9]);
        log.step();
        let error = outcome(refused).unwrap_err();
        assert_eq!(error.kind(), Kind::NoSpace);
        assert!(matches!(error.class(), Class::Exhausted { .. }));
        assert!(error.to_string().contains("the disk is full"), "{error}");
    }
    assert!(log.stats().full);
    // a process that starts on the full disk serves what is there
    let (log, recovered, seen) = reopen(&disk, log);
    assert_eq!((recovered.damages, seen), (vec![], vec![1, 2, 3]));
    append_lazy(&log, 51);
    let refused = submit(&log, &[7, 8, 9]);
    log.step();
    assert!(outcome(refused).is_err());
    disk.set_capacity(None);
    let place = fill(&log, &[4])[0];
    assert_eq!((place.segment, log.stats().full), (1, false));
    assert!(now(log.flush()).is_some(), "the lazy record went with the last group");
    let (_, recovered, mut seen) = reopen(&disk, log);
    seen.sort_unstable();
    assert_eq!((recovered.damages, seen), (vec![], vec![1, 2, 3, 4, 51]));
}

#[test]
fn a_full_disk_takes_what_fits_into_segments_that_were_retired() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    fill(&log, &(1..60).collect::<Vec<_>>());
    seal(&log);
    fill(&log, &[60]);
    log.retire(&[1]).unwrap();
    disk.set_capacity(Some(disk.used()));
    let refused = submit(&log, &[61]);
    log.step();
    assert_eq!(outcome(refused).unwrap_err().kind(), Kind::NoSpace);
    seal(&log);
    let place = fill(&log, &(62..80).collect::<Vec<_>>())[0];
    assert_eq!(place.segment, 3);
}

#[test]
fn the_reserve_is_for_what_frees_space_and_comes_back_with_it() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    let body = super::support::body(6);
    let parts: [&[u8]; 1] = [&body];
    let reserve = log.reserve_bytes();
    assert!(reserve > 0 && disk.files().iter().any(|(path, size)| path.ends_with("reserve") && *size == reserve));
    fill(&log, &[1, 2, 3]);
    seal(&log);
    fill(&log, &[4]);
    disk.set_capacity(Some(disk.used()));
    let refused = submit(&log, &[5]);
    log.step();
    assert_eq!(outcome(refused).unwrap_err().kind(), Kind::NoSpace);
    log.spend_reserve().unwrap();
    // the room is there, and not for everybody
    let refused = submit(&log, &[5]);
    log.step();
    assert_eq!(outcome(refused).unwrap_err().kind(), Kind::NoSpace);
    let notes = [lazy(6, &parts)];
    let mut freeing = Box::pin(log.append_reserved(&notes));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(freeing.as_mut().poll(&mut cx).is_pending());
    while log.step() {}
    assert!(matches!(freeing.as_mut().poll(&mut cx), std::task::Poll::Ready(Ok(_))));
    assert_eq!(log.refill_reserve(0).unwrap_err().kind(), Kind::NoSpace, "there is nothing to make it of yet");
    assert!(log.stats().full && !disk.files().iter().any(|(path, _)| path.extension().is_some_and(|e| e == "tmp")));
    let freed = log.segments()[0].bytes;
    log.retire(&[1]).unwrap();
    assert!(u64::from(freed) < reserve || log.refill_reserve(0).is_ok(), "a retired file is removed, not kept");
    disk.set_capacity(None);
    log.refill_reserve(0).unwrap();
    assert!(!log.stats().full);
    drop(freeing);
    fill(&log, &[5]);
    // another life finds it, and one that lost it makes it anew
    let (log, ..) = reopen(&disk, log);
    assert_eq!(log.reserve_bytes(), reserve);
    disk.remove(&Path::new(super::support::DIR).join("reserve")).unwrap();
    let (log, ..) = reopen(&disk, log);
    assert_eq!(log.reserve_bytes(), reserve);
}

#[test]
fn short_writes_are_gone_on_with() {
    let disk = SimDisk::new(5);
    disk.short_writes(true);
    let (log, _, _) = open(&disk);
    let all: Vec<u64> = (1..200).collect();
    all.chunks(7).for_each(|some| drop(fill(&log, some)));
    let (_, recovered, seen) = reopen(&disk, log);
    assert_eq!((recovered.damages, seen), (vec![], all));
}

#[test]
fn a_full_queue_waits_or_refuses_and_goes_on() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    let body = vec![0; 20_000];
    let parts: [&[u8]; 1] = [&body];
    let big = [lazy(1, &parts)];
    let bytes = Log::bytes_of(&big);
    let waiting: Vec<_> = (0..3).map(|_| log.try_submit(&big).unwrap()).collect();
    assert_eq!(log.try_submit(&big).unwrap_err().kind(), Kind::QueueFull);
    assert!(now(log.room(bytes)).is_none(), "there is no room");
    assert!(log.step());
    let room = now(log.room(bytes)).unwrap().unwrap();
    let pending = log.submit(room, &big).unwrap();
    let small = now(log.room(100)).unwrap().unwrap();
    assert_eq!(log.submit(small, &big).unwrap_err().kind(), Kind::Invalid);
    while log.step() {}
    assert!(waiting.into_iter().chain([pending]).all(|pending| outcome(pending).is_ok()));
    assert!(now(log.room(60_000)).is_none_or(|room| room.is_err()), "more than an append may have");
    let over = vec![0; 40_000];
    let parts: [&[u8]; 1] = [&over];
    assert_eq!(log.try_submit(&[lazy(1, &parts)]).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(log.try_submit(&[]).unwrap_err().kind(), Kind::Invalid);
    let meta = vec![0; 70_000];
    let long = Record { meta: &meta, ..lazy(1, &[]) };
    assert_eq!(log.try_submit(&[long]).unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn close_writes_what_is_queued_and_refuses_what_comes_later() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    let pending = submit(&log, &[1]);
    append_lazy(&log, 2);
    let room = now(log.room(1_000)).unwrap().unwrap();
    close(&log);
    assert!(outcome(pending).is_ok());
    assert_eq!(log.submit(room, &[lazy(3, &[])]).unwrap_err().kind(), Kind::Closed);
    assert_eq!(now(log.room(10)).unwrap().unwrap_err().kind(), Kind::Closed);
    assert_eq!(log.append_lazy(&[lazy(3, &[])]).unwrap_err().class(), Class::Stopping);
    assert!(now(log.seal()).unwrap().is_err());
    close(&log);
    // the lock is free although the log still lives
    assert_eq!(open(&disk).2, [1, 2]);
}

#[test]
fn a_dropped_wait_takes_nothing_back() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    drop(submit(&log, &[1]));
    while log.step() {}
    assert_eq!(log.applied(), log.position());
    assert_eq!(reopen(&disk, log).2, [1]);
}

#[test]
fn the_bounds_of_the_options_are_checked() {
    let base = disk_options(&SimDisk::new(1));
    let wrong = [
        ("segment_bytes", Options { segment_bytes: 1_000, ..base.clone() }),
        ("group_bytes", Options { group_bytes: 64 * 1024, ..base.clone() }),
        ("queue_bytes", Options { queue_bytes: 1_000, ..base.clone() }),
        ("open_files", Options { open_files: 0, ..base.clone() }),
    ];
    for (field, options) in wrong {
        let error = Log::open(options, |_| ()).unwrap_err();
        assert!(error.kind() == Kind::Invalid && error.to_string().contains(field), "{error}");
    }
}

#[test]
fn few_files_are_open_at_once_and_all_are_read() {
    let disk = SimDisk::new(1);
    let options = Options { open_files: 2, ..disk_options(&disk) };
    let opening = crate::Opening::begin(options).unwrap();
    let (log, _) = opening.replay_stepped(Position::START, crate::Detail::Full, |_| ()).unwrap();
    let mut places = Vec::new();
    for i in 1..8 {
        places.extend(fill(&log, &[i]));
        seal(&log);
    }
    for (i, place) in places.iter().enumerate() {
        assert_eq!(log.read(*place).unwrap().head.sequence, i as u64 + 1);
    }
}

#[tokio::test]
async fn a_lazy_record_is_written_in_time_when_nothing_else_is() {
    let disk = SimDisk::new(1);
    let options = Options { lazy_after: Duration::from_millis(5), ..disk_options(&disk) };
    let (log, _) = Log::open(options, |_| ()).unwrap();
    append_lazy(&log, 1);
    while log.stats().records < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // a flush does not wait for that time
    append_lazy(&log, 2);
    log.flush().await.unwrap();
    assert_eq!(log.stats().records, 2);
}

#[tokio::test]
async fn an_idle_log_marks_its_end() {
    let disk = SimDisk::new(1);
    let options = Options { mark_after: Duration::from_millis(1), ..disk_options(&disk) };
    let (log, _) = Log::open(options, |_| ()).unwrap();
    let body = super::support::body(1);
    let parts: [&[u8]; 1] = [&body];
    let place = log.append(&[lazy(1, &parts)]).await.unwrap().first();
    let file = Path::new(super::support::DIR).join("000000000001.open");
    let marked = || {
        let bytes = crate::disk::read_file(&disk, &file, u64::MAX).unwrap();
        let end = crate::format::aligned(u64::from(place.offset + place.len)) as usize;
        bytes.len() >= end + 32
    };
    while !marked() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // with it, damage in the last group is known for what it is
    disk.kill_process();
    disk.corrupt(&file, u64::from(place.offset) + 50, 1);
    let (_, recovered, seen) = open(&disk);
    assert_eq!((seen, recovered.damage_count), (vec![], 1));
    drop(log);
}

#[tokio::test]
async fn many_writers_share_groups_and_all_are_told() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let options = Options { disk: Arc::clone(&disk), ..disk_options(&SimDisk::new(2)) };
    let log = Arc::new(Log::open(options.clone(), |_| ()).unwrap().0);
    let tasks = wh_types::Tasks::new();
    let writers: Vec<_> = (0..64_u64)
        .map(|writer| {
            let log = Arc::clone(&log);
            tasks.spawn("writer", async move {
                for i in 0..50 {
                    let body = super::support::body(writer);
                    log.append(&[Record { stream: writer, ..lazy(i, &[&body]) }]).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let stats = log.stats();
    assert!(stats.records == 3_200 && stats.groups < 1_600, "{stats:?}");
    log.close().await;
    let mut last = [None; 64];
    Log::open(options, |record| {
        let sequence = record.head.sequence;
        let before = last[record.head.stream as usize].replace(sequence);
        assert_eq!(before.map_or(0, |before| before + 1), sequence);
    })
    .unwrap();
    assert_eq!(last, [Some(49); 64]);
}
