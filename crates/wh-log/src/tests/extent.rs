//! Segments that vanished or were cut short: what is told of them.

use super::support::{DIR, close, disk_options, fill, open, pathed, reopen, seal};
use crate::{
    Detail, Kind, Missing, Opening, Position,
    disk::{Disk, sim::SimDisk},
    names::Name,
};
use std::path::{Path, PathBuf};

/// Segments of ten records each, and one that is written.
fn segments(disk: &SimDisk, sealed: u64) -> crate::Log {
    let (log, _, _) = open(disk);
    for segment in 0..sealed {
        fill(&log, &(segment * 10 + 1..segment * 10 + 6).collect::<Vec<_>>());
        fill(&log, &(segment * 10 + 6..segment * 10 + 11).collect::<Vec<_>>());
        seal(&log);
    }
    fill(&log, &[sealed * 10 + 1, sealed * 10 + 2]);
    fill(&log, &[sealed * 10 + 3]);
    log
}

/// A segment's file, whatever it is called.
fn file(disk: &SimDisk, number: u64) -> PathBuf {
    let of = |path: &Path| Name::parse(path.file_name()?.to_str()?)?.segment();
    disk.files().into_iter().map(|(path, _)| path).find(|path| of(path) == Some(number)).unwrap()
}

fn remove(disk: &SimDisk, number: u64) {
    disk.remove(&file(disk, number)).unwrap();
    disk.sync_dir(Path::new(DIR)).unwrap();
}

/// Which segments are missing, from where on.
fn told(missing: &[Missing]) -> Vec<(u64, u32, bool, u64)> {
    missing.iter().map(|m| (m.place.segment, m.place.offset, m.whole, m.last_sequence)).collect()
}

#[test]
fn a_segment_that_vanished_is_named_and_remembered_until_those_of_its_time_are_freed() {
    for closed in [true, false] {
        let disk = SimDisk::new(1);
        let log = segments(&disk, 3);
        if closed {
            close(&log);
        }
        let bytes = log.segments()[1].bytes;
        remove(&disk, 2);
        let (log, recovered, seen) = reopen(&disk, log);
        assert_eq!(seen, (1..=10).chain(21..=33).collect::<Vec<_>>(), "the rest is served");
        assert_eq!(told(&recovered.missing), [(2, 64, true, 20)]);
        assert_eq!((recovered.missing[0].place.len, recovered.damage_count), (bytes - 64, 0));
        let noticed = recovered.missing[0].noticed;
        let (log, recovered, _) = reopen(&disk, log);
        assert_eq!((told(&recovered.missing), recovered.missing[0].noticed), (vec![(2, 64, true, 20)], noticed));
        seal(&log);
        fill(&log, &[50]);
        log.retire(&[1, 3, 4]).unwrap();
        seal(&log);
        fill(&log, &[51]);
        log.retire(&[5]).unwrap();
        let (_, recovered, _) = reopen(&disk, log);
        assert_eq!(told(&recovered.missing), []);
    }
}

#[test]
fn the_only_segment_is_missed_and_its_number_and_sequences_are_not_used_again() {
    let disk = SimDisk::new(1);
    let log = segments(&disk, 0);
    remove(&disk, 1);
    disk.kill_process();
    drop(log);
    let opening = Opening::begin(disk_options(&disk)).unwrap();
    assert!(opening.listed() && !opening.created());
    assert_eq!(opening.last_sequence(), 3);
    let (log, recovered) = opening.replay_stepped(Position::START, Detail::Full, |_| ()).unwrap();
    assert_eq!(told(&recovered.missing), [(1, 64, true, 3)]);
    assert_eq!(fill(&log, &[9])[0].segment, 2);
    let (_, recovered, seen) = reopen(&disk, log);
    assert_eq!((told(&recovered.missing), seen), (vec![(1, 64, true, 3)], vec![9]));
}

#[test]
fn a_sealed_segment_that_was_cut_short_is_named_with_the_place() {
    let disk = SimDisk::new(1);
    let log = segments(&disk, 2);
    let bytes = log.segments()[0].bytes;
    disk.truncate(&file(&disk, 1), 1_500);
    let (_, recovered, seen) = reopen(&disk, log);
    assert!(seen.contains(&1) && !seen.contains(&10) && seen.contains(&11), "{seen:?}");
    assert_eq!(told(&recovered.missing), [(1, 1_500, false, 10)]);
    assert_eq!(recovered.missing[0].place.len, bytes - 1_500);
    assert!(recovered.damage_count > 0, "the records that are cut are damage too");
}

#[test]
fn synced_groups_cut_from_the_end_are_missed_and_a_torn_group_is_not() {
    let disk = SimDisk::new(1);
    let log = segments(&disk, 0);
    let end = log.segments()[0].bytes;
    // a group that nobody was told of is cut short
    disk.cut_power_in(2);
    drop(super::support::submit(&log, &[4, 5, 6, 7]));
    log.step();
    disk.power_on();
    drop(log);
    let (log, recovered, seen) = open(&disk);
    assert_eq!((recovered.missing, recovered.damages, seen.len() % 4), (vec![], vec![], 3));
    // the last of those that somebody was told of
    let from = u64::from(end) - 100;
    disk.truncate(&pathed(Name::Open(1)), from);
    let (log, recovered, seen) = reopen(&disk, log);
    assert_eq!(seen, [1, 2]);
    assert_eq!((told(&recovered.missing)[0].0, told(&recovered.missing)[0].1), (1, end - 100));
    assert!(recovered.damage_count > 0 && !recovered.torn);
    // and what comes later stands behind it
    let place = fill(&log, &[8])[0];
    assert!(place.offset >= end, "{place}");
    let (_, recovered, seen) = reopen(&disk, log);
    assert_eq!((seen, recovered.missing.len()), (vec![1, 2, 8], 1));
}

#[test]
fn what_is_not_known_is_not_claimed() {
    // a log from before the list was kept, and one whose list is damaged
    for damaged in [false, true] {
        let disk = SimDisk::new(1);
        let log = segments(&disk, 2);
        close(&log);
        if damaged {
            disk.corrupt(&Path::new(DIR).join("extent"), 20, 1);
        } else {
            super::support::forget_extent(&disk);
        }
        remove(&disk, 2);
        drop(log);
        let opening = Opening::begin(disk_options(&disk)).unwrap();
        assert_eq!((opening.listed(), opening.list_lost().is_some()), (false, damaged));
        assert!(opening.list_lost().is_none_or(|error| error.kind() == Kind::Corrupt));
        let (log, recovered) = opening.replay_stepped(Position::START, Detail::Full, |_| ()).unwrap();
        assert_eq!(recovered.missing, []);
        // from now on it is known
        disk.kill_process();
        drop(log);
        remove(&disk, 1);
        let (_, recovered, _) = open(&disk);
        assert_eq!(told(&recovered.missing), [(1, 64, true, 10)]);
    }
}

#[test]
fn retiring_leaves_nothing_to_be_missed_however_it_is_cut_short() {
    for cut in 1..40 {
        let disk = SimDisk::new(cut);
        let log = segments(&disk, 3);
        disk.cut_power_in(cut);
        let done = log.retire(&[1, 3]);
        if done.is_ok() {
            // and what follows a retirement may be cut short too
            for sequence in 60..63 {
                drop(super::support::submit(&log, &[sequence]));
                log.step();
            }
        }
        disk.power_on();
        drop(log);
        let (_, recovered, seen) = open(&disk);
        assert_eq!((recovered.missing, recovered.damages), (vec![], vec![]), "cut {cut}");
        assert!((11..=20).all(|sequence| seen.contains(&sequence)), "cut {cut}: {seen:?}");
    }
}
