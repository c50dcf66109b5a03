//! What is missed is found, waited for, given up or left to the readers.

use super::*;
use crate::nats::history::testing::{Memory, World, key, message, now};
use crate::nats::history::{message::Message, ring::Look};

const ROOM: usize = 1 << 20;

/// A mender that runs, until the guard is dropped.
async fn running(world: &World) {
    let mut mender = Mender::<Arc<Memory>, World>::new(&world.core, Arc::clone(&world.memory), world.clone());
    mender.ask().await.unwrap();
    let tasks = wh_types::Tasks::new();
    drop(tasks.spawn("mender", mender.run()));
}

async fn position(world: &World, wanted: u64) -> Duration {
    let begun = now();
    while world.core.ring.lock().partition(0).position() != wanted {
        assert!(now() - begun < Duration::from_secs(60), "it stands at {}", position_now(world));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    now() - begun
}

fn position_now(world: &World) -> u64 {
    world.core.ring.lock().partition(0).position()
}

/// How a reader of table `a`, who was there from the start, is shown everything.
fn sees(world: &World) -> Vec<String> {
    let mut ring = world.core.ring.lock();
    let (mut place, _) = ring.enter(&key("a"), 0);
    let mut seen = Vec::new();
    loop {
        seen.push(match ring.read(&mut place) {
            Look::Block(sequence, _) => sequence.to_string(),
            Look::Gap => "gap".to_owned(),
            Look::Renewed => "renewed".to_owned(),
            Look::Wait => return seen,
            Look::Behind => {
                seen.push("behind".to_owned());
                return seen;
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_hole_is_filled_from_the_history_at_once() {
    let world = World::new(ROOM, 0);
    running(&world).await;
    for sequence in 1..=10 {
        world.publish(message("a", sequence), true, ![4, 5, 8].contains(&sequence));
    }
    assert!(position(&world, 10).await < Duration::from_millis(200));
    assert_eq!(sees(&world).len(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_tail_is_found_by_asking_the_partition() {
    let world = World::new(ROOM, 0);
    running(&world).await;
    for sequence in 1..=10 {
        world.publish(message("a", sequence), true, sequence < 6);
    }
    let took = position(&world, 10).await;
    assert!(took < EVERY + Duration::from_secs(1), "{took:?}");
    world.publish(message("a", 11), true, false);
    world.core.suspect();
    let took = position(&world, 11).await;
    assert!(took < Duration::from_secs(1), "asked at once: {took:?}");
    assert_eq!(sees(&world).len(), 11);
}

#[tokio::test(start_paused = true)]
async fn what_the_history_passed_over_is_lost_at_once() {
    let world = World::new(ROOM, 0);
    running(&world).await;
    sees(&world);
    for sequence in 1..=10 {
        world.publish(message("a", sequence), sequence != 5, ![4, 5].contains(&sequence));
    }
    assert!(position(&world, 10).await < Duration::from_secs(1));
    assert_eq!(sees(&world), ["1", "2", "3", "4", "gap", "6", "7", "8", "9", "10"]);
}

#[tokio::test(start_paused = true)]
async fn what_may_still_come_into_the_history_is_waited_for() {
    let world = World::new(ROOM, 0);
    running(&world).await;
    sees(&world);
    world.publish(message("a", 1), false, false);
    world.publish(message("a", 2), false, true);
    tokio::time::sleep(PATIENCE / 2).await;
    assert_eq!(position_now(&world), 0);
    world.memory.store(message("a", 1));
    assert!(position(&world, 2).await < Duration::from_secs(1));
    // an election lost it and what follows
    world.publish(message("a", 3), false, false);
    world.publish(message("a", 4), false, true);
    let took = position(&world, 4).await;
    assert!(took >= PATIENCE && took < 2 * PATIENCE, "{took:?}");
    assert_eq!(sees(&world), ["1", "2", "gap", "4"]);
}

#[tokio::test(start_paused = true)]
async fn copies_that_lag_are_asked_again() {
    let world = World::new(ROOM, 0);
    world.memory.lag(6);
    running(&world).await;
    for sequence in 1..=10 {
        world.publish(message("a", sequence), true, sequence < 2);
    }
    position(&world, 10).await;
    assert_eq!(sees(&world).len(), 10);
}

#[tokio::test(start_paused = true)]
async fn too_much_is_left_to_the_readers() {
    let world = World::new(100 * 612, 0);
    running(&world).await;
    sees(&world);
    for sequence in 1..=1_000 {
        world.publish(message("a", sequence), true, sequence == 1_000);
    }
    position(&world, 1_000).await;
    assert_eq!(sees(&world).last().unwrap(), "behind");
    assert!(world.core.ring.lock().bytes() <= 100 * 612);
}

#[tokio::test(start_paused = true)]
async fn while_the_history_is_down_what_was_missed_is_waited_for() {
    let world = World::new(ROOM, 0);
    running(&world).await;
    world.memory.down(true);
    world.publish(message("a", 1), true, false);
    world.publish(message("a", 2), true, true);
    tokio::time::sleep(4 * PATIENCE).await;
    assert_eq!(position_now(&world), 0, "it is not lost");
    world.memory.down(false);
    position(&world, 2).await;
    assert_eq!(sees(&world), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_history_that_stays_silent_ends_in_a_gap() {
    let world = World::new(ROOM, 0);
    running(&world).await;
    sees(&world);
    world.memory.down(true);
    world.publish(message("a", 1), true, false);
    world.publish(message("a", 2), true, true);
    let took = position(&world, 2).await;
    assert!(took >= SILENCE && took < SILENCE + PATIENCE, "{took:?}");
    assert_eq!(sees(&world), ["gap", "2"]);
}

#[tokio::test(start_paused = true)]
async fn several_holes_are_waited_for_together() {
    let world = World::new(ROOM, 0);
    running(&world).await;
    sees(&world);
    for sequence in 1..=20 {
        world.publish(message("a", sequence), false, sequence % 2 == 0);
    }
    let took = position(&world, 20).await;
    assert!(took < 2 * PATIENCE, "{took:?}");
    assert_eq!(sees(&world).len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_stream_made_anew_is_followed_from_its_first_block() {
    let world = World::new(ROOM, 0);
    running(&world).await;
    for sequence in 1..=5 {
        world.publish(message("a", sequence), true, true);
    }
    let made = Timestamp::from_millis(9_000);
    world.anew(made);
    let anew = |sequence| Message { stored: made, ..message("a", sequence) };
    for sequence in 1..=3 {
        world.publish(anew(sequence), true, true);
    }
    let took = position(&world, 3).await;
    assert!(took < Duration::from_secs(1), "noticed by what was heard: {took:?}");
    assert_eq!(sees(&world), ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_history_made_anew_has_what_it_has() {
    let world = World::new(ROOM, 0);
    running(&world).await;
    sees(&world);
    for sequence in 1..=5 {
        world.publish(message("a", sequence), true, true);
    }
    tokio::time::sleep(2 * EVERY).await;
    world.memory.anew();
    world.publish(message("a", 6), true, false);
    world.publish(message("a", 7), true, true);
    position(&world, 7).await;
    assert_eq!(sees(&world), ["1", "2", "3", "4", "5", "6", "7"]);
}
