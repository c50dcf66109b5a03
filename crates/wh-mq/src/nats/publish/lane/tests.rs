//! The order rule, step by step and against a model of a server.

use super::*;
use proptest::prelude::*;
use wh_types::Class;

fn stored(sequence: u64) -> Answer {
    Answer::Stored { sequence, duplicate: false }
}

/// Sends all that may be sent.
fn send(lane: &mut Lane) -> Vec<usize> {
    let mut sent = Vec::new();
    while let Some(index) = lane.ready() {
        lane.sent(index);
        sent.push(index);
    }
    sent
}

fn classes(lane: Lane) -> Vec<Option<Class>> {
    let class = |kind| crate::Error::new("publish", kind).class();
    lane.outcomes().into_iter().map(|outcome| outcome.err().map(class)).collect()
}

#[test]
fn messages_are_pipelined_in_order() {
    let mut lane = Lane::new(3);
    assert_eq!(send(&mut lane), [0, 1, 2]);
    for (index, sequence) in [(2, 12), (0, 10), (1, 11)] {
        lane.answered(index, stored(sequence));
    }
    assert!(lane.done());
    let places: Vec<u64> = lane.outcomes().into_iter().map(|place| place.unwrap().sequence).collect();
    assert_eq!(places, [10, 11, 12]);
}

#[test]
fn nothing_is_sent_behind_a_failure_until_all_is_answered_and_then_one_by_one() {
    let mut lane = Lane::new(5);
    for index in 0..3 {
        lane.sent(index);
    }
    lane.answered(0, stored(1));
    lane.answered(1, Answer::Refused);
    assert_eq!(lane.ready(), None);
    assert!(lane.stalled());
    lane.answered(2, Answer::Refused);
    assert!(lane.settle());
    assert_eq!(send(&mut lane), [1], "alone");
    lane.answered(1, stored(2));
    assert_eq!(send(&mut lane), [2, 3, 4], "and then the rest");
}

#[test]
fn a_duplicate_after_silence_may_be_our_own() {
    let mut lane = Lane::new(2);
    send(&mut lane);
    lane.answered(0, stored(1));
    lane.answered(1, Answer::Unanswered);
    lane.settle();
    send(&mut lane);
    lane.answered(1, Answer::Stored { sequence: 2, duplicate: true });
    let perhaps_own: Vec<bool> = lane.outcomes().into_iter().map(|place| place.unwrap().perhaps_own).collect();
    assert_eq!(perhaps_own, [false, true]);
}

#[test]
fn one_that_was_overtaken_is_not_sent_again() {
    let mut lane = Lane::new(4);
    send(&mut lane);
    lane.answered(0, Answer::Refused);
    lane.answered(1, Answer::Unanswered);
    lane.answered(2, stored(7));
    lane.answered(3, Answer::Refused);
    assert!(lane.settle());
    assert_eq!(send(&mut lane), [3]);
    lane.answered(3, stored(8));
    assert_eq!(classes(lane), [Some(Class::Unavailable), Some(Class::Unknown), None, None]);
}

#[test]
fn one_that_was_refused_is_not_sent_behind_one_that_may_be_stored() {
    let mut lane = Lane::new(3);
    send(&mut lane);
    lane.answered(0, Answer::Unanswered);
    lane.answered(1, Answer::Refused);
    lane.answered(2, Answer::Unanswered);
    assert!(lane.settle());
    for index in [0, 2] {
        assert_eq!(send(&mut lane), [index]);
        lane.answered(index, stored(index as u64));
    }
    assert_eq!(classes(lane), [None, Some(Class::Unavailable), None]);
}

#[test]
fn one_that_was_lost_and_then_refused_is_not_sent_behind_one_that_went_with_it_and_may_be_stored() {
    let mut lane = Lane::new(3);
    assert_eq!(send(&mut lane), [0, 1, 2]);
    for index in 0..3 {
        lane.answered(index, Answer::Unanswered);
    }
    assert!(lane.settle());
    // alone: what is behind it went before, in order
    for _ in 0..2 {
        assert_eq!(send(&mut lane), [0]);
        lane.answered(0, Answer::Refused);
        assert!(lane.settle());
    }
    assert_eq!(send(&mut lane), [0]);
    lane.answered(0, stored(5));
    assert_eq!(send(&mut lane), [1, 2]);
    lane.answered(1, Answer::Refused);
    lane.answered(2, Answer::Unanswered);
    assert!(lane.settle());
    assert_eq!(send(&mut lane), [2], "the second would stand behind it");
    lane.answered(2, stored(6));
    assert_eq!(classes(lane), [None, Some(Class::Unknown), None]);
}

#[test]
fn a_refusal_for_good_says_why_unless_an_attempt_was_not_answered() {
    let mut lane = Lane::new(2);
    send(&mut lane);
    lane.answered(0, Answer::Never(Kind::NoSpace));
    lane.answered(1, Answer::Unanswered);
    lane.settle();
    send(&mut lane);
    lane.answered(1, Answer::Never(Kind::NoSpace));
    assert!(lane.done());
    let full = crate::Error::new("publish", Kind::NoSpace).class();
    assert_eq!(classes(lane), [Some(full), Some(Class::Unknown)]);
}

#[test]
fn giving_up_is_unknown_for_what_was_sent_and_the_given_kind_for_what_was_not() {
    let mut lane = Lane::new(3);
    lane.sent(0);
    lane.not_sent(1);
    lane.give_up(&Kind::Stopping);
    assert_eq!(classes(lane), [Some(Class::Unknown), Some(Class::Stopping), Some(Class::Stopping)]);
}

#[derive(Clone, Debug)]
enum Server {
    Stores,
    StoresAndSaysNothing,
    Refuses,
    LosesIt,
}

fn server() -> impl Strategy<Value = Server> {
    prop_oneof![
        6 => Just(Server::Stores),
        1 => Just(Server::StoresAndSaysNothing),
        1 => Just(Server::Refuses),
        1 => Just(Server::LosesIt),
    ]
}

proptest! {
    /// A server that handles what it gets in order, as one connection to one leader does: whatever it refuses or
    /// loses, the stored messages are in the order given, each once, and every outcome is true.
    #[test]
    fn order_holds_and_outcomes_are_true(
        count in 1_usize..8,
        window in 1_usize..5,
        script in proptest::collection::vec(server(), 0..60),
    ) {
        let mut lane = Lane::new(count);
        let mut script = script.into_iter();
        let mut log: Vec<usize> = Vec::new();
        let mut rounds = 0;
        while !lane.done() {
            let (mut batch, mut lost) = (Vec::new(), false);
            while let Some(index) = lane.ready().filter(|_| batch.len() < window) {
                lane.sent(index);
                batch.push(index);
            }
            for index in batch {
                let known = log.iter().position(|stored| *stored == index);
                let place = |at: usize, duplicate| Answer::Stored { sequence: at as u64, duplicate };
                let mut behaviour = script.next().unwrap_or(Server::Stores);
                if lost && matches!(behaviour, Server::StoresAndSaysNothing) {
                    // see the module: what one leader lost, the next does not follow with a lost answer
                    behaviour = Server::Stores;
                }
                lost |= matches!(behaviour, Server::LosesIt);
                let answer = match (behaviour, known) {
                    (Server::Refuses, _) => Answer::Refused,
                    (Server::LosesIt, _) => Answer::Unanswered,
                    (Server::Stores, Some(at)) => place(at, true),
                    (Server::StoresAndSaysNothing, Some(_)) => Answer::Unanswered,
                    (behaviour, None) => {
                        log.push(index);
                        let said = matches!(behaviour, Server::Stores);
                        if said { place(log.len() - 1, false) } else { Answer::Unanswered }
                    }
                };
                lane.answered(index, answer);
            }
            if lane.stalled() {
                lane.settle();
            }
            rounds += 1;
            if rounds > 30 {
                lane.give_up(&Kind::Unavailable);
            }
        }
        for (index, outcome) in lane.outcomes().into_iter().enumerate() {
            let stored = log.iter().position(|stored| *stored == index);
            match outcome {
                Ok(place) => prop_assert_eq!(stored, Some(usize::try_from(place.sequence).unwrap())),
                Err(Kind::Unknown) => {}
                Err(_) => prop_assert_eq!(stored, None),
            }
        }
        prop_assert!(log.is_sorted_by(|a, b| a < b), "{:?}", log);
    }
}
