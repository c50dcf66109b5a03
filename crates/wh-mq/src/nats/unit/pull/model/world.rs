//! A model of a durable and its server, with a machine and a desk at its other end.

use super::{
    super::{
        super::desk::{Arrival, Desk, Outcome},
        tests::times,
        *,
    },
    Step,
};
use crate::{AckToken, Budget, Verdict};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::Duration,
};
use wh_nats::{Rest, Status};
use wh_types::{Block, BlockId, Clock as _, Encoding, SystemClock, Table, Tenant, Timestamp};

pub(super) const ACK_WAIT: Duration = Duration::from_secs(60);
const BUDGET: Budget = Budget { rows: 40, bytes: 1 << 20 };

#[derive(Debug)]
enum Message {
    Block { stream: u64, consumer: u64, pin: PinId },
    Status { number: u64, status: Status },
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    left: u32,
    until: Mono,
    pin: Option<PinId>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Mono,
    // the server
    pub(super) stream: BTreeSet<u64>,
    pub(super) last: u64,
    next: u64,
    consumer: u64,
    pub(super) pending: BTreeMap<u64, Mono>,
    pinned: Option<(PinId, Mono)>,
    pins: u64,
    waiting: VecDeque<Waiting>,
    wire: VecDeque<Message>,
    pub(super) swallow: u8,
    pub(super) silent: bool,
    // the client
    pull: Pull,
    pub(super) desk: Desk<u64>,
    number: u64,
    pub(super) handed: HashMap<u64, u32>,
    pub(super) holding: Vec<AckToken>,
    commands: Vec<Command>,
    pinned_request: Option<Mono>,
    pub(super) resets: u32,
}

impl World {
    pub(super) fn new() -> Self {
        let now = SystemClock.now();
        let empty = Reading {
            created: String::new(),
            delivered: 0,
            unsettled: 0,
            pending: 0,
            waiting: 0,
            pinned: None,
            quiet: None,
            undelivered: None,
        };
        Self {
            now,
            stream: BTreeSet::new(),
            last: 0,
            next: 1,
            consumer: 0,
            pending: BTreeMap::new(),
            pinned: None,
            pins: 0,
            waiting: VecDeque::new(),
            wire: VecDeque::new(),
            swallow: 0,
            silent: false,
            pull: Pull::new(times(), now, &empty),
            desk: Desk::new(BUDGET, ACK_WAIT, HashMap::new(), 0),
            number: 0,
            handed: HashMap::new(),
            holding: Vec::new(),
            commands: Vec::new(),
            pinned_request: None,
            resets: 0,
        }
    }

    /// The server gives waiting pulls what is due.
    fn serve(&mut self) {
        let now = self.now;
        if self.pinned.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.pinned = None;
        }
        while let Some(at) = self.due() {
            let Some(pull) = self.waiting.iter_mut().find(|pull| match (&self.pinned, &pull.pin) {
                (None, None) => true,
                (Some((pinned, _)), Some(pin)) => pinned == pin,
                _ => false,
            }) else {
                self.stale();
                return;
            };
            let pin = match &self.pinned {
                Some((pin, _)) => pin.clone(),
                None => {
                    self.pins += 1;
                    let pin = PinId::new(&format!("pin {}", self.pins));
                    self.pinned = Some((pin.clone(), now + times().pinned_ttl));
                    pull.pin = Some(pin.clone());
                    pin
                }
            };
            pull.left -= 1;
            self.consumer += 1;
            self.pending.insert(at, now + ACK_WAIT);
            self.next = self.next.max(at + 1);
            if self.swallow > 0 {
                self.swallow -= 1;
            } else {
                self.wire.push_back(Message::Block { stream: at, consumer: self.consumer, pin });
            }
            self.waiting.retain(|pull| pull.left > 0);
        }
        let ended = |pull: &Waiting| pull.until <= now;
        for pull in self.waiting.iter().filter(|pull| ended(pull)) {
            let status = Status::Expired(Rest::default());
            self.wire.push_back(Message::Status { number: pull.number, status });
        }
        self.waiting.retain(|pull| !ended(pull));
    }

    /// A pull with a pin that is nobody's is told so when a block is ready.
    fn stale(&mut self) {
        if self.pinned.is_none() {
            for pull in self.waiting.drain(..) {
                let status = Status::WrongPin(Rest::default());
                self.wire.push_back(Message::Status { number: pull.number, status });
            }
        }
    }

    fn due(&self) -> Option<u64> {
        let again = self.pending.iter().find(|(_, at)| **at <= self.now).map(|(sequence, _)| *sequence);
        again.or_else(|| self.stream.range(self.next..).next().copied())
    }

    fn tell(&mut self, input: Input) {
        self.pull.step(self.now, input, &mut self.commands);
    }

    /// The client hears everything and does everything it wants.
    pub(super) fn settle_down(&mut self) {
        for _ in 0..10_000 {
            self.desk.lapse(self.now);
            let room = u32::try_from(self.desk.room(usize::MAX)).unwrap();
            self.tell(Input::Room(room));
            self.obey();
            self.serve();
            match self.wire.pop_front() {
                None => return,
                Some(Message::Block { stream, consumer, pin }) => self.block(stream, consumer, pin),
                Some(Message::Status { number, status }) => self.tell(Input::Status { number, status }),
            }
            self.obey();
        }
        panic!("it never comes to rest");
    }

    fn obey(&mut self) {
        while !self.commands.is_empty() {
            let command = self.commands.remove(0);
            self.act(command);
        }
    }

    fn block(&mut self, stream: u64, consumer: u64, pin: PinId) {
        self.tell(Input::Block { sequence: consumer, pin: Some(pin) });
        let at = self.commands.iter().position(|c| matches!(c, Command::Take | Command::Drop)).unwrap();
        if self.commands.remove(at) == Command::Drop {
            return;
        }
        match self.desk.arrive(self.now, stream, stream, Some(block_of(stream))) {
            Arrival::Queued | Arrival::Copy => {}
            Arrival::Settled => self.ack(stream),
            Arrival::TooEarly(_) | Arrival::Other => panic!("no block is given back here, nor another"),
        }
    }

    /// An ack reaches the server; it counts where the block is pending there.
    fn ack(&mut self, sequence: u64) {
        if self.pending.remove(&sequence).is_some() {
            self.stream.remove(&sequence);
            self.desk.confirmed(&[sequence]);
        }
    }

    fn act(&mut self, command: Command) {
        match command {
            Command::Pull { blocks, pin } => {
                let room = self.desk.room(usize::MAX);
                assert!((1..=room).contains(&(blocks as usize)), "{blocks} are asked for where {room} fit");
                self.number += 1;
                self.tell(Input::Sent(self.number));
                self.touch(pin.as_ref());
                let number = self.number;
                match (&self.pinned, &pin) {
                    (Some((pinned, _)), Some(pin)) if pinned != pin => {
                        self.wire.push_back(Message::Status { number, status: Status::PinMismatch });
                    }
                    _ => {
                        let until = self.now + times().expires;
                        self.waiting.push_back(Waiting { number, left: blocks, until, pin });
                    }
                }
            }
            Command::Renew(pin) => {
                self.touch(Some(&pin));
                let status = match &self.pinned {
                    Some((pinned, _)) if *pinned != pin => Status::PinMismatch,
                    _ => Status::Expired(Rest::default()),
                };
                self.tell(Input::Renewed(status));
            }
            Command::Read if std::mem::take(&mut self.silent) => self.tell(Input::Unread),
            Command::Read => {
                let ours = self.desk.unsettled();
                let reading = self.reading();
                self.tell(Input::Read { reading, ours });
            }
            Command::Reset => {
                self.resets += 1;
                let lost = std::mem::take(&mut self.silent);
                self.next = self.stream.first().copied().unwrap_or(self.last + 1);
                self.consumer = 0;
                self.pending.clear();
                // what waits is served before the answer is heard, as it may be
                self.serve();
                while let Some(Message::Block { .. }) = self.wire.front() {
                    let Some(Message::Block { stream, consumer, pin }) = self.wire.pop_front() else { break };
                    self.block(stream, consumer, pin);
                }
                self.tell(Input::Reset(!lost));
            }
            Command::End(end) => panic!("{end:?}"),
            Command::Take | Command::Drop | Command::Drain | Command::Halted => panic!("{command:?}"),
            Command::Progress(_) | Command::Note(_) => {}
        }
    }

    /// A request with the pin restarts its time, and must come often enough.
    fn touch(&mut self, pin: Option<&PinId>) {
        let Some(pin) = pin else { return };
        if let Some((pinned, until)) = &mut self.pinned
            && pinned == pin
        {
            *until = self.now + times().pinned_ttl;
            self.pinned_request = Some(self.now);
        }
    }

    fn reading(&self) -> Reading {
        Reading {
            created: String::new(),
            delivered: self.consumer,
            unsettled: self.pending.len() as u64,
            pending: self.stream.range(self.next..).count() as u64,
            waiting: self.waiting.len() as u64,
            pinned: self.pinned.as_ref().map(|(pin, _)| pin.clone()),
            quiet: None,
            undelivered: None,
        }
    }

    /// Time goes by as the machine's timers want it.
    pub(super) fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            self.settle_down();
            if self.now >= until {
                return;
            }
            let pull = self.waiting.iter().map(|pull| pull.until).min();
            let pin = self.pinned.as_ref().map(|(_, until)| *until);
            let due = self.pending.values().filter(|at| **at > self.now).min().copied();
            let timers = [Some(self.pull.next_timer(self.now)), pull, pin, due, self.desk.next_lapse()];
            let next = timers.into_iter().flatten().filter(|at| *at > self.now).min().unwrap_or(until);
            let next = next.min(self.now + Duration::from_secs(1)).min(until);
            let pinned = self.pinned.clone();
            self.now = next;
            if let (Some((pin, lapses)), Some(ours)) = (pinned, self.pull.pin()) {
                assert!(pin != *ours || lapses > next, "the pin lapsed");
            }
        }
    }

    pub(super) fn handler(&mut self, settle: usize) {
        while let Some(handed) = self.desk.hand(self.now) {
            *self.handed.entry(handed.token.sequence).or_default() += 1;
            self.holding.push(handed.token);
        }
        assert!(self.desk.held().rows <= BUDGET.rows);
        for _ in 0..settle {
            let Some(token) = (!self.holding.is_empty()).then(|| self.holding.remove(self.holding.len() / 2)) else {
                break;
            };
            if let Outcome::Send(sequence, _) = self.desk.settle(self.now, token, Verdict::Ack) {
                self.ack(sequence);
            }
        }
    }

    fn cut(&mut self) {
        self.wire.clear();
        self.waiting.clear();
        self.tell(Input::Link(false));
        self.tell(Input::Link(true));
    }

    pub(super) fn run(&mut self, step: Step) {
        match step {
            Step::Publish(count) => {
                for _ in 0..count {
                    self.last += 1;
                    self.stream.insert(self.last);
                }
            }
            Step::Settle(count) => self.handler(count.into()),
            Step::Wait(millis) => self.wait(Duration::from_millis(millis.into())),
            Step::Swallow(count) => self.swallow = count,
            Step::Leader => {
                self.pinned = None;
                let told = self
                    .waiting
                    .drain(..)
                    .map(|pull| Message::Status { number: pull.number, status: Status::LeadershipChange });
                self.wire.extend(told);
            }
            Step::Kill => {
                self.pinned = None;
                self.waiting.clear();
                self.wire.clear();
                self.silent = true;
            }
            Step::Cut => self.cut(),
            Step::Forget(count) => {
                // its last deliveries are not on its disk
                let kept = self.pending.len().saturating_sub(count.into());
                if let Some(first) = self.pending.keys().nth(kept).copied() {
                    let forgotten = self.pending.split_off(&first);
                    self.consumer = self.consumer.saturating_sub(forgotten.len() as u64);
                    self.next = self.next.min(first);
                }
                self.pinned = None;
                self.cut();
            }
            Step::LoseAnswers => self.silent = true,
        }
        self.settle_down();
    }
}

fn block_of(sequence: u64) -> Block {
    Block {
        id: BlockId([0; 16]),
        tenant: Tenant::default(),
        table: Table::new("t").unwrap(),
        received: Timestamp::from_millis(i64::try_from(sequence).unwrap()),
        rows: 1,
        decoded_bytes: 1,
        encoding: Encoding::Zstd,
        body: Bytes::from_static(b"x"),
        chain: None,
        trace: None,
    }
}
