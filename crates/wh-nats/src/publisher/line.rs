//! The way of published messages to the client, in the order of the calls: at once where the client takes more, and
//! through a line and its task where it does not.

use super::WINDOW;
use crate::{
    Error, Kind, Message, Result,
    connection::{Core, Replies},
};
use async_nats::{HeaderMap, Subject, message::OutboundMessage};
use bytes::Bytes;
use futures::{FutureExt as _, SinkExt as _};
use parking_lot::Mutex;
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::sync::{Notify, mpsc, oneshot};
use wh_types::Mono;

/// How often it is looked whose time is over: one timer for all.
const SWEEP: Duration = Duration::from_millis(25);
/// Messages taken from the line at once.
const TURN: usize = 64;

/// A message on its way, and who waits for its answer.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) number: u64,
    pub(super) subject: Subject,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) deadline: Mono,
    pub(super) to: oneshot::Sender<Result<Message>>,
}

/// The order of the calls.
#[derive(Debug)]
pub(super) struct Line {
    tail: mpsc::UnboundedSender<Outgoing>,
    order: Arc<Order>,
}

/// What the calls and the line's task have in common.
#[derive(Debug, Default)]
struct Order {
    front: Mutex<Front>,
    /// The task sleeps without a timer: nothing waited for an answer.
    sleeps: AtomicBool,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Front {
    /// Messages in line, also the one that is being handed over. While there are any, nothing goes past them.
    in_line: usize,
    /// A handle of the client of this generation.
    client: Option<(u64, async_nats::Client)>,
}

impl Line {
    /// An empty line, and its task.
    pub(super) fn open(core: &Arc<Core>, replies: &Arc<Replies>) -> Arc<Self> {
        let (tail, head) = mpsc::unbounded_channel();
        let order = Arc::<Order>::default();
        core.spawn("nats/publisher", write(core.clone(), replies.clone(), head, order.clone()));
        Arc::new(Self { tail, order })
    }

    /// Hands a message over, or puts it in line. False where the line has ended.
    pub(super) fn add(&self, core: &Core, replies: &Replies, outgoing: Outgoing) -> bool {
        let mut front = self.order.front.lock();
        let outgoing = if front.in_line == 0 { front.pass(core, replies, outgoing) } else { Some(outgoing) };
        if let Some(outgoing) = outgoing {
            front.in_line += 1;
            return self.tail.send(outgoing).is_ok();
        }
        drop(front);
        if self.order.sleeps.swap(false, Ordering::AcqRel) {
            self.order.wake.notify_one();
        }
        true
    }
}

impl Front {
    /// Hands a message to the client, if that takes it now. Gives it back where it has to wait, or cannot be sent at all.
    fn pass(&mut self, core: &Core, replies: &Replies, outgoing: Outgoing) -> Option<Outgoing> {
        let sound = outgoing.subject.is_valid() && outgoing.deadline > core.options.clock.now();
        let Some(slot) = core.connected(&outgoing.subject).ok().filter(|_| sound && replies.len() < WINDOW) else {
            return Some(outgoing);
        };
        let client = match &mut self.client {
            Some((generation, client)) if *generation == slot.generation => client,
            stale => &mut stale.insert((slot.generation, slot.client.clone())).1,
        };
        // what does not take it now is not waited for
        if !matches!(client.poll_ready_unpin(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(()))) {
            return Some(outgoing);
        }
        let Outgoing { number, subject, headers, body, deadline, to } = outgoing;
        if !replies.put(number, subject.clone(), deadline, to) {
            return None;
        }
        let (reply, bytes) = (Some(replies.reply(number)), body.len());
        let message = OutboundMessage { subject: subject.clone(), reply, payload: body, headers: Some(headers) };
        if let Err(cause) = client.start_send_unpin(message) {
            replies.fail(number, slot.refused(&subject, bytes, &cause));
        } else if slot.lost.given() {
            replies.fail(number, Error::new(subject.as_str(), Kind::Interrupted));
        }
        None
    }
}

/// Sends what is in line, one after another, while the window has room, and ends what had its time.
async fn write(core: Arc<Core>, replies: Arc<Replies>, mut line: mpsc::UnboundedReceiver<Outgoing>, order: Arc<Order>) {
    let mut batch = Vec::with_capacity(TURN);
    let mut swept = core.options.clock.now();
    loop {
        order.sleeps.store(true, Ordering::Release);
        let waiting = replies.len() > 0;
        tokio::select! {
            biased;
            count = line.recv_many(&mut batch, TURN) => if count == 0 { return },
            () = core.stop.wait() => return,
            () = order.wake.notified() => {}
            () = tokio::time::sleep(SWEEP), if waiting => {}
        }
        let now = core.options.clock.now();
        if now >= swept + SWEEP {
            swept = now;
            replies.expire(now);
        }
        for outgoing in batch.drain(..) {
            if replies.len() >= WINDOW {
                sweeping(&core, &replies, replies.below(WINDOW)).await;
            }
            send(&core, &replies, outgoing).await;
            order.front.lock().in_line -= 1;
        }
    }
}

/// Waits for something while others' times run out.
async fn sweeping<T>(core: &Core, replies: &Replies, wait: impl Future<Output = T>) -> T {
    let mut wait = std::pin::pin!(wait);
    if let Some(done) = wait.as_mut().now_or_never() {
        return done;
    }
    loop {
        tokio::select! {
            biased;
            done = &mut wait => return done,
            () = tokio::time::sleep(SWEEP) => replies.expire(core.options.clock.now()),
        }
    }
}

async fn send(core: &Core, replies: &Replies, outgoing: Outgoing) {
    let Outgoing { number, subject, headers, body, deadline, to } = outgoing;
    if deadline <= core.options.clock.now() {
        _ = to.send(Err(Error::new(subject.as_str(), Kind::Unsent)));
        return;
    }
    let slot = match core.connected(&subject) {
        Ok(slot) => slot,
        Err(error) => {
            _ = to.send(Err(error));
            return;
        }
    };
    // before it is sent: from here on its outcome is not known
    if !replies.put(number, subject.clone(), deadline, to) {
        return;
    }
    let sent = slot.send(subject.clone(), Some(replies.reply(number)), Some(headers), body);
    if let Err(error) = sweeping(core, replies, sent).await {
        replies.fail(number, error);
    } else if slot.lost.given() {
        replies.fail(number, Error::new(subject.as_str(), Kind::Interrupted));
    }
}
