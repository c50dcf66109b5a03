//! Copies of a folder whose log goes on being written, sealed, retired and overwritten.

use super::{options, record};
use crate::{
    Kind, Log, Position, copy,
    disk::{Disk as _, RealDisk},
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use wh_types::Tasks;

/// What a log holds that was opened on a copy: the sequences, which must follow one upon the other.
fn held(dir: &Path) -> std::ops::RangeInclusive<u64> {
    let mut seen: Vec<u64> = Vec::new();
    let (log, recovered) = Log::open(options(dir), |record| {
        assert_eq!(record.body.unwrap(), &record.head.sequence.to_le_bytes().repeat(100));
        seen.push(record.head.sequence);
    })
    .unwrap();
    assert_eq!((recovered.damage_count, &recovered.missing[..], recovered.torn), (0, &[][..], false));
    drop(log);
    assert!(seen.windows(2).all(|pair| pair[0] + 1 == pair[1]), "a hole in {seen:?}");
    seen[0]..=seen[seen.len() - 1]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_made_while_the_log_is_written_and_reclaimed_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let log = Arc::new(Log::open(options(&dir.path().join("log")), |_| ()).unwrap().0);
    let (acked, stop, tasks) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)), Tasks::new());
    let writer = tasks.spawn("write", {
        let (log, acked, stop) = (Arc::clone(&log), Arc::clone(&acked), Arc::clone(&stop));
        async move {
            for sequence in 1_u64.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let body = sequence.to_le_bytes().repeat(100);
                log.append(&[record(sequence, &[&body])]).await.unwrap();
                acked.store(sequence, Ordering::Release);
                // four are kept: older files are overwritten while they may be copied
                let sealed: Vec<u64> = log.segments().iter().filter(|s| s.sealed).map(|s| s.number).collect();
                if let Some((oldest, [_, _, _, _, ..])) = sealed.split_first() {
                    let log = Arc::clone(&log);
                    let oldest = *oldest;
                    tokio::task::spawn_blocking(move || log.retire(&[oldest])).await.unwrap().unwrap();
                }
            }
        }
    });
    // until files are written that were segments before
    while log.segments().last().is_none_or(|segment| segment.number < 8) {
        assert!(!writer.is_finished());
        tokio::task::yield_now().await;
    }
    for round in 0..20 {
        let before = acked.load(Ordering::Acquire);
        let (from, to) = (dir.path().join("log"), dir.path().join(format!("copy {round}")));
        let found = tokio::task::spawn_blocking(move || {
            let copied = copy(&RealDisk, &from, &to).unwrap();
            assert!(copied.segments >= 4 && copied.bytes > 200_000, "{copied:?}");
            held(&to)
        });
        let found = found.await.unwrap();
        // the groups of the last moment are noted after they were acknowledged
        assert!(*found.end() + 16 >= before, "round {round}: {found:?} of {before}");
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    let last = acked.load(Ordering::Acquire);
    log.write_checkpoint(Position::START, &[b"state"]).unwrap();
    log.close().await;
    let to = dir.path().join("at rest");
    copy(&RealDisk, &dir.path().join("log"), &to).unwrap();
    assert_eq!(*held(&to).end(), last);
    let names = RealDisk.list(&to).unwrap();
    assert!(names.contains(&"checkpoint".to_owned()) && !names.contains(&"reserve.tmp".to_owned()), "{names:?}");
}

#[test]
fn nothing_is_copied_over_other_files_or_from_a_folder_without_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("log"), dir.path().join("to"));
    let error = copy(&RealDisk, &log, &to).unwrap_err();
    assert!(error.kind() == Kind::Path && error.to_string().contains("log"), "{error}");
    std::fs::create_dir(&log).unwrap();
    let error = copy(&RealDisk, &log, &to).unwrap_err();
    assert!(error.kind() == Kind::Path && error.to_string().contains("identity"), "{error}");
    drop(Log::open(options(&log), |_| ()).unwrap());
    std::fs::write(to.join("mine"), "x").unwrap();
    let error = copy(&RealDisk, &log, &to).unwrap_err();
    assert!(error.kind() == Kind::Path && error.to_string().contains("is not empty"), "{error}");
    assert_eq!(std::fs::read(to.join("mine")).unwrap(), b"x");
}
