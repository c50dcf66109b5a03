//! The bytes on the disk against the documented format.

use super::support::{body, fill, open, pathed};
use crate::{disk::sim::SimDisk, names::Name};

/// Reads a file as `docs/log-format.md` says, with nothing of this crate.
#[test]
fn the_bytes_are_as_the_format_says() {
    let disk = SimDisk::new(1);
    let (log, _, _) = open(&disk);
    let places = fill(&log, &[7, 8]);
    super::support::close(&log);
    let file = crate::disk::read_file(&disk, &pathed(Name::Open(1)), u64::MAX).unwrap();
    let number = |at: usize, len: usize| file[at..at + len].iter().rev().fold(0_u64, |n, b| (n << 8) | u64::from(*b));
    let mix = |x: u64| {
        let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let masked = |at: usize, covered: &[u8]| {
        let mask = mix(mix(log.id() ^ mix(1)) ^ at as u64) >> 32;
        number(at, 4) == u64::from(crc32c::crc32c(covered)) ^ mask
    };
    assert_eq!((&file[..8], number(8, 4), number(16, 8), number(24, 8)), (&b"WHLOGSEG"[..], 1, log.id(), 1));
    let records = [(96, 7_u64), (96 + 256, 8)];
    let len = |sequence: u64| 40 + 4 + 200 + sequence;
    assert_eq!(
        places.iter().map(|p| (u64::from(p.offset), u64::from(p.len))).collect::<Vec<_>>(),
        [(96, len(7)), (352, len(8))]
    );
    let group = &file[64..96];
    assert!(masked(64, &group[4..]));
    let fields = (&group[4..8], number(72, 8), number(80, 4), number(84, 4), number(92, 4));
    assert_eq!(fields, (&b"WHGR"[..], 1, 512, 2, 0));
    assert_eq!(number(88, 4), u64::from(crc32c::crc32c(&[&file[96..100], &file[352..356]].concat())));
    for (at, sequence) in records {
        let body = body(sequence);
        assert!(masked(at, &file[at + 4..at + 44]));
        assert_eq!(number(at + 4, 4), u64::from(crc32c::crc32c(&body)));
        assert_eq!((number(at + 8, 4), file[at + 12], file[at + 13]), (body.len() as u64, 1, 0xa5));
        let rest = (number(at + 14, 2), number(at + 16, 8), number(at + 24, 8), number(at + 32, 8));
        assert_eq!(rest, (4, 1, sequence, sequence * 1_000_000));
        assert_eq!((&file[at + 40..at + 44], &file[at + 44..at + 44 + body.len()]), (&b"meta"[..], &body[..]));
    }
    // the mark that closing left
    assert!(masked(608, &file[612..640]));
    assert_eq!((number(616, 8), number(624, 4), number(636, 4), file.len()), (2, 0, 1, 640));
}
