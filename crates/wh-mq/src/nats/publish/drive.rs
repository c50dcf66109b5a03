//! Sends the messages of one lane until each has its outcome or the budget is spent.

use super::{
    lane::{Answer, Lane, Place},
    meters,
};
use crate::{
    Error, Kind, Result,
    nats::{error, fault::Fault, shared::Shared},
};
use bytes::Bytes;
use futures::{StreamExt as _, stream::FuturesUnordered};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Semaphore, SemaphorePermit};
use wh_nats::{Headers, Publisher, err_code};
use wh_types::{Backoff, Mono};

/// Bytes on their way and not answered, over all calls, in units of 1 KiB: a server keeps at most 128 MiB of one stream
/// that it has not stored, and drops what comes beyond.
const ROOM: u32 = 64 * 1024;
/// Between attempts. Where nobody leads a stream the refusal comes at once, for 5 to 8 s after its leader died.
const PAUSE: Backoff = Backoff::half_jitter(Duration::from_millis(50), Duration::from_millis(500));

/// The way to the streams, shared by all calls.
#[derive(Debug)]
pub(crate) struct Publish {
    publisher: Publisher,
    window: Semaphore,
    all: u32,
    room: Semaphore,
    /// Somebody looks whether a stream that nobody answers for is there.
    looking: Arc<AtomicBool>,
}

impl Publish {
    pub(crate) fn new(publisher: Publisher, window: usize) -> Self {
        let all = u32::try_from(window.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        meters::describe();
        let (window, room) = (Semaphore::new(all as usize), Semaphore::new(ROOM as usize));
        Self { publisher, window, all, room, looking: Arc::default() }
    }

    /// Returns once nothing is on its way.
    pub(crate) async fn drained(&self) {
        // never closed, so that this only waits
        drop(self.window.acquire_many(self.all).await);
    }

    async fn permit(&self, bytes: usize) -> Option<Permit<'_>> {
        // never closed
        Some((self.window.acquire().await.ok()?, self.room.acquire_many(units(bytes)).await.ok()?))
    }

    /// The same, where nobody has to be waited for.
    fn permit_now(&self, bytes: usize) -> Option<Permit<'_>> {
        Some((self.window.try_acquire().ok()?, self.room.try_acquire_many(units(bytes)).ok()?))
    }
}

/// Room in the window, and for the bytes.
type Permit<'a> = (SemaphorePermit<'a>, SemaphorePermit<'a>);

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(ROOM).min(ROOM)
}

/// What can be sent, and sent again.
pub(crate) trait Outgoing: Send + Sync {
    fn subject(&self) -> &str;
    fn headers(&self) -> Headers;
    fn body(&self) -> &Bytes;
}

/// A message as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) subject: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Outgoing for Message {
    fn subject(&self) -> &str {
        &self.subject
    }

    fn headers(&self) -> Headers {
        self.headers.iter().map(|(name, value)| (*name, value)).collect()
    }

    fn body(&self) -> &Bytes {
        &self.body
    }
}

/// Stores messages of one stream in the order given, one outcome each.
pub(crate) async fn drive<M: Outgoing>(
    shared: &Shared,
    op: &'static str,
    stream: &str,
    messages: Vec<M>,
) -> Vec<Result<Place>> {
    let mut run = Run::new(shared, stream, Times::now(shared), messages);
    run.all().await;
    run.outcomes(op)
}

/// Stores one message. Its first attempt, which is mostly its last, goes without what keeps several in order.
pub(crate) async fn drive_one<M: Outgoing>(
    shared: &Shared,
    op: &'static str,
    stream: &str,
    message: M,
) -> Result<Place> {
    let times = Times::now(shared);
    let first = attempt(shared, times, &message).await;
    if let Some(Ok(ack)) = &first
        && *ack.stream == *stream
    {
        return Ok(Place { sequence: ack.sequence, duplicate: ack.duplicate, perhaps_own: false });
    }
    let mut run = Run::new(shared, stream, times, vec![message]);
    if let Some(answered) = first {
        run.lane.sent(0);
        run.take(0, answered);
    }
    run.all().await;
    run.outcomes(op).pop().unwrap_or_else(|| Err(Error::new(op, Kind::Bug("a message has no outcome".into()))))
}

type Answered = std::result::Result<wh_nats::PubAck, wh_nats::Error>;

/// The first attempt of a message, where it can be sent without waiting for a connection.
async fn attempt<M: Outgoing>(shared: &Shared, times: Times, message: &M) -> Option<Answered> {
    let may = || !shared.stop.given() && shared.connection.is_connected();
    if !may() {
        return None;
    }
    let (publish, bytes) = (&shared.publish, message.body().len());
    let permit = match publish.permit_now(bytes) {
        Some(permit) => permit,
        // others have the window
        None => tokio::time::timeout_at(times.deadline, publish.permit(bytes)).await.ok()??,
    };
    let left = times.left(shared).filter(|_| may())?;
    let answered = publish.publisher.publish(message.subject(), message.headers(), message.body().clone(), left).await;
    drop(permit);
    Some(answered)
}

/// What one call may take.
#[derive(Clone, Copy)]
struct Times {
    /// One attempt.
    timeout: Duration,
    /// No attempt outlasts it.
    deadline: Mono,
}

impl Times {
    fn now(shared: &Shared) -> Self {
        let timeout = shared.spec().choices().publish_timeout;
        Self { timeout, deadline: shared.clock().now() + shared.spec().publish_budget() }
    }

    /// How long an attempt that starts now may take; `None` where none may start any more.
    fn left(self, shared: &Shared) -> Option<Duration> {
        let left = self.deadline.saturating_duration_since(shared.clock().now());
        // one with hardly any time would only make an outcome unknown
        (left >= self.timeout / 5).then_some(left.min(self.timeout))
    }
}

struct Run<'a, M> {
    shared: &'a Shared,
    stream: &'a str,
    times: Times,
    lane: Lane,
    messages: Vec<M>,
    /// What the last attempt of each failed with.
    errors: Vec<Option<wh_nats::Error>>,
}

impl<'a, M: Outgoing> Run<'a, M> {
    fn new(shared: &'a Shared, stream: &'a str, times: Times, messages: Vec<M>) -> Self {
        let errors = messages.iter().map(|_| None).collect();
        Self { shared, stream, times, lane: Lane::new(messages.len()), errors, messages }
    }

    fn outcomes(self, op: &'static str) -> Vec<Result<Place>> {
        let failed = |(kind, error): (Kind, Option<wh_nats::Error>)| {
            let failed = Error::new(op, kind);
            if let Some(error) = error { failed.with_source(error) } else { failed }
        };
        let outcomes = self.lane.outcomes().into_iter().zip(self.errors);
        outcomes.map(|(outcome, error)| outcome.map_err(|kind| failed((kind, error)))).collect()
    }

    async fn all(&mut self) {
        let mut stalls = 0;
        while !self.lane.done() {
            if let Some(kind) = self.barred().await {
                self.lane.give_up(&kind);
                if kind == Kind::Unavailable {
                    self.look();
                }
                return;
            }
            self.round().await;
            if self.lane.stalled() && self.lane.settle() {
                stalls += 1;
                let pause = PAUSE.delay(stalls, self.shared.entropy());
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = self.shared.stop.wait() => {}
                }
            }
        }
    }

    /// Nobody answered for the stream: it has no leader, or it is gone, which is a fault of the topology.
    fn look(&self) {
        let looking = Arc::clone(&self.shared.publish.looking);
        if !self.shared.connection.is_connected() || looking.swap(true, Ordering::Relaxed) {
            return;
        }
        let (api, faults, stream) = (self.shared.connection.api(), self.shared.faults.clone(), self.stream.to_owned());
        drop(self.shared.tasks.spawn("publish/look", async move {
            if api.stream_state(&stream).await.is_err_and(|error| error.is_gone()) {
                faults.note(Fault::Gone { object: format!("the stream {stream}") });
            }
            looking.store(false, Ordering::Relaxed);
        }));
    }

    /// Why nothing may be sent, where that is so. A break of the connection is waited out while it is short.
    async fn barred(&self) -> Option<Kind> {
        let shared = self.shared;
        if shared.stop.given() {
            return Some(Kind::Stopping);
        }
        if self.left().is_none() {
            return Some(Kind::Unavailable);
        }
        if shared.connection.is_connected() {
            return None;
        }
        let mut watch = shared.connection.watch();
        loop {
            let (connected, since) = {
                let state = watch.borrow_and_update();
                (state.connected, state.since)
            };
            if connected {
                return None;
            }
            let until = (since + self.times.timeout).min(self.times.deadline);
            tokio::select! {
                changed = watch.changed() => if changed.is_err() { return Some(Kind::Unavailable) },
                () = tokio::time::sleep_until(until) => return Some(Kind::Unavailable),
                () = shared.stop.wait() => return Some(Kind::Stopping),
            }
        }
    }

    fn left(&self) -> Option<Duration> {
        self.times.left(self.shared)
    }

    /// Sends what may be sent, until all that was is answered.
    async fn round(&mut self) {
        let mut under_way = FuturesUnordered::new();
        loop {
            let left = self.left().filter(|_| !self.shared.stop.given());
            let next = self.lane.ready().zip(left);
            if next.is_none() && under_way.is_empty() {
                return;
            }
            let bytes = next.map_or(0, |(index, _)| self.messages[index].body().len());
            tokio::select! {
                biased;
                Some((index, answered)) = under_way.next(), if !under_way.is_empty() => self.take(index, answered),
                permit = self.shared.publish.permit(bytes), if next.is_some() => {
                    // it may have come late
                    let Some(((index, _), left)) = next.zip(self.left()) else { continue };
                    // handed over only while connected: what a client queues meanwhile would be sent at some later time
                    if !self.shared.connection.is_connected() {
                        self.lane.not_sent(index);
                        continue;
                    }
                    let message = &self.messages[index];
                    let (headers, body) = (message.headers(), message.body().clone());
                    let answer = self.shared.publish.publisher.publish(message.subject(), headers, body, left);
                    self.lane.sent(index);
                    under_way.push(async move {
                        let answered = answer.await;
                        drop(permit);
                        (index, answered)
                    });
                }
                // others have the window
                () = tokio::time::sleep_until(self.times.deadline), if next.is_some() => {}
            }
        }
    }

    fn take(&mut self, index: usize, answered: Answered) {
        let (answer, error) = match answered {
            Ok(ack) if *ack.stream != *self.stream => {
                self.shared.faults.note(Fault::AckedElsewhere {
                    subject: self.messages[index].subject().to_owned(),
                    stream: self.stream.to_owned(),
                    by: ack.stream.to_string(),
                });
                // nobody delivers it from there
                (Answer::Never(Kind::Unavailable), None)
            }
            Ok(ack) => (Answer::Stored { sequence: ack.sequence, duplicate: ack.duplicate }, None),
            Err(error) => {
                if error.is_api(err_code::OTHER_STREAM) {
                    self.shared.faults.note(Fault::AckedElsewhere {
                        subject: self.messages[index].subject().to_owned(),
                        stream: self.stream.to_owned(),
                        by: "another one, which refused it".to_owned(),
                    });
                } else if matches!(error.kind(), wh_nats::Kind::NoResponders | wh_nats::Kind::Timeout) {
                    self.shared.faults.suspect(self.stream);
                }
                (error::attempt(&error, self.stream), Some(error))
            }
        };
        if let Answer::Never(Kind::Full { .. } | Kind::NoSpace) = answer {
            crate::metrics::refused();
        }
        if let Answer::Refused | Answer::Unanswered = answer {
            meters::failed_attempt(answer == Answer::Unanswered);
        }
        self.errors[index] = error;
        self.lane.answered(index, answer);
    }
}
