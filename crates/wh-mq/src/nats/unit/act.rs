//! What the loop does for its machine, and what it makes of the answers.

use super::{
    metrics,
    pull::{Command, End, Event, Input, Reading, Times},
    reading::read,
    run::{Answer, Runner},
    settler::Order,
};
use crate::{Error, Kind, Verdict, nats::Fault};
use futures::FutureExt as _;
use wh_nats::PullRequest;

impl Runner {
    pub(super) async fn act(&mut self) {
        for command in std::mem::take(&mut self.commands) {
            match command {
                Command::Pull { blocks, pin } => {
                    let Times { expires, heartbeat, .. } = self.times;
                    let request = PullRequest { batch: blocks, expires, idle_heartbeat: heartbeat, pin };
                    self.unpinned = request.pin.is_none().then(|| self.now());
                    let sent = self.puller.pull(&request).await;
                    metrics::pulled();
                    let guess = self.term.lock().desk.guess(blocks as usize);
                    self.shared.units.count(std::mem::replace(&mut self.reserved, guess), guess);
                    self.step(sent.map_or(Input::NotSent, Input::Sent));
                }
                Command::Renew(pin) => {
                    metrics::renewed();
                    // one that cannot be sent is missed by the clock, and the link tells why
                    self.puller.renew(&pin).await.ok();
                }
                Command::Read => {
                    let (api, stream, durable) =
                        (self.shared.connection.api(), self.stream.clone(), self.durable.clone());
                    self.asks.push(async move { Answer::Read(read(&api, &stream, &durable).await) }.boxed());
                }
                Command::Reset => {
                    metrics::reset("gap");
                    self.term.lock().desk.reset();
                    let (api, stream, durable) =
                        (self.shared.connection.api(), self.stream.clone(), self.durable.clone());
                    self.asks.push(async move { Answer::Reset(api.reset(&stream, &durable).await) }.boxed());
                }
                Command::Drain => {
                    while let Some(Some(pulled)) = self.puller.next().now_or_never() {
                        self.pulled(pulled);
                    }
                    self.puller.stop_pulling().await;
                }
                Command::Halted => self.halted(),
                Command::Progress(moves) => {
                    let unit = self.term.unit;
                    metrics::progress(unit, moves);
                    self.shared.units.set_stalled(unit, !moves);
                    if !moves {
                        tracing::error!(%unit, "unit {unit} has blocks and none is delivered");
                    }
                }
                Command::End(end) => self.end(&end),
                Command::Note(event) => self.note(&event),
                // these belong to a block, and were taken with it
                Command::Take | Command::Drop => {}
            }
        }
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Read(Ok(reading)) => {
                if reading.created != self.created {
                    return self.step(Input::Replaced);
                }
                let ours = self.acks_known(&reading);
                self.step(Input::Read { reading, ours });
            }
            Answer::Read(Err(error)) if error.is_gone() => self.step(Input::Missing),
            Answer::Read(Err(error)) => {
                tracing::debug!(unit = %self.term.unit, %error, "durable of unit {} could not be read", self.term.unit);
                self.step(Input::Unread);
            }
            Answer::Reset(outcome) => {
                if let Err(error) = &outcome {
                    tracing::warn!(unit = %self.term.unit, %error, "unit {} could not be reset, retrying", self.term.unit);
                }
                self.step(Input::Reset(outcome.is_ok()));
            }
            Answer::Parked(sequence) => {
                let mut inner = self.term.lock();
                if let super::desk::Outcome::Send(sequence, reply) = inner.desk.acked(sequence) {
                    inner.order(Order::quiet(Verdict::Ack, vec![(sequence, reply)]));
                }
            }
        }
    }

    /// Sends acks again that may be lost. Gives how many blocks the server may still count as unsettled for us.
    fn acks_known(&mut self, reading: &Reading) -> u64 {
        let forgotten = reading.delivered < self.pull.seen();
        let mut inner = self.term.lock();
        if forgotten {
            // to the server these deliveries never were: as after a reset, they are settled when they come again
            inner.desk.reset();
        }
        if std::mem::take(&mut self.ack_again) {
            let unconfirmed = inner.desk.unconfirmed();
            if !unconfirmed.is_empty() {
                inner.order(Order::again(unconfirmed));
            }
        } else if !forgotten && reading.unsettled == 0 && reading.pending == 0 {
            // not believed of a leader that is new: it may not know all yet
            inner.desk.all_confirmed();
        }
        inner.desk.unsettled()
    }

    fn halted(&mut self) {
        self.halted = true;
        self.term.lock().taking = false;
        self.term.deliver.notify_one();
        for done in self.halting.drain(..) {
            // a halt that was given up has halted all the same
            done.send(()).ok();
        }
    }

    fn end(&mut self, end: &End) {
        let (unit, durable) = (self.term.unit, format!("{}/{}", self.stream, self.durable));
        let kind = match end {
            End::Gone => {
                self.shared.faults.note(Fault::Gone { object: durable.clone() });
                Kind::NotFound(format!("durable {durable}").into())
            }
            End::Refused(reason) => {
                self.shared.faults.note(Fault::Drifted { object: durable.clone(), reason: reason.clone() });
                Kind::Denied(format!("{durable}: {reason}").into())
            }
        };
        tracing::error!(%unit, durable, ?end, "delivery of unit {unit} ended");
        self.term.lock().failure = Some(Error::new("deliver", kind));
        self.halted();
    }

    fn note(&mut self, event: &Event) {
        let unit = self.term.unit;
        metrics::event(event);
        self.ack_again |= matches!(event, Event::LeaderChanged | Event::PinLost | Event::Silent);
        match event {
            Event::Pinned => tracing::info!(%unit, "unit {unit} is pinned to this process"),
            Event::PinLost => tracing::warn!(%unit, "unit {unit} lost its pin"),
            Event::Gap { seen } => {
                tracing::warn!(%unit, seen, "deliveries of unit {unit} after number {seen} were lost, resetting");
            }
            Event::LeaderChanged => tracing::debug!(%unit, "the durable of unit {unit} has another leader"),
            Event::Silent => tracing::warn!(%unit, "nobody answers for the pull of unit {unit}"),
            Event::Cut { times } => tracing::error!(
                %unit, times, stream = self.stream, after = self.place,
                "the connection broke {times} times in a row with what unit {unit} is sent after message {} of {}: most \
                 likely a message whose headers no client can parse (see `Who may publish` in docs/operations/nats.md); \
                 the unit asks for it again, less and less often",
                self.place, self.stream
            ),
            Event::Limited(text) => tracing::warn!(%unit, text, "a pull of unit {unit} was refused: {text}"),
        }
    }
}
