//! The machine by itself: a table of every status, and one test for each thing it knows.

use super::*;
use std::time::Duration;
use wh_nats::{Rest, Status};
use wh_types::{Clock as _, SystemClock};

pub(super) fn times() -> Times {
    Times::new(Duration::from_secs(9), 1_000)
}

pub(super) fn pin(name: &str) -> PinId {
    PinId::new(name)
}

fn reading(delivered: u64, pinned: Option<&str>) -> Reading {
    Reading {
        created: String::new(),
        delivered,
        unsettled: 0,
        pending: 0,
        waiting: 0,
        pinned: pinned.map(pin),
        quiet: None,
        undelivered: None,
    }
}

/// A machine, its time, and what it last wanted.
struct Bench {
    pull: Pull,
    now: Mono,
    number: u64,
    room: u32,
}

impl Bench {
    /// With room for 10 blocks; its first pull went out.
    fn new() -> Self {
        let now = SystemClock.now();
        let mut bench = Self { pull: Pull::new(times(), now, &reading(0, None)), now, number: 0, room: 0 };
        assert_eq!(bench.step(Input::Room(10)), [Command::Pull { blocks: 10, pin: None }]);
        bench.sent();
        bench
    }

    /// Pinned as `p`, 3 blocks seen.
    fn pinned() -> Self {
        let mut bench = Self::new();
        let taken = bench.block(1, "p");
        assert!(taken.contains(&Command::Take) && taken.contains(&Command::Note(Event::Pinned)));
        assert_eq!(bench.block(2, "p"), [Command::Take]);
        assert_eq!(bench.block(3, "p"), [Command::Take]);
        bench
    }

    fn step(&mut self, input: Input) -> Vec<Command> {
        if let Input::Room(room) = input {
            self.room = room;
        }
        // settling makes room for what was taken
        self.pull.room = self.room;
        let mut commands = Vec::new();
        self.pull.step(self.now, input, &mut commands);
        commands
    }

    fn sent(&mut self) {
        self.number += 1;
        assert_eq!(self.step(Input::Sent(self.number)), []);
    }

    fn block(&mut self, sequence: u64, by: &str) -> Vec<Command> {
        self.step(Input::Block { sequence, pin: Some(pin(by)) })
    }

    fn status(&mut self, status: Status) -> Vec<Command> {
        self.step(Input::Status { number: self.number, status })
    }

    fn read(&mut self, reading: Reading) -> Vec<Command> {
        self.step(Input::Read { reading, ours: 0 })
    }

    fn after(&mut self, span: Duration) -> Vec<Command> {
        self.now += span;
        self.step(Input::Room(self.room))
    }
}

fn pull(by: Option<&str>) -> Command {
    Command::Pull { blocks: 10, pin: by.map(pin) }
}

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn every_status_of_a_pull_has_its_reaction() {
    let rest = Rest::default();
    let limited = |text: &str| vec![Command::Note(Event::Limited(text.to_owned()))];
    let table: Vec<(Status, Vec<Command>)> = vec![
        (Status::Heartbeat { last_consumer: Some(3), last_stream: Some(3) }, vec![]),
        (Status::NoMessages, vec![pull(Some("p"))]),
        (Status::Expired(rest), vec![pull(Some("p"))]),
        (Status::InterestExpired, vec![pull(Some("p"))]),
        (Status::RequestsPending, vec![pull(Some("p"))]),
        (Status::MaxBytes(rest), vec![pull(Some("p"))]),
        (Status::BatchCompleted, vec![pull(Some("p"))]),
        (Status::LeadershipChange, vec![Command::Note(Event::LeaderChanged), Command::Read]),
        (Status::ServerShutdown, vec![]),
        (Status::PinMismatch, vec![Command::Note(Event::PinLost), Command::Read]),
        (Status::WrongPin(rest), vec![Command::Note(Event::PinLost), Command::Read]),
        (Status::ConsumerDeleted, vec![Command::Read]),
        (Status::NoResponders, vec![]),
        (Status::BadRequest("b".into()), vec![Command::End(End::Refused("b".into()))]),
        (Status::PushBased, vec![Command::End(End::Refused("the durable pushes".into()))]),
        (Status::Exceeded("Exceeded MaxWaiting".into()), limited("Exceeded MaxWaiting")),
        (Status::ApiLevel, limited("ApiLevel")),
        (Status::Other(499, "Tea".into()), limited("Other(499, \"Tea\")")),
    ];
    for (status, wanted) in table {
        let mut bench = Bench::pinned();
        assert_eq!(bench.status(status.clone()), wanted, "{status:?}");
    }
}

#[test]
fn every_status_of_a_renewal_has_its_reaction() {
    let rest = Rest::default();
    let table: Vec<(Status, Vec<Command>)> = vec![
        (Status::NoMessages, vec![]),
        (Status::Expired(rest), vec![]),
        (Status::MaxBytes(rest), vec![]),
        (Status::LeadershipChange, vec![Command::Read]),
        (Status::ServerShutdown, vec![Command::Read]),
        (Status::NoResponders, vec![Command::Read]),
        (Status::ConsumerDeleted, vec![Command::Read]),
        (Status::PinMismatch, vec![Command::Note(Event::PinLost), Command::Read]),
        (Status::WrongPin(rest), vec![Command::Note(Event::PinLost), Command::Read]),
        (Status::BadRequest("b".into()), vec![Command::End(End::Refused("b".into()))]),
        (Status::PushBased, vec![Command::End(End::Refused("the durable pushes".into()))]),
        (
            Status::Exceeded("Exceeded MaxWaiting".into()),
            vec![Command::Note(Event::Limited("Exceeded MaxWaiting".into()))],
        ),
        (Status::Other(499, "Tea".into()), vec![]),
    ];
    for (status, wanted) in table {
        let mut bench = Bench::pinned();
        assert_eq!(bench.step(Input::Renewed(status.clone())), wanted, "{status:?}");
    }
}

#[test]
fn the_answer_to_another_pull_means_nothing() {
    let mut bench = Bench::pinned();
    for status in [Status::LeadershipChange, Status::BadRequest("b".into()), Status::NoMessages] {
        assert_eq!(bench.step(Input::Status { number: bench.number + 7, status }), []);
    }
}

#[test]
fn a_full_pull_is_followed_by_the_next_and_no_room_ends_the_pulling() {
    let mut bench = Bench::pinned();
    for sequence in 4..10 {
        assert_eq!(bench.block(sequence, "p"), [Command::Take]);
    }
    let next = Command::Pull { blocks: 9, pin: Some(pin("p")) };
    assert_eq!(bench.block(10, "p"), [Command::Take, next], "the block just taken has its room");
    bench.sent();
    assert_eq!(bench.step(Input::Room(0)), []);
    assert_eq!(bench.status(Status::Expired(Rest::default())), []);
    assert_eq!(bench.step(Input::Room(200)), [Command::Pull { blocks: 128, pin: Some(pin("p")) }]);
}

#[test]
fn the_pin_is_renewed_by_the_clock_in_every_phase() {
    let renew = || Command::Renew(pin("p"));
    // at its share
    let mut bench = Bench::pinned();
    bench.step(Input::Room(0));
    bench.status(Status::NoMessages);
    for _ in 0..10 {
        assert_eq!(bench.after(2_999 * MS), []);
        assert_eq!(bench.after(MS), [renew()]);
    }
    // a gap that waits for its reading
    bench.step(Input::Room(10));
    bench.sent();
    assert_eq!(bench.block(9, "p"), [Command::Note(Event::Gap { seen: 3 }), Command::Drop, Command::Read]);
    assert_eq!(bench.after(3 * SECOND), [renew()]);
    // halting, and halted
    assert_eq!(bench.step(Input::Halt), [Command::Drain, Command::Read]);
    assert_eq!(bench.after(3 * SECOND), [renew()]);
    assert_eq!(bench.read(reading(3, Some("p"))), [Command::Halted]);
    assert_eq!(bench.after(3 * SECOND), [renew()]);
    assert_eq!(bench.step(Input::Room(50)), [], "a halted unit asks for nothing");
    // the pull itself renews it
    let mut bench = Bench::pinned();
    assert_eq!(bench.after(2 * SECOND), []);
    assert_eq!(bench.status(Status::NoMessages), [pull(Some("p"))]);
    bench.sent();
    assert_eq!(bench.after(2 * SECOND), []);
    assert_eq!(bench.after(SECOND), [renew()]);
}

#[test]
fn a_jump_of_the_count_is_a_gap_that_a_reset_mends() {
    let mut bench = Bench::pinned();
    assert_eq!(bench.block(6, "p"), [Command::Note(Event::Gap { seen: 3 }), Command::Drop, Command::Read]);
    assert_eq!(bench.block(7, "p"), [Command::Drop], "nothing behind a gap is handed on");
    assert_eq!(bench.step(Input::Room(20)), [], "and nothing more is asked for");
    assert_eq!(bench.read(reading(7, Some("p"))), [Command::Reset]);
    assert_eq!(bench.block(8, "p"), [Command::Drop]);
    assert_eq!(bench.step(Input::Reset(true)), [Command::Pull { blocks: 20, pin: Some(pin("p")) }]);
    bench.sent();
    assert_eq!(bench.block(1, "p"), [Command::Take]);
    assert_eq!(bench.block(2, "p"), [Command::Take]);
}

#[test]
fn blocks_may_overtake_the_answer_to_the_reset() {
    let mut bench = Bench::pinned();
    bench.block(6, "p");
    bench.read(reading(7, Some("p")));
    assert_eq!(bench.block(1, "p"), [Command::Take]);
    assert_eq!(bench.block(2, "p"), [Command::Take]);
    assert_eq!(bench.step(Input::Reset(true)), [pull(Some("p"))]);
    bench.sent();
    assert_eq!(bench.block(3, "p"), [Command::Take]);
}

#[test]
fn a_reset_without_answer_is_looked_into_and_tried_again() {
    let mut bench = Bench::pinned();
    bench.block(6, "p");
    bench.read(reading(7, Some("p")));
    assert_eq!(bench.step(Input::Reset(false)), []);
    assert_eq!(bench.after(250 * MS), [Command::Read]);
    assert_eq!(bench.read(reading(7, Some("p"))), [Command::Reset]);
    // the durable may be gone: a reset of it is never answered
    bench.step(Input::Reset(false));
    bench.after(250 * MS);
    assert_eq!(bench.step(Input::Missing), []);
    assert_eq!(bench.after(SECOND), [Command::Read]);
    assert_eq!(bench.step(Input::Missing), [Command::End(End::Gone)]);
}

#[test]
fn after_a_change_of_leader_what_was_delivered_and_did_not_come_is_a_gap() {
    let mut bench = Bench::pinned();
    bench.status(Status::LeadershipChange);
    assert_eq!(bench.read(reading(5, None)), [], "it may have been overtaken");
    assert_eq!(bench.after(499 * MS), []);
    assert_eq!(bench.after(MS), [Command::Note(Event::Gap { seen: 3 }), Command::Read]);
    assert_eq!(bench.read(reading(5, None)), [Command::Reset]);
    assert_eq!(bench.step(Input::Reset(true)), [pull(None)]);
}

#[test]
fn what_was_only_overtaken_is_no_gap() {
    let mut bench = Bench::pinned();
    bench.status(Status::LeadershipChange);
    bench.read(reading(5, None));
    assert!(bench.block(4, "q").contains(&Command::Take));
    assert_eq!(bench.after(400 * MS), []);
    assert_eq!(bench.block(5, "q"), [Command::Take, Command::Pull { blocks: 9, pin: Some(pin("q")) }]);
}

#[test]
fn deliveries_that_a_server_forgot_come_again() {
    let mut bench = Bench::pinned();
    bench.step(Input::Link(false));
    assert_eq!(bench.after(2 * SECOND), [], "nothing is sent while nothing is connected");
    assert_eq!(bench.step(Input::Link(true)), [Command::Read]);
    assert_eq!(bench.read(reading(1, None)), [pull(None)]);
    bench.sent();
    assert!(bench.block(2, "q").contains(&Command::Take));
    assert_eq!(bench.block(3, "q"), [Command::Take]);
}

#[test]
fn what_a_forgetful_server_still_remembers_is_reset_at_once() {
    let mut bench = Bench::pinned();
    bench.step(Input::Link(false));
    bench.step(Input::Link(true));
    let remembers = Reading { unsettled: 2, ..reading(1, None) };
    let told = bench.read(remembers.clone());
    assert_eq!(told, [Command::Note(Event::Gap { seen: 1 }), Command::Read]);
    assert_eq!(bench.read(remembers), [Command::Reset]);
    assert_eq!(bench.step(Input::Reset(true)), [pull(None)]);
}

#[test]
fn what_another_member_took_meanwhile_is_no_gap() {
    let mut bench = Bench::pinned();
    bench.status(Status::PinMismatch);
    assert_eq!(bench.read(reading(90, Some("other"))), [pull(None)]);
    bench.sent();
    assert!(bench.block(95, "again").contains(&Command::Take));
    assert!(bench.block(97, "again").contains(&Command::Note(Event::Gap { seen: 95 })));
    // and a first owner does not know what was before it
    let mut bench = Bench::new();
    assert!(bench.block(17, "p").contains(&Command::Take));
}

#[test]
fn a_pin_that_could_lapse_does_not_make_a_gap_of_anothers_term() {
    let mut bench = Bench::pinned();
    bench.step(Input::Link(false));
    bench.now += 20 * SECOND;
    bench.step(Input::Link(true));
    let other = Reading { undelivered: Some(5 * SECOND), ..reading(50, None) };
    assert_eq!(bench.read(other), [pull(None)]);
    // but where it is no more than the lost pull had left, it was ours
    let mut bench = Bench::pinned();
    bench.step(Input::Link(false));
    bench.now += 20 * SECOND;
    bench.step(Input::Link(true));
    assert_eq!(bench.read(Reading { undelivered: Some(MS), ..reading(10, None) }), []);
    assert!(bench.after(500 * MS).contains(&Command::Note(Event::Gap { seen: 3 })));
    // and where nothing was delivered since, too
    let mut bench = Bench::pinned();
    bench.step(Input::Link(false));
    bench.now += 20 * SECOND;
    bench.step(Input::Link(true));
    let nobody = Reading { quiet: Some(MS), undelivered: Some(21 * SECOND), ..reading(50, None) };
    assert_eq!(bench.read(nobody), []);
    assert!(bench.after(500 * MS).contains(&Command::Note(Event::Gap { seen: 3 })));
}

#[test]
fn one_refusal_is_waited_out_and_the_second_is_looked_into() {
    let mut bench = Bench::pinned();
    assert_eq!(bench.status(Status::NoResponders), []);
    assert_eq!(bench.after(249 * MS), []);
    assert_eq!(bench.after(MS), [pull(Some("p"))]);
    bench.sent();
    assert_eq!(bench.status(Status::NoResponders), []);
    assert_eq!(bench.after(250 * MS), [Command::Read]);
    // an election: nobody answers, however long
    for _ in 0..30 {
        assert_eq!(bench.step(Input::Unread), []);
        let again = bench.after(250 * MS);
        assert!(again.contains(&Command::Read) && !again.iter().any(|c| matches!(c, Command::End(_))), "{again:?}");
    }
    assert_eq!(bench.step(Input::Missing), [], "one answer is not believed");
    bench.after(SECOND);
    assert_eq!(bench.read(reading(3, Some("p"))), [pull(Some("p"))]);
}

#[test]
fn a_durable_that_was_deleted_ends_the_delivery_once() {
    let mut bench = Bench::pinned();
    assert_eq!(bench.status(Status::ConsumerDeleted), [Command::Read]);
    assert_eq!(bench.step(Input::Missing), [Command::End(End::Gone)]);
    for input in [Input::Missing, Input::Room(5), Input::Link(true), Input::Halt] {
        assert_eq!(bench.step(input), []);
    }
    assert_eq!(bench.block(4, "p"), [Command::Drop]);
    assert_eq!(bench.after(60 * SECOND), []);
}

#[test]
fn a_pull_nobody_speaks_of_is_given_up() {
    let mut bench = Bench::pinned();
    bench.after(3 * SECOND);
    bench.status(Status::Heartbeat { last_consumer: Some(3), last_stream: None });
    assert!(!bench.after(3_699 * MS).contains(&Command::Read));
    let silent = bench.after(MS);
    assert!(silent.contains(&Command::Note(Event::Silent)) && silent.contains(&Command::Read), "{silent:?}");
    assert_eq!(bench.read(reading(3, Some("p"))), [pull(Some("p"))]);
}

#[test]
fn a_heartbeat_tells_of_a_gap_too() {
    let mut bench = Bench::pinned();
    assert_eq!(bench.status(Status::Heartbeat { last_consumer: Some(4), last_stream: Some(4) }), []);
    assert_eq!(bench.after(500 * MS), [Command::Note(Event::Gap { seen: 3 }), Command::Read]);
}

#[test]
fn a_unit_that_waits_for_30_s_with_blocks_pending_does_not_move() {
    let mut bench = Bench::pinned();
    let stuck = || Reading { pending: 7, ..reading(3, Some("p")) };
    let mut moves = Vec::new();
    for second in 1..=60 {
        let commands = bench.after(SECOND);
        bench.status(Status::Heartbeat { last_consumer: Some(3), last_stream: None });
        if commands.contains(&Command::Read) {
            moves.extend(bench.read(stuck()).into_iter().map(|command| (second, command)));
        }
    }
    assert_eq!(moves, [(30, Command::Progress(false))], "said once");
    assert_eq!(bench.block(4, "p"), [Command::Progress(true), Command::Take]);
    // nothing pending, or as much unsettled as the durable allows: it does not move, and need not
    for idle in [reading(3, Some("p")), Reading { unsettled: 1_000, ..stuck() }] {
        let mut bench = Bench::pinned();
        for _ in 1..=60 {
            let commands = bench.after(SECOND);
            bench.status(Status::Heartbeat { last_consumer: Some(3), last_stream: None });
            if commands.contains(&Command::Read) {
                let said = bench.step(Input::Read { reading: idle.clone(), ours: 1_000 });
                assert_eq!(said, []);
            }
        }
    }
    // nor does one that has no room
    let mut bench = Bench::pinned();
    bench.step(Input::Room(0));
    bench.status(Status::NoMessages);
    for _ in 1..=60 {
        assert!(!bench.after(SECOND).contains(&Command::Read));
    }
}

#[test]
fn more_unsettled_at_the_server_than_here_is_a_gap_when_seen_twice() {
    let mut bench = Bench::pinned();
    let more = |ours| Input::Read { reading: Reading { unsettled: 5, ..reading(3, Some("p")) }, ours };
    assert_eq!(bench.step(more(5)), []);
    assert_eq!(bench.step(more(4)), []);
    assert_eq!(bench.step(more(5)), []);
    assert_eq!(bench.step(more(4)), []);
    assert!(bench.step(more(4)).contains(&Command::Note(Event::Gap { seen: 3 })));
    // what an earlier owner left is none of ours
    let now = SystemClock.now();
    let left = Reading { unsettled: 40, ..reading(0, None) };
    let mut bench = Bench { pull: Pull::new(times(), now, &left), now, number: 0, room: 0 };
    bench.step(Input::Room(10));
    bench.sent();
    bench.block(41, "p");
    for _ in 0..5 {
        let reading = Reading { unsettled: 41, ..reading(41, Some("p")) };
        assert_eq!(bench.step(Input::Read { reading, ours: 1 }), []);
    }
}

#[test]
fn a_halt_takes_what_is_under_way_and_waits_for_the_last_pull() {
    let mut bench = Bench::pinned();
    assert_eq!(bench.step(Input::Halt), [Command::Drain, Command::Read]);
    assert_eq!(bench.step(Input::Halt), []);
    assert_eq!(bench.block(4, "p"), [Command::Take]);
    assert_eq!(bench.block(6, "p"), [Command::Drop], "no gap is mended any more: the release does that");
    assert_eq!(bench.read(Reading { waiting: 1, ..reading(6, Some("p")) }), []);
    assert_eq!(bench.after(50 * MS), [Command::Read]);
    assert_eq!(bench.read(reading(6, Some("p"))), [Command::Halted]);
    // another member's pull waits for ever
    let mut bench = Bench::pinned();
    let mut commands = bench.step(Input::Halt);
    let mut reads = 0;
    while commands.contains(&Command::Read) {
        reads += 1;
        commands = bench.read(Reading { waiting: 1, ..reading(3, Some("p")) });
        if commands.is_empty() {
            commands = bench.after(50 * MS);
        }
    }
    assert_eq!((reads, commands), (20, vec![Command::Halted]));
    // a server that does not answer is not waited for
    let mut bench = Bench::pinned();
    bench.step(Input::Halt);
    assert_eq!(bench.step(Input::Unread), []);
    assert_eq!(bench.after(250 * MS), [Command::Read]);
    assert_eq!(bench.step(Input::Unread), [Command::Halted]);
    // and without a connection there is nothing to wait for
    let mut bench = Bench::pinned();
    bench.step(Input::Halt);
    assert_eq!(bench.step(Input::Link(false)), [Command::Halted]);
}

#[test]
fn a_pull_that_cannot_be_sent_is_tried_again() {
    let mut bench = Bench::pinned();
    assert_eq!(bench.status(Status::NoMessages), [pull(Some("p"))]);
    assert_eq!(bench.step(Input::NotSent), []);
    assert_eq!(bench.after(250 * MS), [pull(Some("p"))]);
}

#[test]
fn what_breaks_the_connection_with_each_delivery_is_asked_for_less_and_less_often() {
    let mut bench = Bench::pinned();
    let (mut delivered, mut pauses) = (4, Vec::new());
    for times in 1..=5 {
        bench.step(Input::Link(false));
        assert_eq!(bench.step(Input::Link(true)), [Command::Read]);
        let noted = bench.read(reading(delivered, Some("p")));
        assert_eq!(noted.contains(&Command::Note(Event::Cut { times })), times > 2, "{times}: {noted:?}");
        assert_eq!(noted.contains(&Command::Progress(false)), times == 3, "{times}: {noted:?}");
        assert!(bench.after(OVERTAKEN).contains(&Command::Read), "they are believed to be lost");
        assert_eq!(bench.read(reading(delivered, Some("p"))), [Command::Reset]);
        let mut commands = bench.step(Input::Reset(true));
        let mut pause = 0;
        while !commands.iter().any(|command| matches!(command, Command::Pull { .. })) {
            commands = bench.after(SECOND);
            pause += 1;
        }
        pauses.push(pause);
        bench.sent();
        delivered = 1;
    }
    assert_eq!(pauses, [0, 0, 1, 2, 4]);
    assert_eq!(bench.block(1, "p"), [Command::Progress(true), Command::Take], "somebody removed it");
}
