//! The desk by itself: a term's blocks from their arrival to their end.

use super::{settle::Outcome, *};
use crate::{AckToken, Verdict};
use bytes::Bytes;
use wh_types::{BlockId, Clock as _, Encoding, SystemClock, Table, Tenant, Timestamp};

const ACK_WAIT: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
const NAK: Verdict = Verdict::Nak { delay: Duration::ZERO };

fn block(rows: u32, bytes: usize) -> Block {
    Block {
        id: BlockId([0; 16]),
        tenant: Tenant::default(),
        table: Table::new("t").unwrap(),
        received: Timestamp::from_millis(1),
        rows,
        decoded_bytes: rows,
        encoding: Encoding::Zstd,
        body: Bytes::from(vec![0; bytes]),
        chain: None,
        trace: None,
    }
}

/// Replies are texts here: what was told last of a block.
fn desk(rows: usize, bytes: usize) -> (Desk<String>, Mono) {
    (Desk::new(Budget { rows, bytes }, ACK_WAIT, HashMap::new(), 0), SystemClock.now())
}

fn arrive(desk: &mut Desk<String>, now: Mono, sequence: u64, rows: u32) -> Arrival {
    desk.arrive(now, sequence, format!("reply {sequence}"), Some(block(rows, rows as usize * 10)))
}

fn send(sequence: u64, reply: &str) -> Outcome<String> {
    Outcome::Send(sequence, reply.to_owned())
}

#[test]
fn blocks_are_handed_on_in_order_within_the_budget() {
    let (mut desk, now) = desk(25, 1_000);
    for sequence in 1..=4 {
        assert_eq!(arrive(&mut desk, now, sequence, 10), Arrival::Queued);
    }
    let first = desk.hand(now).unwrap();
    assert_eq!((first.token.sequence, first.attempt, first.keep_alive), (1, 1, None));
    assert_eq!(desk.hand(now).unwrap().token.sequence, 2);
    assert!(desk.hand(now).is_none(), "30 rows are too many");
    assert_eq!((desk.held(), desk.bytes()), (Sum { blocks: 2, rows: 20, bytes: 200 }, 400));
    assert_eq!(desk.settle(now, first.token, Verdict::Ack), send(1, "reply 1"));
    assert_eq!(desk.hand(now).unwrap().token.sequence, 3);
    desk.set_budget(Budget { rows: 100, bytes: 250 });
    assert!(desk.hand(now).is_none(), "nor are 300 bytes allowed");
    desk.set_budget(Budget { rows: 100, bytes: 300 });
    assert_eq!(desk.hand(now).unwrap().token.sequence, 4);
    assert!(desk.queue_is_empty());
}

#[test]
fn who_holds_nothing_gets_one_whatever_its_size() {
    let (mut desk, now) = desk(1, 1);
    assert_eq!(desk.room(0), 1, "and may ask for one, whatever the process holds");
    arrive(&mut desk, now, 1, 500);
    arrive(&mut desk, now, 2, 500);
    assert_eq!(desk.room(usize::MAX), 0);
    let token = desk.hand(now).unwrap().token;
    assert!(desk.hand(now).is_none());
    desk.settle(now, token, NAK);
    assert!(desk.hand(now).is_some());
}

#[test]
fn room_is_counted_in_blocks_as_large_as_the_largest_lately() {
    let (mut desk, now) = desk(20_000, 16 << 20);
    assert_eq!(desk.room(usize::MAX), 32, "512 KiB each before anything is known");
    arrive(&mut desk, now, 1, 100);
    assert_eq!(desk.room(usize::MAX), 199);
    assert_eq!(desk.room(5_500), 5, "what the process has left counts too");
    arrive(&mut desk, now, 2, 0);
    assert!(desk.room(usize::MAX) < 210, "a probe says nothing about blocks");
    assert_eq!(desk.guess(3), 3_000);
}

#[test]
fn a_copy_of_what_is_here_lends_its_reply() {
    let (mut desk, now) = desk(100, 10_000);
    arrive(&mut desk, now, 1, 1);
    arrive(&mut desk, now, 2, 1);
    let copy = |desk: &mut Desk<String>, sequence| desk.arrive(now, sequence, "new".into(), Some(block(1, 10)));
    assert_eq!(copy(&mut desk, 1), Arrival::Copy, "queued");
    let token = desk.hand(now).unwrap().token;
    assert_eq!(copy(&mut desk, 1), Arrival::Copy, "held");
    assert_eq!(desk.settle(now, token, Verdict::Ack), send(1, "new"));
    assert_eq!(copy(&mut desk, 1), Arrival::Settled);
    assert_eq!(desk.settle(now, token, Verdict::Ack), Outcome::Nothing);
    assert_eq!(desk.unsettled(), 2, "the server may not know of the ack");
    desk.confirmed(&[1]);
    assert_eq!(desk.unsettled(), 1);
    let only = desk.hand(now).unwrap();
    assert_eq!((only.token.sequence, only.attempt), (2, 1));
    assert!(desk.hand(now).is_none());
}

#[test]
fn what_is_neither_settled_nor_kept_alive_lapses_before_the_server_brings_it_again() {
    let (mut desk, now) = desk(100, 10_000);
    (1..=3).for_each(|sequence| assert_eq!(arrive(&mut desk, now, sequence, 1), Arrival::Queued));
    let tokens: Vec<AckToken> = std::iter::from_fn(|| desk.hand(now).map(|handed| handed.token)).collect();
    let later = now + 40 * SECOND;
    assert_eq!(desk.settle(later, tokens[1], Verdict::InProgress), send(2, "reply 2"));
    assert_eq!(desk.lapse(now + 59 * SECOND), 0);
    assert_eq!(desk.next_lapse(), Some(now + Duration::from_millis(59_500)));
    assert_eq!(desk.lapse(now + Duration::from_millis(59_500)), 2);
    assert_eq!(desk.held().rows, 1);
    // its insert ended in between
    assert_eq!(desk.settle(now + 60 * SECOND, tokens[0], Verdict::Ack), send(1, "reply 1"));
    // the server's copy is a delivery of its own
    assert_eq!(arrive(&mut desk, now + 60 * SECOND, 3, 1), Arrival::Queued);
    let again = desk.hand(now + 60 * SECOND).unwrap();
    assert_eq!((again.token.sequence, again.attempt), (3, 2));
    assert_eq!(desk.settle(now + 60 * SECOND, tokens[2], NAK), Outcome::Nothing, "the delivery before");
    assert_eq!(desk.settle(now + 60 * SECOND, tokens[2], Verdict::InProgress), Outcome::Nothing);
    assert_eq!(desk.settle(now + 60 * SECOND, tokens[2], Verdict::Ack), send(3, "reply 3"), "but done is done");
    assert_eq!(desk.lapse(now + 61 * SECOND), 0, "block 2 was kept alive");
    assert_eq!(desk.lapse(now + 100 * SECOND), 1);
    assert_eq!(
        desk.settle(now + 100 * SECOND, tokens[1], Verdict::InProgress),
        send(2, "reply 2"),
        "late, not too late"
    );
    assert_eq!(desk.held().blocks, 1);
}

#[test]
fn a_block_given_back_waits_for_its_time() {
    let (mut desk, now) = desk(100, 10_000);
    arrive(&mut desk, now, 1, 1);
    arrive(&mut desk, now, 2, 1);
    let tokens: Vec<AckToken> = std::iter::from_fn(|| desk.hand(now).map(|handed| handed.token)).collect();
    let delay = 30 * SECOND;
    assert_eq!(desk.settle(now, tokens[0], Verdict::Nak { delay }), send(1, "reply 1"));
    assert_eq!(desk.settle(now, tokens[0], Verdict::Nak { delay }), Outcome::Nothing);
    assert_eq!(desk.held().blocks, 1, "it is not held");
    // a reset brings it at once
    assert_eq!(arrive(&mut desk, now + 10 * SECOND, 1, 1), Arrival::TooEarly(20 * SECOND));
    assert!(desk.hand(now).is_none());
    assert_eq!(arrive(&mut desk, now + 30 * SECOND, 1, 1), Arrival::Queued);
    assert_eq!(desk.hand(now + 30 * SECOND).unwrap().attempt, 2);
    assert_eq!(desk.settle(now, tokens[1], NAK), send(2, "reply 2"));
    assert_eq!(arrive(&mut desk, now, 2, 1), Arrival::Queued);
}

#[test]
fn an_ack_of_an_earlier_delivery_takes_the_next_one_out_of_the_queue() {
    let (mut desk, now) = desk(100, 10_000);
    arrive(&mut desk, now, 1, 1);
    let token = desk.hand(now).unwrap().token;
    desk.lapse(now + ACK_WAIT);
    arrive(&mut desk, now + ACK_WAIT, 1, 1);
    arrive(&mut desk, now + ACK_WAIT, 2, 1);
    assert_eq!(desk.settle(now + ACK_WAIT, token, Verdict::Ack), send(1, "reply 1"));
    assert_eq!(desk.hand(now + ACK_WAIT).unwrap().token.sequence, 2);
    assert_eq!(desk.bytes(), 10);
}

#[test]
fn what_waits_long_is_kept_alive_by_us() {
    let (mut desk, now) = desk(1, 10_000);
    arrive(&mut desk, now, 1, 1);
    arrive(&mut desk, now, 2, 1);
    assert_eq!(desk.arrive(now, 3, "reply 3".into(), None), Arrival::Queued, "unreadable: on its way to the letters");
    let held = desk.hand(now).unwrap();
    assert_eq!(held.keep_alive, None);
    assert!(desk.waiting_long(now + 10 * SECOND).is_empty());
    let mut long = desk.waiting_long(now + 20 * SECOND);
    long.sort();
    assert_eq!(long, [(2, "reply 2".to_owned()), (3, "reply 3".to_owned())]);
    assert!(desk.waiting_long(now + 21 * SECOND).is_empty());
    desk.settle(now, held.token, Verdict::Ack);
    let handed = desk.hand(now + 25 * SECOND).unwrap();
    assert_eq!(handed.keep_alive.as_deref(), Some("reply 2"), "its time begins with the handler");
    assert_eq!(desk.acked(3), send(3, "reply 3"));
    assert_eq!(desk.acked(3), Outcome::Nothing);
}

#[test]
fn deliveries_are_counted_over_terms() {
    let (mut desk, now) = desk(100, 10_000);
    (1..=3).for_each(|sequence| assert_eq!(arrive(&mut desk, now, sequence, 1), Arrival::Queued));
    let first = desk.hand(now).unwrap().token;
    let second = desk.hand(now).unwrap().token;
    desk.settle(now, second, NAK);
    arrive(&mut desk, now, 2, 1);
    assert_eq!(desk.give_back(), ["reply 1", "reply 2", "reply 3"]);
    let (attempts, last) = desk.end();
    assert_eq!(attempts, HashMap::from([(1, 1), (2, 1)]), "only what was handed on counts");
    assert_eq!((desk.bytes(), desk.unsettled()), (0, 0));
    let mut next = Desk::new(Budget { rows: 100, bytes: 10_000 }, ACK_WAIT, attempts, last);
    (1..=3).for_each(|sequence| assert_eq!(arrive(&mut next, now, sequence, 1), Arrival::Queued));
    let counted: Vec<_> = std::iter::from_fn(|| next.hand(now).map(|h| (h.token, h.attempt))).collect();
    assert_eq!(counted.iter().map(|(_, attempt)| *attempt).collect::<Vec<_>>(), [2, 2, 1]);
    assert!(counted[0].0.delivery > first.delivery.max(second.delivery), "no delivery's number comes twice");
}

#[test]
fn another_block_under_a_known_sequence_is_no_copy() {
    let (mut desk, now) = desk(100, 10_000);
    (1..=2).for_each(|sequence| assert_eq!(arrive(&mut desk, now, sequence, 1), Arrival::Queued));
    desk.acked(1);
    let other = || Some(Block { id: BlockId([1; 16]), ..block(1, 10) });
    for sequence in 1..=2 {
        assert_eq!(desk.arrive(now, sequence, "new".into(), other()), Arrival::Other);
        assert_eq!(desk.arrive(now, sequence, "new".into(), None), Arrival::Other, "nor is what cannot be read");
    }
}

#[test]
fn a_reset_makes_replies_void_until_a_copy_brings_a_new_one() {
    let (mut desk, now) = desk(100, 10_000);
    (1..=3).for_each(|sequence| assert_eq!(arrive(&mut desk, now, sequence, 1), Arrival::Queued));
    desk.acked(1);
    assert_eq!(desk.unconfirmed(), [(1, "reply 1".to_owned())]);
    desk.reset();
    // the second was held over the reset
    desk.acked(2);
    assert_eq!(desk.unconfirmed(), []);
    assert_eq!(desk.unsettled(), 3);
    for sequence in 1..=3 {
        let copy = desk.arrive(now, sequence, "new".into(), Some(block(1, 10)));
        assert_eq!(copy, if sequence < 3 { Arrival::Settled } else { Arrival::Copy });
    }
    let mut unconfirmed = desk.unconfirmed();
    unconfirmed.sort();
    assert_eq!(unconfirmed, [(1, "new".to_owned()), (2, "new".to_owned())]);
}
