//! Sends acks: plain ones at once, and of all that gathered meanwhile the last one as a request, whose answer confirms
//! the rest (barrier ack). One request is out at a time, as in a group commit.

use super::{metrics, term::Term};
use crate::{Kind, Verdict};
use futures::{FutureExt as _, future::BoxFuture};
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot};
use wh_nats::{Ack, AckSubject, Connection, Kind as Nats};

/// Before acks that were not confirmed are sent again.
const AGAIN: Duration = Duration::from_secs(1);

/// Blocks by their sequence, and where each is settled.
pub(super) type Acks = Vec<(u64, AckSubject)>;

/// Acks to send.
#[derive(Debug)]
pub(super) struct Order {
    verdict: Verdict,
    acks: Acks,
    /// They were sent before.
    again: bool,
    done: Option<oneshot::Sender<Result<(), Kind>>>,
}

impl Order {
    /// Nobody waits for it.
    pub(super) fn quiet(verdict: Verdict, acks: Acks) -> Self {
        Self { verdict, acks, again: false, done: None }
    }

    /// Acks whose fate is not known. Whether the server takes them again is not said: who was settled already, or was
    /// reset and not delivered since, gets no answer.
    pub(super) fn again(acks: Acks) -> Self {
        Self { verdict: Verdict::Ack, acks, again: true, done: None }
    }

    /// Its outcome is waited for.
    pub(super) fn new(verdict: Verdict, acks: Acks) -> (Self, oneshot::Receiver<Result<(), Kind>>) {
        let (done, outcome) = oneshot::channel();
        (Self { verdict, acks, again: false, done: Some(done) }, outcome)
    }
}

/// Acks that one request confirms.
#[derive(Debug, Default)]
struct Group {
    /// Held back so that one of them can be the request.
    last: Vec<(Ack, AckSubject)>,
    acked: Vec<u64>,
    acked_again: Vec<u64>,
    waiting: Vec<oneshot::Sender<Result<(), Kind>>>,
    /// Over which connection the first of them was sent.
    generation: u64,
}

pub(super) struct Settler {
    connection: Connection,
    term: Arc<Term>,
    timeout: Duration,
    group: Group,
    /// Acks are in doubt: they are sent again after [`AGAIN`].
    doubt: bool,
}

impl Settler {
    pub(super) fn new(connection: Connection, term: Arc<Term>, timeout: Duration) -> Self {
        Self { connection, term, timeout, group: Group::default(), doubt: false }
    }

    /// Runs until the term has ended and everything is confirmed, or given up.
    pub(super) async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let mut barrier: Option<BoxFuture<'static, Result<(), Kind>>> = None;
        let mut confirming = Group::default();
        let (mut open, mut buffer) = (true, Vec::new());
        let again = tokio::time::sleep(AGAIN);
        tokio::pin!(again);
        while open || barrier.is_some() || !self.group.last.is_empty() {
            if barrier.is_none() && !self.group.last.is_empty() {
                confirming = std::mem::take(&mut self.group);
                barrier = Some(self.barrier(&mut confirming).await);
            }
            tokio::select! {
                biased;
                count = orders.recv_many(&mut buffer, 256), if open => {
                    open = count > 0;
                    for order in buffer.drain(..) {
                        self.take(order).await;
                    }
                }
                outcome = async { match &mut barrier { Some(barrier) => barrier.await, None => Ok(()) } },
                    if barrier.is_some() => {
                    barrier = None;
                    self.finish(std::mem::take(&mut confirming), outcome);
                    again.set(tokio::time::sleep(AGAIN));
                }
                () = &mut again, if open && self.doubt => {
                    self.doubt = false;
                    again.set(tokio::time::sleep(AGAIN));
                    let acks = self.term.lock().desk.unconfirmed();
                    self.take(Order::again(acks)).await;
                }
            }
        }
    }

    async fn take(&mut self, order: Order) {
        let Order { verdict, mut acks, again, done } = order;
        let ack = ack(verdict);
        let last = if verdict == Verdict::InProgress || again { None } else { acks.pop() };
        if self.group.last.is_empty() {
            self.group.generation = self.connection.generation();
        }
        let mut outcome = Ok(());
        for (_, reply) in &acks {
            if let Err(error) = self.connection.ack(reply, ack).await {
                outcome = Err(kind(&error));
                break;
            }
        }
        self.doubt |= outcome.is_err();
        if again && outcome.is_ok() {
            self.ask_after(&acks);
        }
        let Some((sequence, reply)) = last else {
            tell(done, outcome);
            return;
        };
        if outcome.is_err() {
            metrics::unconfirmed(acks.len() as u64 + 1);
            tell(done, outcome);
            return;
        }
        if verdict == Verdict::Ack {
            self.group.acked.extend(acks.iter().map(|(sequence, _)| *sequence).chain([sequence]));
        }
        self.group.last.push((ack, reply));
        self.group.waiting.extend(done);
    }

    /// Lets the next request confirm acks that were sent again. Being kept alive is answered always, an ack only where
    /// its block is still unsettled; so the first goes to the front, where an ack that waits may be the request.
    fn ask_after(&mut self, acks: &[(u64, AckSubject)]) {
        if let Some((_, reply)) = acks.last() {
            self.group.acked_again.extend(acks.iter().map(|(sequence, _)| *sequence));
            self.group.last.insert(0, (Ack::InProgress, reply.clone()));
        }
    }

    /// Sends what was held back; the future is the request's outcome.
    async fn barrier(&self, group: &mut Group) -> BoxFuture<'static, Result<(), Kind>> {
        let Some((ack, reply)) = group.last.pop() else { return futures::future::ready(Ok(())).boxed() };
        for (ack, reply) in group.last.drain(..) {
            if let Err(error) = self.connection.ack(&reply, ack).await {
                return futures::future::ready(Err(kind(&error))).boxed();
            }
        }
        let (connection, timeout, generation) = (self.connection.clone(), self.timeout, group.generation);
        async move {
            let answer = connection.ack_confirmed(&reply, ack, timeout).await;
            answer.map_err(|error| kind(&error))?;
            // acks that went with another connection are not confirmed by this one
            if connection.generation() == generation { Ok(()) } else { Err(Kind::Unknown) }
        }
        .boxed()
    }

    fn finish(&mut self, group: Group, outcome: Result<(), Kind>) {
        match outcome {
            Ok(()) => {
                let mut inner = self.term.lock();
                inner.desk.confirmed(&group.acked);
                inner.desk.heard(&group.acked_again);
            }
            Err(_) => {
                self.doubt = true;
                metrics::unconfirmed(group.acked.len() as u64);
            }
        }
        for done in group.waiting {
            tell(Some(done), outcome.clone());
        }
    }
}

fn tell(done: Option<oneshot::Sender<Result<(), Kind>>>, outcome: Result<(), Kind>) {
    if let Some(done) = done {
        // a caller that went away has no use for it
        done.send(outcome).ok();
    }
}

fn ack(verdict: Verdict) -> Ack {
    match verdict {
        Verdict::Ack => Ack::Ack,
        Verdict::Nak { delay } if delay.is_zero() => Ack::Nak(None),
        Verdict::Nak { delay } => Ack::Nak(Some(delay)),
        Verdict::InProgress => Ack::InProgress,
    }
}

/// What an ack that failed means to its caller: whatever became of it, the block may come again, and nothing is lost.
fn kind(error: &wh_nats::Error) -> Kind {
    match error.kind() {
        Nats::Disconnected | Nats::Unsent => Kind::Unavailable,
        Nats::Closed => Kind::Stopping,
        Nats::Refused { subject } => Kind::Denied(format!("it refuses {subject}").into()),
        Nats::Interrupted
        | Nats::Timeout
        | Nats::NoResponders
        | Nats::Api(_)
        | Nats::TooLarge { .. }
        | Nats::BadAnswer(_)
        | Nats::Invalid(_)
        | Nats::Config(_)
        | _ => Kind::Unknown,
    }
}
