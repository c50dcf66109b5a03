//! Every way into a table's history, and what a reader is told on it.

use super::*;
use crate::nats::history::testing::{MADE, Memory, STREAM, World, block, chained, key, message, with};
use std::time::Duration;

mod random;

const ROOM: usize = 1 << 20;

fn cursor(sequence: u64) -> Cursor {
    Cursor { epoch: crate::nats::cursor::epoch(STREAM, MADE), sequence }
}

type Read = Reader<Arc<Memory>>;

fn open(world: &World, table: &str, from: From) -> Read {
    world.ask();
    Reader::new(&world.core, &key(table), 0, world.seam(), from)
}

/// What a reader shows until it waits.
async fn shows(reader: &mut Read) -> Vec<String> {
    let mut seen = Vec::new();
    while let Ok(next) = tokio::time::timeout(Duration::from_secs(60), reader.next()).await {
        seen.push(match next.unwrap() {
            None => "end".to_owned(),
            Some(Happening::Live) => "live".to_owned(),
            Some(Happening::Block(cursor, _)) => cursor.sequence.to_string(),
            Some(Happening::Gap(Gap { after, before })) => {
                let show = |cursor: Option<Cursor>| cursor.map_or("?".to_owned(), |cursor| cursor.sequence.to_string());
                format!("{}..{}", show(after), show(before))
            }
        });
        if seen.last().is_some_and(|last| last == "end") {
            break;
        }
    }
    seen
}

fn published(world: &World, sequences: std::ops::RangeInclusive<u64>) {
    for sequence in sequences {
        world.publish(message(if sequence % 2 == 0 { "a" } else { "b" }, sequence), true, true);
    }
}

#[tokio::test(start_paused = true)]
async fn from_now_what_is_stored_afterwards_is_shown() {
    let world = World::new(ROOM, 0);
    published(&world, 1..=4);
    let mut reader = open(&world, "a", From::Now);
    published(&world, 5..=8);
    assert_eq!(shows(&mut reader).await, ["live", "6", "8"]);
    published(&world, 9..=10);
    assert_eq!(shows(&mut reader).await, ["10"]);
    assert_eq!(world.memory.answers(), 0, "the history was not asked");
}

#[tokio::test(start_paused = true)]
async fn what_was_stored_before_but_is_heard_later_is_not_shown_from_now() {
    let world = World::new(ROOM, 0);
    world.publish(message("a", 1), true, false);
    let mut reader = open(&world, "a", From::Now);
    world.core.hear(message("a", 1));
    world.publish(message("a", 2), true, true);
    assert_eq!(shows(&mut reader).await, ["live", "2"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_cursor_the_ring_is_enough_where_it_has_everything() {
    let world = World::new(ROOM, 0);
    published(&world, 1..=8);
    let mut reader = open(&world, "a", From::After(cursor(3)));
    published(&world, 9..=10);
    assert_eq!(shows(&mut reader).await, ["4", "6", "8", "live", "10"]);
    let mut all = open(&world, "a", From::After(cursor(0)));
    assert_eq!(shows(&mut all).await, ["2", "4", "6", "8", "10", "live"]);
    assert_eq!(world.memory.answers(), 0, "the history was not asked");
}

#[tokio::test(start_paused = true)]
async fn from_the_history_to_the_ring_there_is_no_seam() {
    // heard from 31 on; of that the last ten or so are kept
    let world = World::new(10 * 612, 30);
    for sequence in 1..=30 {
        world.memory.store(message(if sequence % 2 == 0 { "a" } else { "b" }, sequence));
    }
    published(&world, 31..=60);
    for after in [0, 2, 16, 29, 30, 40, 58] {
        let mut reader = open(&world, "a", From::After(cursor(after)));
        let expected: Vec<String> = (after + 1..=60).filter(|s| s % 2 == 0).map(|s| s.to_string()).collect();
        let shown = shows(&mut reader).await;
        assert_eq!(shown[..shown.len() - 1], expected, "{after}");
        assert_eq!(shown.last().unwrap(), "live");
    }
}

#[tokio::test(start_paused = true)]
async fn blocks_that_are_stored_while_the_history_is_read_come_once() {
    let world = World::new(ROOM, 30);
    for sequence in 1..=30 {
        world.memory.store(message("a", sequence));
    }
    let mut reader = open(&world, "a", From::After(cursor(10)));
    assert!(matches!(reader.next().await.unwrap(), Some(Happening::Block(at, _)) if at == cursor(11)));
    for sequence in 31..=40 {
        world.publish(message("a", sequence), true, true);
    }
    let expected: Vec<String> = (12..=30).map(|s| s.to_string()).chain(["live".to_owned()]).collect();
    let shown = shows(&mut reader).await;
    assert_eq!(shown[..expected.len()], expected);
    assert_eq!(shown[expected.len()..], (31..=40).map(|s| s.to_string()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn from_a_time_it_begins_with_the_first_received_since_and_goes_on_with_all() {
    let world = World::new(ROOM, 0);
    let of = |sequence, received| {
        let received = Timestamp::from_millis(received);
        with(Block { received, ..block("a", sequence, 1) }, sequence)
    };
    for (sequence, received) in [(1, 100), (2, 300), (3, 250), (4, 200)] {
        world.publish(of(sequence, received), true, true);
    }
    let time = Timestamp::from_millis;
    let mut reader = open(&world, "a", From::Time(time(250)));
    assert_eq!(shows(&mut reader).await, ["2", "3", "4", "live"]);
    let mut future = open(&world, "a", From::Time(time(9_000_000)));
    assert_eq!(shows(&mut future).await, ["live"]);
    world.publish(of(5, 50), true, true);
    assert_eq!(shows(&mut future).await, ["5"]);
    let mut all = open(&world, "a", From::Time(Timestamp::default()));
    assert_eq!(shows(&mut all).await, ["1", "2", "3", "4", "5", "live"]);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_older_than_what_is_kept_gives_one_gap_first() {
    let world = World::new(ROOM, 20);
    for sequence in 1..=20 {
        world.memory.store(message("a", sequence));
    }
    world.memory.purge(11);
    let mut reader = open(&world, "a", From::After(cursor(5)));
    let shown = shows(&mut reader).await;
    assert_eq!((&*shown[0], &*shown[1], shown.len()), ("5..11", "11", 12));
    let mut beyond = open(&world, "a", From::After(cursor(99)));
    assert_eq!(shows(&mut beyond).await[..2], ["99..11", "11"]);
    let other = Cursor { epoch: Epoch(7), sequence: 15 };
    assert_eq!(shows(&mut open(&world, "a", From::After(other))).await[..2], ["15..11", "11"]);
    world.memory.purge(21);
    assert_eq!(shows(&mut open(&world, "a", From::After(cursor(5)))).await, ["5..?", "live"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_reads_what_the_ring_dropped_from_the_history() {
    let world = World::new(10 * 612, 0);
    world.publish(message("a", 1), true, true);
    let mut reader = open(&world, "a", From::Now);
    assert_eq!(shows(&mut reader).await, ["live"]);
    published(&world, 2..=100);
    let expected: Vec<String> = (2..=100).filter(|s| s % 2 == 0).map(|s| s.to_string()).collect();
    assert_eq!(shows(&mut reader).await, expected);
}

#[tokio::test(start_paused = true)]
async fn who_came_before_the_first_block_of_a_table_misses_nothing_when_slow() {
    let world = World::new(10 * 612, 0);
    published(&world, 1..=40);
    world.memory.purge(21);
    let mut reader = open(&world, "new", From::Now);
    for sequence in 41..=100 {
        world.publish(message("new", sequence), true, true);
    }
    let expected: Vec<String> = (41..=100).map(|s| s.to_string()).collect();
    let shown = shows(&mut reader).await;
    assert_eq!(shown[0], "live");
    assert_eq!(shown[1..], expected);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_told_what_is_gone_meanwhile() {
    let world = World::new(10 * 612, 0);
    published(&world, 1..=2);
    let mut reader = open(&world, "a", From::After(cursor(0)));
    assert_eq!(shows(&mut reader).await, ["2", "live"]);
    published(&world, 3..=100);
    world.memory.purge(51);
    let shown = shows(&mut reader).await;
    assert_eq!(shown[..2], ["2..52", "52"]);
    assert_eq!(shown.len(), 26);
}

#[tokio::test(start_paused = true)]
async fn a_jump_in_a_publishers_count_is_a_gap_on_replay_and_none_live() {
    let world = World::new(ROOM, 6);
    for (sequence, n) in [(1, 1), (2, 2), (4, 4), (5, 5)] {
        world.memory.store(chained("a", sequence, n));
    }
    world.memory.store(message("a", 6));
    let mut reader = open(&world, "a", From::After(cursor(0)));
    assert_eq!(shows(&mut reader).await, ["1", "2", "2..4", "4", "5", "6", "live"]);
    assert_eq!(shows(&mut open(&world, "a", From::After(cursor(2)))).await, ["2..4", "4", "5", "6", "live"]);
    assert_eq!(shows(&mut open(&world, "a", From::After(cursor(4)))).await, ["5", "6", "live"]);
    world.publish(chained("a", 7, 6), true, true);
    world.publish(chained("a", 8, 9), true, true);
    assert_eq!(shows(&mut reader).await, ["7", "8"], "everything was heard: the others were never stored");
}

#[tokio::test(start_paused = true)]
async fn probes_and_blocks_that_cannot_be_read_move_the_reader() {
    let world = World::new(ROOM, 3);
    world.memory.store(message("a", 1));
    world.memory.store(with(block("a", 2, 0), 2));
    let unreadable = |sequence| super::super::message::Message { block: None, ..message("a", sequence) };
    world.memory.store(unreadable(3));
    world.publish(with(block("a", 4, 0), 4), true, true);
    world.publish(unreadable(5), true, true);
    world.publish(message("a", 6), true, true);
    let mut reader = open(&world, "a", From::After(cursor(0)));
    assert_eq!(shows(&mut reader).await, ["1", "1..6", "6", "live"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_made_anew_is_a_gap_and_a_new_epoch() {
    let world = World::new(ROOM, 0);
    published(&world, 1..=4);
    let mut reader = open(&world, "a", From::After(cursor(0)));
    assert_eq!(shows(&mut reader).await, ["2", "4", "live"]);
    let made = Timestamp::from_millis(5_000);
    world.anew(made);
    world.ask();
    let anew = super::super::message::Message { stored: made, ..message("a", 1) };
    world.publish(anew, true, true);
    let gap = reader.next().await.unwrap();
    let first = Cursor { epoch: crate::nats::cursor::epoch(STREAM, made), sequence: 1 };
    assert_eq!(gap, Some(Happening::Gap(Gap { after: Some(cursor(4)), before: Some(first) })));
    assert!(matches!(reader.next().await.unwrap(), Some(Happening::Block(at, _)) if at == first));
    // whoever has a cursor of before is shown what follows it, by what the stored headers say
    let mut old = open(&world, "a", From::After(cursor(2)));
    assert!(matches!(old.next().await.unwrap(), Some(Happening::Block(at, _)) if at == cursor(4)));
    assert!(matches!(old.next().await.unwrap(), Some(Happening::Block(at, _)) if at == first));
    assert_eq!(old.next().await.unwrap(), Some(Happening::Live));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_next_loses_nothing_and_goes_on() {
    let world = World::new(ROOM, 30);
    for sequence in 1..=30 {
        world.memory.store(message("a", sequence));
    }
    let mut reader = open(&world, "a", From::After(cursor(0)));
    let mut seen = Vec::new();
    while seen.len() < 31 {
        if let Ok(next) = tokio::time::timeout(Duration::from_millis(1), reader.next()).await {
            seen.push(next.unwrap().unwrap());
        }
    }
    assert_eq!(seen.pop(), Some(Happening::Live));
    assert!(seen.iter().zip(1..).all(|(seen, s)| matches!(seen, Happening::Block(at, _) if *at == cursor(s))));
}

#[tokio::test(start_paused = true)]
async fn a_history_that_is_down_ends_the_replay_with_an_error_once() {
    let world = World::new(ROOM, 30);
    world.memory.store(message("a", 30));
    world.memory.down(true);
    let mut reader = open(&world, "a", From::After(cursor(0)));
    assert_eq!(reader.next().await.unwrap_err().class(), Class::Unavailable);
    assert_eq!(reader.next().await.unwrap(), None);
    let mut live = open(&world, "a", From::Now);
    world.publish(message("a", 31), false, true);
    assert_eq!(shows(&mut live).await, ["live", "31"], "who is live needs no history");
}

#[tokio::test(start_paused = true)]
async fn readers_end_when_the_queue_closes_and_leave_nothing_behind() {
    let world = World::new(ROOM, 30);
    let mut live = open(&world, "a", From::Now);
    let mut replaying = open(&world, "a", From::After(cursor(0)));
    assert_eq!(live.next().await.unwrap(), Some(Happening::Live));
    let stop = world.core.stop.clone();
    let (next, ()) = tokio::join!(live.next(), async { stop.give() });
    assert_eq!(next.unwrap(), None);
    assert_eq!(replaying.next().await.unwrap(), None);
    let place = live.place.key.clone();
    drop((live, replaying));
    assert!(world.core.ring.lock().floor(&place).is_none());
}
