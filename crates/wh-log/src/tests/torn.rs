//! Groups that a power cut left half done.

use super::support::{disk_options, fill, open, pathed, reopen};
use crate::{
    Detail, Log, Opening, Position, Record,
    disk::sim::{SimDisk, Survive},
    names::Name,
};
use wh_types::Timestamp;

#[test]
fn a_torn_group_is_cut_off_whole_and_its_place_is_written_again() {
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        let (log, _, _) = open(&disk);
        fill(&log, &[1]);
        let pending = super::support::submit(&log, &[2, 3, 4]);
        // during the sync
        disk.cut_power_in(2);
        log.step();
        assert!(super::support::outcome(pending).is_err());
        disk.power_on();
        let (log, recovered, seen) = reopen(&disk, log);
        assert_eq!(recovered.damages, []);
        assert!(seen == [1] || seen == [1, 2, 3, 4], "{seen:?}");
        fill(&log, &[5]);
        let before = seen;
        let (_, recovered, seen) = reopen(&disk, log);
        assert_eq!((recovered.damages, seen), (vec![], [before, vec![5]].concat()));
    }
}

#[test]
fn a_group_that_was_judged_cut_short_is_not_completed_later() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    fill(&log, &[1]);
    let body = vec![0; 5_000];
    let parts: [&[u8]; 1] = [&body];
    let zeros = Record { kind: 0, stream: 0, sequence: 2, time: Timestamp::default(), meta: &[], body: &parts };
    drop(log.try_submit(&[zeros]).unwrap());
    log.step();
    // the end of the file is lost, the group's header is not
    let file = pathed(Name::Open(1));
    disk.truncate(&file, 3_000);
    super::support::forget_extent(&disk);
    let (log, recovered, seen) = reopen(&disk, log);
    assert_eq!((seen, recovered.torn), (vec![1], true));
    // and now there is an end of zeros, as the group had it
    let mut bytes = crate::disk::read_file(&disk, &file, u64::MAX).unwrap();
    bytes.resize(8_000, 0);
    super::support::put(&disk, &file, &bytes);
    let (_, recovered, seen) = reopen(&disk, log);
    assert_eq!((seen, recovered.torn, recovered.damages), (vec![1], false, vec![]));
}

#[test]
fn sectors_of_two_groups_that_were_cut_short_at_one_place_never_pass_for_one() {
    // records of exactly one sector, so that a mixture has only whole records
    let groups = [[10_u64, 11, 12, 13], [20, 21, 22, 23]];
    let len = 512 - 40;
    let write = |disk: &SimDisk, log: &Log, group: [u64; 4]| {
        let body = vec![group[0] as u8; len];
        let parts: [&[u8]; 1] = [&body];
        let record =
            |sequence| Record { kind: 0, stream: 0, sequence, time: Timestamp::from_nanos(0), meta: &[], body: &parts };
        let pending = log.try_submit(&group.map(record)).unwrap();
        disk.cut_power_in(2);
        log.step();
        drop(pending);
        disk.power_on();
    };
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let disk = SimDisk::new(seed);
        // so that the first record begins at a sector's edge
        let (log, _, _) = open(&disk);
        let pad = vec![1_u8; 512 - 64 - 32 - 32 - 40];
        let parts: [&[u8]; 1] = [&pad];
        let first = Record { kind: 0, stream: 0, sequence: 1, time: Timestamp::from_nanos(0), meta: &[], body: &parts };
        let pending = log.try_submit(&[first]).unwrap();
        log.step();
        super::support::outcome(pending).unwrap();
        disk.survive(Survive::Chance);
        write(&disk, &log, groups[0]);
        let options = disk_options(&disk);
        let (log, _) = Opening::begin(options.clone())
            .and_then(|opening| opening.replay_stepped(Position::START, Detail::Full, |_| ()))
            .unwrap();
        write(&disk, &log, groups[1]);
        let mut seen = Vec::new();
        Opening::begin(options)
            .and_then(|o| o.replay_stepped(Position::START, Detail::Full, |record| seen.push(record.head.sequence)))
            .unwrap();
        let both = [&[1], &groups[0][..], &groups[1][..]].concat();
        let known = [both[..1].to_vec(), both[..5].to_vec(), both.clone(), [&both[..1], &both[5..]].concat()];
        assert!(known.contains(&seen), "seed {seed}: {seen:?}");
        outcomes.insert(seen);
    }
    assert!(outcomes.len() >= 3, "{outcomes:?}");
}
