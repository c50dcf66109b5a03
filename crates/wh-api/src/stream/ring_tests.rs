//! What the ring keeps, and where it finds a place.

use super::*;
use crate::stream::block::testing::{block, cursor};
use proptest::prelude::*;

fn item(epoch: u32, sequence: u64) -> Item {
    Item::Block(Arc::new(Shown::new(cursor(epoch, sequence), block("{}\n"))))
}

fn gap(after: Option<u64>, before: Option<u64>) -> Item {
    let at = |sequence: Option<u64>| sequence.map(|sequence| cursor(1, sequence));
    Item::Gap(Gap { after: at(after), before: at(before) })
}

fn all(ring: &Ring, mut at: u64) -> Vec<String> {
    std::iter::from_fn(|| match ring.read(&mut at) {
        Read::Item(Item::Block(shown)) => Some(shown.cursor.sequence.to_string()),
        Read::Item(Item::Gap(_)) => Some("gap".into()),
        Read::Behind(lost) => panic!("behind by {lost}"),
        Read::Nothing => None,
    })
    .collect()
}

/// What somebody gets who comes with a place.
fn after(ring: &Ring, sequence: u64) -> Option<Vec<String>> {
    ring.locate(Position::behind(cursor(1, sequence)), false).map(|at| all(ring, at))
}

const EACH: usize = 128 + 12 + OVERHEAD;
const MUCH: usize = 1 << 20;

#[test]
fn a_slow_reader_is_behind_and_the_newest_is_kept_however_large() {
    let (mut ring, mut at) = (Ring::default(), 0);
    assert!(matches!(ring.read(&mut at), Read::Nothing));
    let weight = Shown::new(cursor(1, 1), block("{}\n")).charge();
    for n in 1..=10 {
        ring.push(item(1, n), 3 * weight);
    }
    assert!(matches!(ring.read(&mut at), Read::Behind(7)));
    assert_eq!((at, ring.first(), ring.head(), ring.waiting(at)), (0, 7, 10, 10), "it stays where it is");
    assert_eq!(all(&ring, 7), ["8", "9", "10"]);
    ring.push(item(1, 11), 1);
    assert_eq!((all(&ring, 10), ring.bytes()), (vec!["11".into()], weight));
    ring.grow(10, 100, 1);
    ring.grow(9, 100, 1);
    assert_eq!(ring.bytes(), weight + 100, "what is gone does not grow");
}

#[test]
fn a_place_is_found_from_where_the_ring_begins() {
    let mut ring = Ring::default();
    assert_eq!(ring.locate(Position::behind(cursor(1, 5)), true), None, "nothing is known");
    ring.begin(Some(cursor(1, 5)));
    assert_eq!((after(&ring, 4), after(&ring, 5), after(&ring, 6)), (None, Some(vec![]), None));
    for n in [7, 9, 12] {
        ring.push(item(1, n), MUCH);
    }
    let rest = |of: &[&str]| Some(of.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
    assert_eq!(after(&ring, 4), None);
    assert_eq!(after(&ring, 5), rest(&["7", "9", "12"]));
    assert_eq!(after(&ring, 7), rest(&["9", "12"]));
    assert_eq!(after(&ring, 8), rest(&["9", "12"]), "another table's place");
    assert_eq!(after(&ring, 12), rest(&[]));
    assert_eq!(after(&ring, 13), None, "nobody knows such a place");
    assert_eq!(ring.locate(Position::behind(cursor(1, 13)), true), Some(3), "but for one who does");
    assert_eq!(ring.locate(Position::behind(cursor(2, 7)), true), None);
    let row: Position = "00000001-9.0".parse().unwrap();
    assert_eq!(ring.locate(row, false).map(|at| all(&ring, at)), rest(&["9", "12"]), "more rows of it may follow");
    ring.push(item(1, 13), 2 * EACH);
    assert!(ring.first() > 0);
    assert_eq!(after(&ring, 5), None, "the oldest went");
    assert!(after(&ring, 12).is_some());
}

#[test]
fn a_gap_is_told_to_who_stands_before_it_also_when_it_went() {
    let mut ring = Ring::default();
    ring.begin(Some(cursor(1, 5)));
    for item in [item(1, 7), gap(Some(7), Some(10)), item(1, 10), gap(None, None), item(1, 12)] {
        ring.push(item, MUCH);
    }
    let rest = |of: &[&str]| Some(of.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
    assert_eq!(after(&ring, 7), rest(&["gap", "10", "gap", "12"]));
    assert_eq!(after(&ring, 8), rest(&["gap", "10", "gap", "12"]));
    assert_eq!(after(&ring, 10), rest(&["gap", "12"]));
    assert_eq!(after(&ring, 11), rest(&["12"]));
    while ring.first() < 4 {
        let most = ring.bytes() - 1;
        ring.grow(4, 0, most);
    }
    assert_eq!(all(&ring, 4), ["12"]);
    assert_eq!((after(&ring, 10), after(&ring, 11)), (None, rest(&["12"])), "the history tells of that gap");
}

#[test]
fn another_epoch_and_a_history_that_counts_anew_are_begun_with_their_first_block() {
    for second in [2, 1] {
        let mut ring = Ring::default();
        ring.begin(Some(cursor(1, 0)));
        for item in [item(1, 7), item(1, 9), gap(Some(9), None), item(second, 3), item(second, 8)] {
            ring.push(item, MUCH);
        }
        let locate = |sequence| ring.locate(Position::behind(cursor(second, sequence)), false);
        assert_eq!((locate(1), locate(2), locate(3), locate(8)), (None, Some(3), Some(4), Some(5)));
        assert_eq!(all(&ring, 0), ["7", "9", "gap", "3", "8"], "who was there goes on");
    }
}

proptest! {
    /// Whatever was put in and went: a place that is found gives everything behind it, and nothing else.
    #[test]
    fn a_place_that_is_found_misses_and_doubles_nothing(
        steps in prop::collection::vec((1_u64..4, any::<bool>()), 1..40),
        most in 1_usize..20_000,
        place in 0_u64..140,
    ) {
        let mut ring = Ring::default();
        ring.begin(Some(cursor(1, 2)));
        let (mut last, mut blocks) = (2, Vec::new());
        for (step, lost) in steps {
            if lost {
                ring.push(gap(Some(last), Some(last + 2 + step)), most);
                last += 1;
            }
            last += step;
            if lost { last += 1; }
            ring.push(item(1, last), most);
            blocks.push(last);
        }
        if let Some(rest) = after(&ring, place) {
            let found: Vec<u64> = rest.iter().filter_map(|text| text.parse().ok()).collect();
            let expected: Vec<u64> = blocks.iter().copied().filter(|block| *block > place).collect();
            prop_assert_eq!(found, expected);
        } else {
            let kept = all(&ring, ring.first());
            let reaches = kept.first().and_then(|first| first.parse::<u64>().ok()).is_some_and(|first| place >= first && place <= last);
            prop_assert!(!reaches, "{} is in {:?}", place, kept);
        }
    }
}
