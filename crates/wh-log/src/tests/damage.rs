//! Damaged files: what is told of them, and what is served all the same.

use super::support::{DIR, body, disk_options, fill, open, pathed, reopen};
use crate::{Damage, Detail, Kind, Log, Opening, Options, Place, Position, Record, disk::sim::SimDisk, names::Name};
use proptest::prelude::*;
use std::{path::Path, sync::Arc};
use wh_types::Timestamp;

/// A closed log with one record a group, all in one segment.
fn five(disk: &SimDisk) -> Vec<Place> {
    let (log, _, _) = open(disk);
    let places = (1..=5).flat_map(|i| fill(&log, &[i])).collect();
    super::support::close(&log);
    places
}

fn corrupt(disk: &SimDisk, name: Name, offset: u32) {
    disk.corrupt(&pathed(name), u64::from(offset), 0x40);
}

#[test]
fn a_damaged_body_is_told_with_its_record_and_the_rest_is_served() {
    let disk = SimDisk::new(1);
    let places = five(&disk);
    corrupt(&disk, Name::Open(1), places[2].offset + 100);
    let (log, recovered, seen) = open(&disk);
    assert_eq!(seen, [1, 2, 4, 5]);
    let head = recovered.damages[0].head.unwrap();
    assert_eq!((recovered.damage_count, recovered.damages[0].place, head.sequence), (1, places[2], 3));
    let error = log.read(places[2]).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.to_string().contains(&places[2].to_string()), "{error}");
    assert_eq!(log.read(places[3]).unwrap().head.sequence, 4);
    assert!(log.segments()[0].damaged);

    // new records follow as ever, and the segment is kept for inspection when it is retired
    fill(&log, &[6]);
    super::support::seal(&log);
    log.retire(&[1]).unwrap();
    assert!(disk.files().iter().any(|(path, _)| *path == pathed(Name::Bad(1))));
    assert_eq!(log.read(places[3]).unwrap_err().kind(), Kind::Retired);
}

#[test]
fn records_read_together_are_what_they_are_alone() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    // far and near, over three segments, one of them retired, one record damaged
    let mut places: Vec<Place> = (1..=30).flat_map(|i| fill(&log, &[i])).collect();
    super::support::seal(&log);
    places.extend((31..=60).flat_map(|i| fill(&log, &[i])));
    super::support::seal(&log);
    places.extend(fill(&log, &(61..=90).collect::<Vec<_>>()));
    log.retire(&[2]).unwrap();
    disk.corrupt(&pathed(Name::Open(3)), u64::from(places[70].offset) + 60, 1);
    let (few, mut back) = (places.iter().copied().step_by(7).collect::<Vec<_>>(), places.clone());
    back.reverse();
    back.push(back[0]);
    for asked in [places, few, back, Vec::new()] {
        let together = log.read_many(&asked);
        let alone: Vec<_> = asked.iter().map(|place| log.read(*place)).collect();
        let shape = |read: &crate::Result<crate::Stored>| read.clone().map_err(|error| error.kind());
        let (together, alone): (Vec<_>, Vec<_>) =
            (together.iter().map(shape).collect(), alone.iter().map(shape).collect());
        assert_eq!(together, alone);
        let failed = |kind| alone.iter().filter(|read| read.as_ref().is_err_and(|k| *k == kind)).count();
        assert!(asked.len() < 90 || (failed(Kind::Retired), failed(Kind::Corrupt)) == (30, 1));
    }
}

#[test]
fn a_damaged_head_loses_its_record_only() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    let places = fill(&log, &[1, 2, 3, 4]);
    fill(&log, &[5]);
    super::support::close(&log);
    corrupt(&disk, Name::Open(1), places[1].offset + 20);
    let (_, recovered, seen) = reopen(&disk, log);
    assert_eq!(seen, [1, 3, 4, 5]);
    let lost = recovered.damages[0];
    assert_eq!((lost.place.offset, lost.head), (places[1].offset, None));
    assert_eq!(lost.place.offset + lost.place.len, places[2].offset);
}

#[test]
fn a_damaged_group_header_loses_no_record() {
    let disk = SimDisk::new(1);
    let places = five(&disk);
    let group = places[1].offset - 32;
    corrupt(&disk, Name::Open(1), group + 9);
    let (_, recovered, seen) = open(&disk);
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    assert_eq!(recovered.damages, [Damage { place: Place { segment: 1, offset: group, len: 32 }, head: None }]);
}

#[test]
fn a_damaged_segment_header_loses_nothing() {
    let disk = SimDisk::new(1);
    five(&disk);
    corrupt(&disk, Name::Open(1), 20);
    let (_, recovered, seen) = open(&disk);
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    assert_eq!(recovered.damages[0].place, Place { segment: 1, offset: 0, len: 64 });
}

#[test]
fn the_last_record_is_damage_after_a_close_and_a_torn_tail_after_a_power_cut() {
    let disk = SimDisk::new(1);
    let places = five(&disk);
    corrupt(&disk, Name::Open(1), places[4].offset + 50);
    let (log, recovered, seen) = open(&disk);
    assert_eq!((seen, recovered.damage_count, recovered.torn), (vec![1, 2, 3, 4], 1, false));

    // the same without a mark behind it and without a note: nothing shows that it was ever acknowledged
    let last = fill(&log, &[6])[0];
    disk.cut_power();
    disk.power_on();
    super::support::forget_extent(&disk);
    corrupt(&disk, Name::Open(1), last.offset + 50);
    let (_, recovered, seen) = reopen(&disk, log);
    assert_eq!((seen, recovered.damage_count, recovered.torn), (vec![1, 2, 3, 4], 1, true));
}

#[test]
fn a_file_cut_short_tells_what_is_missing() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    let places = fill(&log, &[1, 2]);
    let later = fill(&log, &[3]);
    super::support::seal(&log);
    // the file gets its final name when the next segment begins
    fill(&log, &[4]);
    super::support::close(&log);
    let sealed = log.segments()[0];
    disk.truncate(&pathed(Name::Sealed(1, sealed.bytes)), u64::from(places[1].offset + 60));
    let (_, recovered, seen) = reopen(&disk, log);
    assert_eq!(seen, [1, 4]);
    let end = recovered.damages.iter().map(|d| d.place.offset + d.place.len).max();
    assert_eq!((recovered.damages[0].place.offset, end), (places[1].offset, Some(sealed.bytes)));
    assert!(later[0].offset < sealed.bytes);
}

#[test]
fn an_unreadable_page_loses_what_is_in_it_and_a_failing_disk_is_an_error() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    let all: Vec<u64> = (1..=100).collect();
    let places: Vec<Place> = all.iter().flat_map(|i| fill(&log, &[*i])).collect();
    super::support::close(&log);
    let at = places[50].offset + 100;
    disk.make_unreadable(&pathed(Name::Open(1)), u64::from(at));
    assert_eq!(log.read(places[50]).unwrap_err().kind(), Kind::Io);
    let (_, recovered, seen) = reopen(&disk, log);
    let page = |place: &Place| place.offset < (at | 4095) + 1 && place.offset + place.len > (at & !4095);
    let hidden = places.iter().filter(|place| page(place)).count();
    assert!(seen.len() >= 100 - hidden - 1 && seen.len() < 100 && !seen.contains(&51), "{seen:?}");
    assert!(recovered.damage_count > 0);

    // where nothing can be read at all, it is not the log that is damaged
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    let body = vec![0; 30_000];
    let parts: [&[u8]; 1] = [&body];
    for _ in 0..40 {
        let record = Record { kind: 0, stream: 0, sequence: 0, time: Timestamp::default(), meta: &[], body: &parts };
        drop(log.try_submit(&[record]).unwrap());
        while log.step() {}
    }
    drop(log);
    for (path, len) in disk.files() {
        (0..len / 4096).for_each(|page| disk.make_unreadable(&path, page * 4096 + 100));
    }
    let error = Log::open(disk_options(&disk), |_| ()).unwrap_err();
    assert_eq!(error.kind(), Kind::Io);
}

#[test]
fn an_end_beyond_the_file_is_damage_up_to_it() {
    let disk = SimDisk::new(1);
    super::support::put(&disk, &Path::new(DIR).join("000000000001-4294967288.seal"), &[7; 100]);
    let (_, recovered, seen) = open(&disk);
    let whole = Place { segment: 1, offset: 64, len: 4_294_967_288 - 64 };
    assert!(seen.is_empty());
    assert_eq!(
        recovered.damages.iter().map(|d| d.place).collect::<Vec<_>>(),
        [whole, Place { segment: 1, offset: 0, len: 64 }]
    );
}

#[test]
fn a_damaged_footer_is_done_without() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    fill(&log, &[1, 2]);
    super::support::seal(&log);
    fill(&log, &[3]);
    let end = log.segments()[0].bytes;
    let footer = log.footer(1).unwrap();
    assert_eq!((footer.records, footer.streams.as_ref().unwrap()[0].last), (2, 2));
    corrupt(&disk, Name::Sealed(1, end), end + 40);
    assert_eq!(log.footer(1).unwrap(), footer);
    let (_, recovered, seen) = reopen(&disk, log);
    assert_eq!((recovered.damages, seen), (vec![], vec![1, 2, 3]));
}

#[test]
fn a_damaged_checkpoint_is_told_and_everything_is_replayed() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    fill(&log, &[1, 2]);
    log.write_checkpoint(log.applied(), &[b"state"]).unwrap();
    assert_eq!(&log.read_checkpoint().unwrap().unwrap().content[..], b"state");
    disk.corrupt(&Path::new(DIR).join("checkpoint"), 50, 1);
    assert_eq!(log.read_checkpoint().unwrap_err().kind(), Kind::Corrupt);
    drop(log);
    let opening = Opening::begin(disk_options(&disk)).unwrap();
    assert_eq!(opening.checkpoint(), None);
    assert_eq!(opening.checkpoint_lost().unwrap().kind(), Kind::Corrupt);
}

#[test]
fn a_checkpoint_proves_that_what_is_before_it_was_there() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    let places = fill(&log, &[1, 2]);
    log.write_checkpoint(log.applied(), &[]).unwrap();
    disk.cut_power();
    disk.power_on();
    corrupt(&disk, Name::Open(1), places[1].offset + 50);
    let (log, recovered, seen) = reopen(&disk, log);
    assert_eq!((seen, recovered.damage_count, recovered.torn), (vec![1], 1, false));
    assert!(log.position() >= log.read_checkpoint().unwrap().unwrap().position);
}

#[test]
fn a_lost_identity_is_taken_from_a_segment_and_foreign_files_are_refused() {
    let (disk, other) = (SimDisk::new(1), SimDisk::new(2));
    five(&disk);
    let (log, _, _) = open(&disk);
    let id = log.id();
    drop(log);
    disk.truncate(&Path::new(DIR).join("identity"), 7);
    let opening = Opening::begin(disk_options(&disk)).unwrap();
    assert_eq!((opening.id(), opening.created()), (id, false));
    drop(opening);

    let opening = Opening::begin(Options { entropy: Arc::new(wh_types::OsEntropy), ..disk_options(&other) }).unwrap();
    assert!(opening.created() && opening.id() != id);
    drop(opening);
    super::support::copy(&disk, &other, &pathed(Name::Open(1)));
    let error = Log::open(disk_options(&other), |_| ()).unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.to_string().contains(&format!("is of log {id:016x}")), "{error}");
}

#[test]
fn another_format_version_is_refused_and_named() {
    let disk = SimDisk::new(1);
    five(&disk);
    super::support::set_version(&disk, &pathed(Name::Open(1)), 9);
    let error = Log::open(disk_options(&disk), |_| ()).unwrap_err();
    assert_eq!(error.kind(), Kind::Version);
    assert!(error.to_string().contains("000000000001.open has format version 9, this reads 1"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever is done to the files of a closed log: opening it works or fails clearly, what is shown was stored, and
    /// what is not shown stands in a place that is told to be damaged.
    #[test]
    fn damage_anywhere_never_panics_and_never_hides(
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1_u8..), 0..12),
        cut in proptest::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())),
        heads in any::<bool>(),
    ) {
        let disk = SimDisk::new(7);
        let (log, _, _) = open(&disk);
        let mut places = Vec::new();
        for i in 0..12 {
            places.extend((3 * i + 1..).zip(fill(&log, &[3 * i + 1, 3 * i + 2, 3 * i + 3])));
            if i % 4 == 3 {
                super::support::seal(&log);
            }
        }
        super::support::close(&log);
        drop(log);
        let files: Vec<_> = disk.files().into_iter().filter(|(path, _)| path.extension().is_some()).collect();
        for (file, at, mask) in &hits {
            let (path, len) = file.get(&files);
            disk.corrupt(path, at.index(*len as usize) as u64, *mask);
        }
        if let Some((file, at)) = cut {
            let (path, len) = file.get(&files);
            disk.truncate(path, at.index(*len as usize) as u64);
        }
        let mut seen = Vec::new();
        let detail = if heads { Detail::Heads } else { Detail::Full };
        let (log, recovered) = Opening::begin(disk_options(&disk)).and_then(|opening| {
            opening.replay_stepped(Position::START, detail, |record| {
                assert!(record.body.is_none_or(|found| found == body(record.head.sequence)));
                seen.push((record.head.sequence, record.place));
            })
        }).unwrap();
        for (sequence, place) in &places {
            let shown = seen.contains(&(*sequence, *place));
            let told = recovered.damages.iter().any(|damage| {
                let (from, to) = (damage.place.offset, damage.place.offset + damage.place.len);
                damage.place.segment == place.segment && from < place.offset + place.len && place.offset < to
            });
            // a tail that was cut off the last file before its mark cannot be told from one never written
            let tail = place.segment == places.last().unwrap().1.segment;
            prop_assert!(shown || told || tail, "{sequence} at {place} is hidden");
            if heads && !shown && !tail {
                prop_assert!(log.read(*place).is_err());
            }
        }
        prop_assert!(seen.iter().all(|shown| places.contains(shown)));
        let more = fill(&log, &[99]);
        prop_assert_eq!(log.read(more[0]).unwrap().head.sequence, 99);
    }

    /// Files of any content under any of the names.
    #[test]
    fn arbitrary_files_never_panic(
        files in proptest::collection::vec((0_usize..7, proptest::collection::vec(any::<u8>(), 0..400)), 0..6)
    ) {
        let disk = SimDisk::new(7);
        let names = ["identity", "checkpoint", "000000000001.open", "000000000002.open", "000000000002-0000000200.seal",
            "000000000003.free", "x.tmp"];
        for (name, content) in &files {
            super::support::put(&disk, &Path::new(DIR).join(names[*name]), content);
        }
        if let Ok((log, _)) = Log::open(disk_options(&disk), |_| ()) {
            prop_assert!(log.segments().len() <= 2);
        }
    }
}
