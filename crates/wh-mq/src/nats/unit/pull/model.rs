//! The machine and the desk against a model of the server, under faults: nothing is lost, the pin is kept, and what is
//! asked for stays within the room.

mod world;

use crate::Verdict;
use proptest::prelude::*;
use std::time::Duration;
use world::{ACK_WAIT, World};

/// What goes wrong, or just happens.
#[derive(Clone, Debug)]
enum Step {
    Publish(u8),
    /// The handler takes what there is and settles so many of what it holds.
    Settle(u8),
    Wait(u16),
    /// The server delivers, and so many of these messages are lost.
    Swallow(u8),
    Leader,
    /// The leader dies: whoever waits is told nothing, its last words are lost.
    Kill,
    Cut,
    /// The server forgets its last deliveries, as after a restart.
    Forget(u8),
    LoseAnswers,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u8..30).prop_map(Step::Publish),
        6 => (0_u8..30).prop_map(Step::Settle),
        4 => (1_u16..8_000).prop_map(Step::Wait),
        1 => (1_u8..20).prop_map(Step::Swallow),
        1 => Just(Step::Leader),
        1 => Just(Step::Kill),
        1 => Just(Step::Cut),
        1 => (1_u8..10).prop_map(Step::Forget),
        1 => Just(Step::LoseAnswers),
    ]
}

proptest! {
    // one case is a whole history: an eighth of what others have, and PROPTEST_CASES counts
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 8, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_whatever_the_server_does(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        // what is lost before a first block has come cannot be told from another's term, and waits for ack_wait
        world.run(Step::Publish(1));
        for step in steps {
            world.run(step);
        }
        // no faults any more: everything comes and is settled, long before ack_wait would bring it
        world.swallow = 0;
        world.silent = false;
        let all = |world: &World| (1..=world.last).all(|sequence| world.handed.contains_key(&sequence));
        for second in 0..150 {
            world.handler(usize::MAX);
            world.settle_down();
            world.wait(Duration::from_secs(1));
            prop_assert!(second < 50 || all(&world), "some of {} did not come", world.last);
        }
        // only a lost ack waits for ack_wait: its block comes again, and is acked again without being handed on
        prop_assert!(world.stream.is_empty(), "{:?} are left of {}", world.stream, world.last);
    }

    #[test]
    fn without_faults_every_block_is_handed_on_once_in_order_and_nothing_is_reset(
        steps in prop::collection::vec(prop_oneof![
            (1_u8..30).prop_map(Step::Publish),
            (0_u8..30).prop_map(Step::Settle),
            (1_u16..3_000).prop_map(Step::Wait),
            Just(Step::Leader),
        ], 1..60),
    ) {
        let mut world = World::new();
        let mut order = Vec::new();
        for step in steps {
            let before = world.holding.len();
            // keeping alive is the handler's: here it is never late
            let tokens = world.holding.clone();
            for token in tokens {
                world.desk.settle(world.now, token, Verdict::InProgress);
                if let Some(at) = world.pending.get_mut(&token.sequence) {
                    *at = world.now + ACK_WAIT;
                }
            }
            if matches!(step, Step::Settle(_)) {
                world.handler(0);
                order.extend(world.holding[before..].iter().map(|token| token.sequence));
            }
            world.run(step);
        }
        prop_assert_eq!(world.resets, 0);
        prop_assert!(world.handed.values().all(|times| *times == 1));
        prop_assert!(order.is_sorted());
    }
}
