//! A reader against whatever can happen to a partition, its history and the ring.

use super::{cursor, open};
use crate::{
    From, Happening, History as _,
    nats::history::{
        archive::Archive as _,
        message::Message,
        testing::{World, chained},
    },
};
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Debug)]
enum Event {
    /// Of which table, and whether the history gets it, and whether it is heard.
    Publish {
        own: bool,
        stored: bool,
        heard: bool,
    },
    /// The partition is asked; what is missing is found in the history, or lost.
    Mend,
    /// Left to the history.
    Leave,
    /// A reader looks so often.
    Read(u8),
    Purge(u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let weighted = prop::bool::weighted;
    let event = prop_oneof![
        12 => (any::<bool>(), weighted(0.9), weighted(0.85))
            .prop_map(|(own, stored, heard)| Event::Publish { own, stored, heard }),
        2 => Just(Event::Mend),
        1 => Just(Event::Leave),
        4 => (1_u8..20).prop_map(Event::Read),
        1 => (1_u8..20).prop_map(Event::Purge),
    ];
    prop::collection::vec(event, 1..120)
}

fn mend(world: &World, stored: &[(u64, bool, bool)]) {
    world.ask();
    let now = world.core.now();
    while let Some(hole) = { world.core.ring.lock().partition(0).hole() } {
        let found = stored.iter().find(|(sequence, kept, _)| *sequence == hole.first && *kept);
        match found {
            Some((sequence, _, own)) => world.core.hear(counted(*own, *sequence, stored)),
            None => _ = world.core.ring.lock().lose(0, hole.first, now),
        }
    }
}

/// A block whose publisher counts the blocks of its table.
fn counted(own: bool, sequence: u64, stored: &[(u64, bool, bool)]) -> Message {
    let n = stored.iter().filter(|(before, _, of)| *of == own && *before < sequence).count() as u64;
    chained(if own { "a" } else { "b" }, sequence, n + 1)
}

proptest! {
    /// Whatever is not heard, not stored in the history, dropped for room, purged or read late: a reader is shown its
    /// table's blocks once, in order, and is told where one is missing before it is shown a later one.
    #[test]
    fn no_block_is_missed_silently_or_shown_twice(
        events in events(),
        room in 4_usize..40,
        before in 0_u64..20,
        from in 0_u64..20,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let world = World::new(room * 612, before);
            // sequence, kept by the history, own
            let mut stored: Vec<(u64, bool, bool)> = (1..=before).map(|s| (s, true, s % 2 == 0)).collect();
            for n in 0..stored.len() {
                world.memory.store(counted(stored[n].2, stored[n].0, &stored));
            }
            let mut reader = open(&world, "a", From::After(cursor(from.min(before))));
            let (mut shown, mut told, mut lives, mut counted_before) = (from.min(before), false, 0, false);
            let mut look = async |stored: &[(u64, bool, bool)], times: u8| {
                for _ in 0..times {
                    let Ok(next) = tokio::time::timeout(Duration::from_secs(30), reader.next()).await else { break };
                    match next.unwrap().unwrap() {
                        Happening::Gap(gap) => {
                            prop_assert!(gap.before.is_none_or(|before| before.sequence > shown));
                            told = true;
                        }
                        Happening::Live => lives += 1,
                        Happening::Block(at, _) => {
                            prop_assert!(at.sequence > shown, "{at} after {shown}");
                            let missed = stored.iter().find(|(s, _, own)| *own && *s > shown && *s < at.sequence);
                            // what a history lost before the first block of a publisher is known to nobody
                            let missed = missed.filter(|_| counted_before);
                            counted_before = true;
                            prop_assert!(told || missed.is_none(), "{missed:?} is missed between {shown} and {at}");
                            (shown, told) = (at.sequence, false);
                        }
                    }
                    prop_assert!(lives <= 1);
                }
                Ok(())
            };
            for event in events {
                let sequence = stored.len() as u64 + 1;
                match event {
                    Event::Publish { own, stored: kept, heard } => {
                        stored.push((sequence, kept, own));
                        world.publish(counted(own, sequence, &stored), kept, heard);
                    }
                    Event::Mend => mend(&world, &stored),
                    Event::Leave => {
                        world.ask();
                        world.core.ring.lock().leave_to_history(0, u64::MAX, world.core.now());
                    }
                    Event::Read(times) => look(&stored, times).await?,
                    Event::Purge(entries) => {
                        let ends = world.memory.ends().await.unwrap();
                        world.memory.purge(ends.first + u64::from(entries));
                    }
                }
                prop_assert!(world.core.ring.lock().bytes() <= room * 612);
            }
            // the last ones: of every publisher something follows what is lost
            stored.push((stored.len() as u64 + 1, true, true));
            let last = stored.len() as u64;
            world.publish(counted(true, last, &stored), true, true);
            mend(&world, &stored);
            look(&stored, 255).await?;
            prop_assert_eq!(shown, last);
            prop_assert_eq!(lives, 1);
            Ok(())
        })?;
    }
}
