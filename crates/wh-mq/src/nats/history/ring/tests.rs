//! Order, holes, room, and partitions that count anew.

use super::*;
use crate::nats::history::testing::{MADE, STREAM, block, key, message, now, with};
use proptest::prelude::*;
use wh_types::Epoch;

fn ring(most: usize) -> Ring {
    let mut ring = Ring::new([STREAM.to_owned()], most, now());
    assert!(!saw(&mut ring, MADE, 0));
    ring
}

fn saw(ring: &mut Ring, created: Timestamp, last: u64) -> bool {
    let position = ring.partition(0).position();
    ring.saw(0, Seen { created, last, position }, now())
}

fn hear(ring: &mut Ring, table: &str, sequence: u64) {
    ring.hear(0, message(table, sequence), true, now());
}

/// What a place sees until it must wait or ask elsewhere.
fn sees(ring: &Ring, place: &mut Place) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        seen.push(match ring.read(place) {
            Look::Block(sequence, _) => sequence.to_string(),
            Look::Gap => "gap".to_owned(),
            Look::Renewed => "renewed".to_owned(),
            Look::Behind => "behind".to_owned(),
            Look::Wait => return seen,
        });
        if seen.last().is_some_and(|last| last == "behind") {
            return seen;
        }
    }
}

#[tokio::test]
async fn each_reader_sees_its_table_in_order() {
    let mut ring = ring(1 << 20);
    let (mut a, bells) = ring.enter(&key("a"), 0);
    let (mut b, _) = ring.enter(&key("b"), 0);
    let rings = bells.table.notified();
    tokio::pin!(rings);
    rings.as_mut().enable();
    for (table, sequence) in [("a", 1), ("b", 2), ("b", 4), ("a", 3), ("a", 5)] {
        hear(&mut ring, table, sequence);
    }
    rings.await;
    assert_eq!(sees(&ring, &mut a), ["1", "3", "5"]);
    assert_eq!(sees(&ring, &mut b), ["2", "4"]);
    assert_eq!((a.after, b.after), (5, 5), "what is of other tables is behind it too");
    assert_eq!(a.stored, b.stored);
}

#[tokio::test]
async fn a_probe_is_looked_up_and_never_seen() {
    let mut ring = ring(1 << 20);
    let (mut place, _) = ring.enter(&key("a"), 0);
    ring.hear(0, with(block("a", 1, 0), 1), true, now());
    hear(&mut ring, "a", 2);
    assert_eq!(sees(&ring, &mut place), ["2"]);
    let epoch = ring.partition(0).epoch();
    let find = |sequence, epoch| ring.find(&key("a"), Cursor { epoch, sequence }).map(|found| found.rows);
    assert_eq!((find(1, epoch), find(2, epoch), find(3, epoch)), (Some(0), Some(100), None));
    assert_eq!(find(1, Epoch(!epoch.0)), None);
}

#[tokio::test]
async fn what_was_dropped_for_room_leaves_readers_behind() {
    let mut ring = ring(10 * 612);
    let (mut slow, _) = ring.enter(&key("a"), 0);
    let (mut idle, _) = ring.enter(&key("b"), 0);
    hear(&mut ring, "a", 1);
    assert_eq!(sees(&ring, &mut idle), [""; 0]);
    for sequence in 2..100 {
        hear(&mut ring, "a", sequence);
        assert!(ring.bytes() <= 10 * 612);
    }
    assert_eq!(sees(&ring, &mut slow), ["behind"]);
    assert_eq!(sees(&ring, &mut idle), [""; 0], "nothing of its table was dropped");
    let floor = ring.floor(&slow.key).unwrap();
    assert_eq!(floor.lost_through, 89);
    slow.after = 89;
    assert_eq!(sees(&ring, &mut slow).len(), 10);
    let (new, _) = ring.enter(&key("c"), 0);
    assert_eq!(ring.floor(&new.key).unwrap().lost_through, 89, "what was dropped may have been of it");
    assert!(ring.order.len() <= 10);
}

#[tokio::test]
async fn tables_that_nobody_needs_are_forgotten() {
    let mut ring = ring(5 * 612);
    for sequence in 1..1_000 {
        hear(&mut ring, &format!("t{sequence}"), sequence);
    }
    assert_eq!((ring.tables.len(), ring.order.len()), (5, 5));
    let (place, _) = ring.enter(&key("x"), 0);
    assert_eq!(ring.tables.len(), 6);
    ring.leave(&place.key);
    assert_eq!(ring.tables.len(), 5);
}

#[tokio::test]
async fn nobody_passes_a_hole_until_it_is_filled_or_given_up() {
    let mut ring = ring(1 << 20);
    let (mut a, _) = ring.enter(&key("a"), 0);
    let (mut b, _) = ring.enter(&key("b"), 0);
    hear(&mut ring, "a", 1);
    hear(&mut ring, "a", 3);
    hear(&mut ring, "a", 6);
    assert_eq!(sees(&ring, &mut a), ["1"]);
    hear(&mut ring, "b", 2);
    assert_eq!((sees(&ring, &mut a), sees(&ring, &mut b)), (vec!["3".to_owned()], vec!["2".to_owned()]));
    assert_eq!(ring.lose(0, 5, now()).map(|hole| (hole.first, hole.last)), Some((4, 5)));
    assert_eq!(sees(&ring, &mut a), ["gap", "6"]);
    assert_eq!(sees(&ring, &mut b), ["gap"], "it may have been of any table");
    let (new, _) = ring.enter(&key("c"), 0);
    assert_eq!(ring.floor(&new.key).unwrap().lost_through, 5);
    hear(&mut ring, "b", 9);
    ring.leave_to_history(0, 100, now());
    assert_eq!((sees(&ring, &mut a), sees(&ring, &mut b)), (vec!["behind".to_owned()], vec!["behind".to_owned()]));
    b.after = 8;
    assert_eq!(sees(&ring, &mut b), ["9"]);
}

#[tokio::test]
async fn what_waits_behind_a_hole_has_a_bound() {
    let mut ring = ring(20 * 612);
    let (mut place, _) = ring.enter(&key("a"), 0);
    for sequence in 2..40 {
        hear(&mut ring, "a", sequence);
        assert!(ring.bytes() <= 20 * 612);
    }
    assert_eq!(sees(&ring, &mut place), ["behind"], "the hole was left to the history");
    assert_eq!(ring.partition(0).position(), 39);
}

#[tokio::test]
async fn a_stream_made_anew_begins_anew() {
    let mut ring = ring(1 << 20);
    let (mut place, _) = ring.enter(&key("a"), 0);
    for sequence in 1..5 {
        hear(&mut ring, "a", sequence);
    }
    hear(&mut ring, "a", 6);
    assert_eq!(sees(&ring, &mut place).len(), 4);
    let before = ring.partition(0).epoch();
    // heard before it is known
    let later = Timestamp::from_millis(5_000);
    let anew = |sequence| Message { stored: later, ..message("a", sequence) };
    ring.hear(0, anew(1), true, now());
    assert!(ring.take_odd() && !ring.take_odd());
    assert!(saw(&mut ring, Timestamp::from_millis(4_000), 2));
    assert_ne!(ring.partition(0).epoch(), before);
    assert_eq!(ring.bytes(), 0);
    ring.hear(0, anew(2), true, now());
    assert_eq!(sees(&ring, &mut place), ["renewed"], "1 is missing");
    ring.hear(0, anew(1), true, now());
    assert_eq!(sees(&ring, &mut place), ["1", "2"]);
    assert!(!saw(&mut ring, MADE, 4), "an answer that was long on its way");
}

#[tokio::test]
async fn a_message_heard_twice_is_nothing_odd() {
    let mut ring = ring(1 << 20);
    hear(&mut ring, "a", 1);
    hear(&mut ring, "a", 2);
    hear(&mut ring, "a", 1);
    hear(&mut ring, "a", 2);
    assert!(!ring.take_odd());
}

#[tokio::test]
async fn a_stream_that_lost_its_end_counts_anew_from_there() {
    let mut ring = ring(1 << 20);
    let (mut place, _) = ring.enter(&key("a"), 0);
    for sequence in 1..10 {
        hear(&mut ring, "a", sequence);
    }
    assert_eq!(sees(&ring, &mut place).len(), 9);
    assert!(!saw(&mut ring, MADE, 5));
    assert!(!saw(&mut ring, MADE, 9), "a new leader that had not applied everything");
    assert!(!saw(&mut ring, MADE, 5) && !saw(&mut ring, MADE, 5) && saw(&mut ring, MADE, 5));
    hear(&mut ring, "a", 6);
    assert_eq!(sees(&ring, &mut place), ["renewed", "6"]);
}

#[derive(Clone, Debug)]
enum Event {
    Publish { table: u8, heard: bool },
    Late(u8),
    SawEnd,
    Lose,
    Leave,
    Read,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        10 => (0_u8..3, prop::bool::weighted(0.8)).prop_map(|(table, heard)| Event::Publish { table, heard }),
        3 => any::<u8>().prop_map(Event::Late),
        1 => Just(Event::SawEnd),
        1 => Just(Event::Lose),
        1 => Just(Event::Leave),
        4 => Just(Event::Read),
    ];
    prop::collection::vec(event, 1..150)
}

proptest! {
    /// Whatever comes, a reader of a table is shown its blocks once and in order, and where one is not shown it is told.
    #[test]
    fn nothing_is_missed_silently_or_seen_twice(events in events(), blocks in 2_usize..30) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _guard = runtime.enter();
        let mut ring = ring(blocks * 2 * 612);
        let (mut place, _) = ring.enter(&key("t0"), 0);
        let (mut stored, mut unheard) = (Vec::new(), Vec::new());
        let mut shown = 0;
        let mut read = |ring: &Ring, stored: &Vec<u8>, unheard: &Vec<u64>| {
            let mut told = false;
            loop {
                match ring.read(&mut place) {
                    Look::Block(sequence, _) => {
                        prop_assert!(sequence > shown);
                        let missed = (shown + 1..sequence).any(|s| stored[usize::try_from(s).unwrap() - 1] == 0);
                        prop_assert!(told || !missed, "{sequence} after {shown}");
                        (shown, told) = (sequence, false);
                    }
                    Look::Gap => told = true,
                    // asking the history: everything up to the floor
                    Look::Behind => {
                        told = true;
                        place.after = ring.floor(&place.key).unwrap().lost_through;
                        shown = place.after;
                    }
                    Look::Renewed => prop_assert!(false),
                    Look::Wait => {
                        let missed = (shown + 1..=place.after).any(|s| stored[usize::try_from(s).unwrap() - 1] == 0);
                        prop_assert!(told || !missed, "waits at {} after {shown}", place.after);
                        prop_assert!(unheard.iter().all(|s| *s > place.after || told || *s <= shown || stored[usize::try_from(*s).unwrap() - 1] != 0));
                        shown = place.after;
                        return Ok(());
                    }
                }
            }
        };
        for event in events {
            let last = stored.len() as u64;
            match event {
                Event::Publish { table, heard } => {
                    stored.push(table);
                    if heard {
                        hear(&mut ring, &format!("t{table}"), last + 1);
                    } else {
                        unheard.push(last + 1);
                    }
                }
                Event::Late(n) if !unheard.is_empty() => {
                    let sequence = unheard.swap_remove(usize::from(n) % unheard.len());
                    let table = stored[usize::try_from(sequence).unwrap() - 1];
                    hear(&mut ring, &format!("t{table}"), sequence);
                }
                Event::Late(_) => {}
                Event::SawEnd => prop_assert!(!saw(&mut ring, MADE, last)),
                Event::Lose => _ = ring.lose(0, last, now()),
                Event::Leave => _ = ring.leave_to_history(0, last, now()),
                Event::Read => read(&ring, &stored, &unheard)?,
            }
            prop_assert!(ring.bytes() <= blocks * 2 * 612);
        }
        read(&ring, &stored, &unheard)?;
    }
}
