//! One unit's loop: does what the machine wants and tells it what happened. It never runs the handler, so that nothing
//! the handler does can make it late.

use super::{
    desk::Arrival,
    metrics,
    pull::{Command, Input, Pull, Reading, Times},
    settler::Order,
    term::Term,
    topics::Topics,
};
use crate::{
    Result, Verdict,
    nats::{
        envelope::{self, Fields},
        shared::Shared,
    },
};
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};
use wh_nats::{ConsumerInfo, Delivered, Pulled, Puller, State};
use wh_types::Mono;

/// Messages taken in one turn of the loop.
const TURN: usize = 256;
/// How often a unit looks for room that other units of the process have to make.
const STARVED: Duration = Duration::from_millis(20);
/// How often gauges are set and the queue's blocks are looked at.
const UPKEEP: Duration = Duration::from_secs(1);

/// What a feed asks of its loop. Its channel's end: the feed was dropped.
#[derive(Debug)]
pub(super) enum Control {
    Halt(oneshot::Sender<()>),
    Release(oneshot::Sender<Result<()>>),
}

/// What came of something the loop asked for.
pub(super) enum Answer {
    Read(std::result::Result<Reading, wh_nats::Error>),
    Reset(std::result::Result<ConsumerInfo, wh_nats::Error>),
    /// An unreadable block is in the dead letters.
    Parked(u64),
}

pub(super) struct Runner {
    pub(super) shared: Arc<Shared>,
    pub(super) term: Arc<Term>,
    pub(super) stream: String,
    pub(super) durable: String,
    /// When the durable was made that the term began with.
    pub(super) created: String,
    pub(super) times: Times,
    pub(super) puller: Puller,
    pub(super) pull: Pull,
    pub(super) control: mpsc::UnboundedReceiver<Control>,
    pub(super) settler: JoinHandle<()>,
    pub(super) link: watch::Receiver<State>,
    pub(super) asks: FuturesUnordered<BoxFuture<'static, Answer>>,
    pub(super) commands: Vec<Command>,
    /// Bytes that the outstanding pull may bring.
    pub(super) reserved: usize,
    pub(super) starved: bool,
    /// Acks may have been lost with a connection or a leader: they are sent again once the durable answers.
    pub(super) ack_again: bool,
    pub(super) upkeep: Mono,
    /// When the last pull went out that had no pin, until a block tells which pin it took.
    pub(super) unpinned: Option<Mono>,
    /// The last block that came, by its sequence in the stream.
    pub(super) place: u64,
    /// The tables of blocks lately.
    pub(super) topics: Topics,
    pub(super) halted: bool,
    pub(super) halting: Vec<oneshot::Sender<()>>,
    pub(super) releasing: Option<oneshot::Sender<Result<()>>>,
}

/// Whatever ends the loop, the feed hears of it.
struct Ending(Arc<Shared>, Arc<Term>);

impl Drop for Ending {
    fn drop(&mut self) {
        let Self(shared, term) = self;
        term.lock().taking = false;
        term.deliver.notify_one();
        term.ended.give();
        shared.units.set_stalled(term.unit, false);
        metrics::held(term.unit, 0, 0, 0.0);
        metrics::progress(term.unit, true);
    }
}

impl Runner {
    pub(super) async fn run(mut self) {
        let ending = Ending(self.shared.clone(), self.term.clone());
        let alarm = tokio::time::sleep_until(self.now());
        tokio::pin!(alarm);
        loop {
            self.turn();
            while !self.commands.is_empty() {
                self.act().await;
                self.turn();
            }
            if self.halted && self.releasing.is_some() {
                break self.release().await;
            }
            let now = self.now();
            let mut timer = self.pull.next_timer(now).min(self.upkeep);
            if self.starved {
                timer = timer.min(now + STARVED);
            }
            let lapse = self.term.lock().desk.next_lapse();
            let timer = lapse.map_or(timer, |lapse| timer.min(lapse));
            // one that rings too early does no harm, and to set it costs more than a turn
            if alarm.is_elapsed() || timer < alarm.deadline() {
                alarm.as_mut().reset(timer);
            }
            let shared = self.shared.clone();
            let term = self.term.clone();
            tokio::select! {
                biased;
                () = shared.stop.wait() => break self.close().await,
                control = self.control.recv() => match control {
                    Some(Control::Halt(done)) if self.halted => { done.send(()).ok(); }
                    Some(Control::Halt(done)) => {
                        self.halting.push(done);
                        self.step(Input::Halt);
                    }
                    Some(Control::Release(done)) => {
                        self.releasing = Some(done);
                        self.step(Input::Halt);
                    }
                    // a crash of its owner: nothing is given back
                    None => break self.abandon().await,
                },
                Some(answer) = self.asks.next() => self.answer(answer),
                pulled = self.puller.next() => {
                    let Some(pulled) = pulled else { break };
                    self.pulled(pulled);
                    self.take_all();
                }
                changed = self.link.changed() => {
                    if changed.is_err() || self.link.borrow_and_update().closed {
                        break;
                    }
                    if !self.link.borrow().connected {
                        self.step(Input::Link(false));
                    }
                }
                () = term.act.notified() => {}
                () = &mut alarm => {}
            }
        }
        drop(ending);
    }

    pub(super) fn now(&self) -> Mono {
        self.shared.clock().now()
    }

    pub(super) fn step(&mut self, input: Input) {
        let now = self.now();
        self.pull.step(now, input, &mut self.commands);
    }

    /// What time and settling changed.
    fn turn(&mut self) {
        let now = self.now();
        let units = &self.shared.units;
        if !self.pull.is_asking() && self.reserved > 0 {
            units.count(std::mem::take(&mut self.reserved), 0);
        }
        let process = self.shared.options.held_bytes.saturating_sub(units.bytes());
        let mut inner = self.term.lock();
        let lapsed = inner.desk.lapse(now);
        if lapsed > 0 {
            inner.account(units);
            metrics::lapsed(lapsed);
        }
        let (room, unbounded) = (inner.desk.room(process), inner.desk.room(usize::MAX));
        if now >= self.upkeep {
            self.upkeep = now + UPKEEP;
            let held = inner.desk.held();
            let ratio = ratio(inner.desk.unsettled(), self.times.max_unsettled);
            metrics::held(self.term.unit, held.rows, inner.desk.bytes(), ratio);
            let waiting = inner.desk.waiting_long(now);
            if !waiting.is_empty() {
                inner.order(Order::quiet(Verdict::InProgress, waiting));
            }
        }
        drop(inner);
        if lapsed > 0 {
            // what did not fit may fit now
            self.term.deliver.notify_one();
        }
        self.starved = room == 0 && unbounded > 0;
        self.pull.step(now, Input::Room(u32::try_from(room).unwrap_or(u32::MAX)), &mut self.commands);
    }

    /// What is there already, without another turn for each.
    fn take_all(&mut self) {
        for _ in 0..TURN {
            if !self.commands.is_empty() {
                break;
            }
            match self.puller.next().now_or_never() {
                Some(Some(pulled)) => self.pulled(pulled),
                _ => break,
            }
        }
        self.term.deliver.notify_one();
    }

    pub(super) fn pulled(&mut self, pulled: Pulled) {
        match pulled {
            Pulled::Delivered(delivered) => {
                (self.unpinned, self.place) = (None, delivered.stream_seq);
                let (now, pin) = (self.now(), delivered.pin.clone());
                self.pull.step(now, Input::Block { sequence: delivered.consumer_seq, pin }, &mut self.commands);
                let at = self.commands.iter().position(|c| matches!(c, Command::Take | Command::Drop));
                if at.map(|at| self.commands.remove(at)) == Some(Command::Take) {
                    self.take(now, delivered);
                }
            }
            Pulled::Status { n, status } => self.step(Input::Status { number: n, status }),
            Pulled::Renewed(status) => self.step(Input::Renewed(status)),
            Pulled::Reconnected { .. } => {
                self.ack_again = true;
                self.step(Input::Link(false));
                self.step(Input::Link(true));
            }
            _ => {}
        }
    }

    fn take(&mut self, now: Mono, delivered: Delivered) {
        let Delivered { message, reply, stream_seq: sequence, .. } = delivered;
        let tail = self.shared.ingest_tail(message.subject()).unwrap_or_default();
        let fields = Fields::of(message.headers_first());
        let read = self.topics.of(tail).and_then(|key| envelope::decode(key, &fields, message.body().clone()));
        let probe = read.as_ref().is_ok_and(|block| block.rows == 0);
        let (block, problem) = match read {
            Ok(block) => (Some(block), None),
            Err(problem) => (None, Some(problem)),
        };
        let mut inner = self.term.lock();
        if inner.pin.as_ref() != self.pull.pin() {
            inner.pin = self.pull.pin().cloned();
        }
        let arrival = inner.desk.arrive(now, sequence, reply, block);
        let (mut park, mut other) = (false, false);
        match arrival {
            Arrival::Queued if probe => {
                // it only marks an id (decision D4)
                if let super::desk::Outcome::Send(sequence, reply) = inner.desk.acked(sequence) {
                    inner.order(Order::quiet(Verdict::Ack, vec![(sequence, reply)]));
                }
            }
            Arrival::Queued => park = problem.is_some(),
            Arrival::Copy => metrics::copy("lent its reply"),
            Arrival::Settled => {
                metrics::copy("acked again");
                let reply = inner.desk.reply(sequence).map(|reply| (sequence, reply));
                inner.order(Order::quiet(Verdict::Ack, reply.into_iter().collect()));
            }
            Arrival::Other => other = true,
            Arrival::TooEarly(delay) => {
                metrics::copy("sent back");
                let reply = inner.desk.reply(sequence).map(|reply| (sequence, reply));
                inner.order(Order::quiet(Verdict::Nak { delay }, reply.into_iter().collect()));
            }
        }
        inner.account(&self.shared.units);
        drop(inner);
        if other {
            self.step(Input::Replaced);
        }
        if let Some(problem) = problem.filter(|_| park) {
            self.park(sequence, &message, problem.to_string());
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
