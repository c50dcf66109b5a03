//! A history whose copies lag, and that is purged or made anew under its reader.

use super::*;
use crate::nats::history::testing::{MADE, Memory, STREAM, at, chained, key, message, now};
use wh_types::Class;

fn eras() -> Eras {
    let mut eras = Eras::default();
    eras.add(STREAM, MADE);
    eras
}

fn cursor(sequence: u64) -> Cursor {
    Cursor { epoch: crate::nats::cursor::epoch(STREAM, MADE), sequence }
}

/// A history of 40 blocks, those of even sequences of table `a`.
fn forty() -> Arc<Memory> {
    let memory = Memory::new();
    for sequence in 1..=40 {
        memory.store(message(if sequence % 2 == 0 { "a" } else { "b" }, sequence));
    }
    Arc::new(memory)
}

fn replay(memory: &Arc<Memory>, origin: Origin) -> Replay<Memory> {
    let subject = Arc::from(format!("wh.hist.{}", key("a")));
    Replay::new(Arc::clone(memory), subject, eras(), origin, now())
}

/// The sequences that a replay reads, and whether something was lost at first and later.
async fn read(mut replay: Replay<Memory>) -> (Vec<u64>, Vec<bool>) {
    let (mut sequences, mut gaps) = (Vec::new(), Vec::new());
    loop {
        let step = replay.step().await.unwrap();
        gaps.push(step.gap);
        sequences.extend(step.entries.iter().map(|stored| stored.message.as_ref().unwrap().sequence));
        if step.done {
            return (sequences, gaps);
        }
    }
}

fn even(from: u64) -> Vec<u64> {
    (from..=40).filter(|sequence| sequence % 2 == 0).collect()
}

#[tokio::test(start_paused = true)]
async fn after_a_cursor_everything_follows_to_the_end_as_it_was_counted() {
    let memory = forty();
    for after in [2, 3, 17, 38] {
        let (read, gaps) = read(replay(&memory, Origin::After(cursor(after), None))).await;
        // and the one before, whose count of its publisher the reader needs
        assert_eq!(read, even(after - after % 2), "{after}");
        assert!(!gaps.contains(&true));
    }
    assert_eq!(read(replay(&memory, Origin::After(cursor(99), None))).await.0, [40]);
}

#[tokio::test(start_paused = true)]
async fn copies_that_lag_are_asked_until_they_reach_the_end() {
    let memory = forty();
    memory.lag(9);
    for origin in [Origin::After(cursor(2), None), Origin::Since(at(2)), Origin::After(cursor(0), None)] {
        assert_eq!(read(replay(&memory, origin)).await.0, even(2), "{origin:?}");
    }
    assert_eq!(read(replay(&memory, Origin::After(cursor(38), None))).await.0, [38, 40]);
}

#[tokio::test(start_paused = true)]
async fn nothing_kept_up_to_the_cursor_is_a_gap() {
    let memory = forty();
    let gap = async |origin| read(replay(&memory, origin)).await.1[0];
    assert!(!gap(Origin::After(cursor(0), None)).await, "nothing was ever removed");
    assert!(gap(Origin::After(cursor(1), None)).await, "1 was of this table, once");
    let other = Cursor { epoch: Epoch(7), sequence: 30 };
    assert!(gap(Origin::After(other, None)).await);
    assert!(gap(Origin::After(Cursor { sequence: 0, ..other }, None)).await);
    memory.purge(11);
    assert!(gap(Origin::After(cursor(0), None)).await);
    assert!(gap(Origin::After(cursor(10), None)).await);
    assert!(!gap(Origin::After(cursor(12), None)).await);
    assert!(!gap(Origin::After(cursor(10), Some(at(11)))).await, "it was stored after the oldest that is kept");
    assert!(gap(Origin::After(cursor(10), Some(at(10)))).await);
    assert_eq!(read(replay(&memory, Origin::After(cursor(4), None))).await.0, even(12));
}

#[tokio::test(start_paused = true)]
async fn from_a_time_nothing_received_since_is_left_out() {
    let memory = forty();
    // the reader leaves out what is older
    assert_eq!(read(replay(&memory, Origin::Since(at(30)))).await, (even(2), vec![false; 5]));
    let future = Timestamp::from_millis(9_000_000);
    assert_eq!(read(replay(&memory, Origin::Since(future))).await, (vec![], vec![false]));
    memory.purge(21);
    assert!(read(replay(&memory, Origin::Since(at(20)))).await.1[0]);
    assert!(!read(replay(&memory, Origin::Since(at(21)))).await.1[0]);
    memory.purge(99);
    assert_eq!(read(replay(&memory, Origin::Since(at(60)))).await, (vec![], vec![false]));
}

#[tokio::test(start_paused = true)]
async fn what_comes_meanwhile_is_for_the_next_round() {
    let memory = forty();
    let mut replay = replay(&memory, Origin::After(cursor(36), None));
    let first = replay.step().await.unwrap();
    assert!(first.done);
    memory.store(message("a", 41));
    memory.store(message("b", 42));
    let again = replay.step().await.unwrap();
    assert!(again.done && again.entries.is_empty());
    replay.again(now());
    let more = replay.step().await.unwrap();
    assert_eq!(more.entries.len(), 1);
    assert!(more.done && !more.gap);
}

#[tokio::test(start_paused = true)]
async fn a_history_purged_under_a_reader_is_a_gap_and_no_end_without_end() {
    let memory = forty();
    let mut replay = replay(&memory, Origin::After(cursor(0), None));
    assert_eq!(replay.step().await.unwrap().entries.len(), 4);
    memory.purge(21);
    let step = replay.step().await.unwrap();
    assert!(step.gap);
    assert_eq!(step.entries[0].at, 22);
    assert!(!replay.step().await.unwrap().gap);
    memory.purge(99);
    let step = replay.step().await.unwrap();
    assert!(step.gap && step.done && step.entries.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_history_made_anew_is_read_from_its_beginning() {
    let memory = forty();
    let mut replay = replay(&memory, Origin::After(cursor(0), None));
    replay.step().await.unwrap();
    memory.anew();
    for sequence in 41..44 {
        memory.store(message("a", sequence));
    }
    let step = replay.step().await.unwrap();
    assert!(step.gap && step.done);
    assert_eq!(step.entries.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_history_that_is_down_is_said_so_and_can_be_read_later() {
    let memory = forty();
    let mut replay = replay(&memory, Origin::After(cursor(0), None));
    memory.down(true);
    assert_eq!(replay.step().await.unwrap_err().class(), Class::Unavailable);
    memory.down(false);
    assert_eq!(read(replay).await.0, even(2));
}

#[tokio::test(start_paused = true)]
async fn a_block_is_looked_up_by_its_place() {
    let memory = forty();
    let subject = Arc::from(format!("wh.hist.{}", key("a")));
    let find = async |at: Cursor| {
        let found = look_up(&memory, &subject, &eras(), at, now()).await.unwrap();
        found.map(|stored| stored.message.unwrap().sequence)
    };
    for sequence in [2, 20, 40] {
        assert_eq!(find(cursor(sequence)).await, Some(sequence));
    }
    for sequence in [0, 1, 21, 41] {
        assert_eq!(find(cursor(sequence)).await, None, "{sequence}");
    }
    assert_eq!(find(Cursor { epoch: Epoch(7), sequence: 2 }).await, None);
    memory.store(chained("a", 50, 1));
    assert_eq!(find(cursor(50)).await, Some(50));
}
