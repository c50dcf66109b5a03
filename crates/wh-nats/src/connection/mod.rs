//! The connection: one client at a time, replaced whenever it is lost; requests, subscriptions and what is known of it.

mod refusals;
mod replies;
mod slot;
mod state;
mod subscription;
mod supervisor;

pub use refusals::{Refusal, Refusals};
pub(crate) use replies::{Replies, Ticket};
pub(crate) use slot::Slot;
pub use state::State;
pub(crate) use subscription::Heard;
pub use subscription::Subscription;

use crate::{
    Ack, AckSubject, Api, Error, Headers, Kind, Message, Result, Version, identity::Identity, options::Options,
};
use arc_swap::ArcSwapOption;
use async_nats::{HeaderMap, Subject, client::traits::Publisher as _, message::OutboundMessage};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    fmt,
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};
use subscription::Wishes;
use tokio::sync::{mpsc, watch};
use wh_types::{Stop, Tasks};

/// A connection to a NATS cluster that is made again for ever. Cloning it is cheap; it closes with its last clone.
#[derive(Clone)]
pub struct Connection(Arc<Handle>);

struct Handle(Arc<Core>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.stop.give();
    }
}

/// What the tasks and the handles share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) identity: Arc<Identity>,
    pub(crate) slot: ArcSwapOption<Slot>,
    pub(crate) state: watch::Sender<State>,
    pub(crate) stop: Stop,
    refusals: Refusals,
    wishes: Wishes,
    replies: Arc<Replies>,
    all_replies: Mutex<Vec<Weak<Replies>>>,
    /// The generation that should be replaced, and whether its server is leaving.
    leave: watch::Sender<(u64, bool)>,
    tasks: Tasks,
}

impl Connection {
    /// Starts to connect, in the background and for ever.
    ///
    /// # Errors
    /// [`Kind::Config`] where the options, or the files they name, cannot work.
    pub async fn start(options: Options) -> Result<Self> {
        let addresses = options.check()?;
        let identity = Arc::new(Identity::read(&options)?);
        let now = options.clock.now();
        let replies = Replies::new(&inbox(&options));
        let core = Arc::new(Core {
            identity,
            slot: ArcSwapOption::empty(),
            state: watch::Sender::new(State::new(now)),
            stop: Stop::new(),
            refusals: Refusals::new(),
            wishes: Wishes::default(),
            all_replies: Mutex::new(vec![Arc::downgrade(&replies)]),
            replies: replies.clone(),
            leave: watch::Sender::new((0, false)),
            tasks: Tasks::new(),
            options,
        });
        core.serve_replies(&replies).await;
        core.tasks.spawn("nats/connection", supervisor::run(core.clone(), addresses));
        core.tasks.spawn("nats/identity", crate::identity::watch(core.clone()));
        Ok(Self(Arc::new(Handle(core))))
    }

    /// Connects. Returns once a server is connected.
    ///
    /// # Errors
    /// [`Kind::Config`], or [`Kind::Disconnected`] when no server could be connected to within
    /// [`Options::connect_timeout`]; its text says why the last attempt failed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn open(options: Options) -> Result<Self> {
        let time = options.connect_timeout;
        let connection = Self::start(options).await?;
        if connection.connected(time).await {
            return Ok(connection);
        }
        let state = connection.state();
        connection.close().await;
        let urls: Vec<_> = connection.core().options.urls.iter().map(|url| crate::masked(url)).collect();
        let error = Error::new(urls.join(", "), Kind::Disconnected);
        Err(match state.last_error {
            Some(last) => error.caused(last),
            None => error,
        })
    }

    /// Waits until it is connected. False when the time has run out, or the connection was closed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn connected(&self, time: Duration) -> bool {
        let mut state = self.watch();
        let up = state.wait_for(|state| state.connected || state.closed);
        matches!(tokio::time::timeout(time, up).await, Ok(Ok(state)) if state.connected)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.0
    }

    /// The state now.
    #[must_use]
    pub fn state(&self) -> State {
        self.core().state.borrow().clone()
    }

    /// The state, to be watched.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<State> {
        self.core().state.subscribe()
    }

    /// Whether a server is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.core().slot.load().as_ref().is_some_and(|slot| !slot.lost.given())
    }

    /// How often a connection was made.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.core().generation()
    }

    /// The most bytes of headers and body in one message, as the server last connected said.
    #[must_use]
    pub fn max_payload(&self) -> usize {
        const NATS_DEFAULT: usize = 1024 * 1024;
        self.core().slot.load().as_ref().map_or(NATS_DEFAULT, |slot| slot.client.max_payload())
    }

    /// Subjects that the server refused to us.
    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        &self.core().refusals
    }

    /// The options it was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.core().options
    }

    /// A subject of the JetStream API, in the form that the domain demands.
    #[must_use]
    pub fn api_subject(&self, tail: &str) -> String {
        match &self.core().options.js_domain {
            Some(domain) => format!("$JS.{domain}.API.{tail}"),
            None => format!("$JS.API.{tail}"),
        }
    }

    /// The JetStream API.
    #[must_use]
    pub fn api(&self) -> Api {
        Api::new(self.clone())
    }

    /// A fresh subject for answers.
    #[must_use]
    pub fn inbox(&self) -> String {
        self.core().inbox()
    }

    /// Hands a message to the connection. Nothing says whether it arrives.
    ///
    /// # Errors
    /// [`Kind::Disconnected`], [`Kind::TooLarge`], [`Kind::Invalid`] for a subject that is none.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn send(&self, subject: &str, reply: Option<&str>, headers: Option<Headers>, body: Bytes) -> Result<()> {
        let reply = reply.map(Subject::from);
        let slot = self.core().connected(subject)?;
        slot.send(Subject::from(subject), reply, headers.map(Headers::into_map), body).await
    }

    /// Sends a request and waits for its one answer. A refusal or a break ends the wait at once.
    ///
    /// # Errors
    /// [`Kind::NoResponders`], [`Kind::Refused`], [`Kind::Timeout`], [`Kind::Interrupted`], and those of [`Self::send`].
    ///
    /// # Cancel safety
    /// Detached: the server may still do it.
    pub async fn request(
        &self,
        subject: &str,
        headers: Option<Headers>,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Message> {
        self.request_subject(Subject::from(subject), headers, body, timeout).await
    }

    pub(crate) async fn request_subject(
        &self,
        subject: Subject,
        headers: Option<Headers>,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Message> {
        let core = self.core();
        let slot = core.connected(&subject)?;
        let (ticket, answer) = core.replies.one(subject.clone());
        let mut sent = false;
        let exchange = async {
            slot.send(subject.clone(), Some(ticket.reply()), headers.map(Headers::into_map), body).await?;
            sent = true;
            if slot.lost.given() {
                return Err(Error::new(subject.as_str(), Kind::Interrupted));
            }
            answer.await.unwrap_or_else(|_| Err(Error::new(subject.as_str(), Kind::Interrupted)))
        };
        let answer = tokio::time::timeout(timeout, exchange).await;
        let message = answer
            .unwrap_or_else(|_| Err(Error::new(subject.as_str(), if sent { Kind::Timeout } else { Kind::Unsent })))?;
        answered(&subject, message)
    }

    /// Sends a request that has many answers; they come until the ticket is dropped.
    pub(crate) async fn request_many(
        &self,
        subject: &str,
        body: Bytes,
    ) -> Result<(Ticket, mpsc::UnboundedReceiver<Result<Message>>)> {
        let core = self.core();
        let slot = core.connected(subject)?;
        let subject = Subject::from(subject);
        let (ticket, answers) = core.replies.many(subject.clone());
        slot.send(subject.clone(), Some(ticket.reply()), None, body).await?;
        if slot.lost.given() {
            return Err(Error::new(subject.as_str(), Kind::Interrupted));
        }
        Ok((ticket, answers))
    }

    /// Subscribes to a subject, on this and on every later connection. It may be called while nothing is connected.
    /// Whether the server allows it is not known at once: see [`Self::refusals`].
    ///
    /// # Errors
    /// [`Kind::Invalid`] for a subject that is none, [`Kind::Closed`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn subscribe(&self, subject: &str) -> Result<Subscription> {
        let core = self.core();
        let wanted = Subject::from(subject);
        if !wanted.is_valid() {
            return Err(Error::new(subject, Kind::Invalid("not a subject".into())));
        }
        if core.stop.given() {
            return Err(Error::new(subject, Kind::Closed));
        }
        Ok(Subscription::new(core.clone(), wanted, Some(self.clone())).await)
    }

    /// Returns once everything sent before has reached the server, and what the server had sent us before its answer
    /// has reached our subscriptions' queues.
    ///
    /// # Errors
    /// As [`Self::request`]; a refusal and missing responders are answers, too.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn round_trip(&self) -> Result<()> {
        let answer = self.request(&self.api_subject("INFO"), None, Bytes::new(), self.options().request_timeout).await;
        match answer {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), Kind::Refused { .. } | Kind::NoResponders) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Settles a delivered message, unconfirmed: lost with the server's process.
    ///
    /// # Errors
    /// As [`Self::send`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn ack(&self, to: &AckSubject, ack: Ack) -> Result<()> {
        let slot = self.core().connected(to.as_str())?;
        slot.send(to.subject().clone(), None, None, ack.body()).await
    }

    /// Settles a delivered message and waits until the server says so. On one connection this confirms every ack that
    /// was sent before.
    ///
    /// # Errors
    /// As [`Self::request`]. A timeout is also what an ack gets that the server no longer knows.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn ack_confirmed(&self, to: &AckSubject, ack: Ack, timeout: Duration) -> Result<()> {
        self.request_subject(to.subject().clone(), None, ack.body(), timeout).await.map(|_| ())
    }

    /// Replaces the client by another that is made beside it, with the credentials as they are now.
    pub fn renew(&self) {
        self.core().replace(self.generation());
    }

    /// Closes it, after what was sent has been written. Every subscription ends.
    ///
    /// # Cancel safety
    /// Detached: it closes in any case.
    pub async fn close(&self) {
        self.core().stop.give();
        self.core().tasks.wait().await;
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.core().state.borrow();
        let mut shown = f.debug_struct("Connection");
        shown.field("name", &self.core().options.name).field("connected", &state.connected);
        shown.field("generation", &state.generation).finish_non_exhaustive()
    }
}

impl Slot {
    /// Hands a message to the client.
    pub(crate) async fn send(
        &self,
        subject: Subject,
        reply: Option<Subject>,
        headers: Option<HeaderMap>,
        payload: Bytes,
    ) -> Result<()> {
        use async_nats::client::PublishErrorKind as Vendor;
        let shown = subject.clone();
        let bytes = payload.len();
        let message = OutboundMessage { subject, reply, payload, headers };
        self.client.publish_message(message).await.map_err(|cause| {
            let kind = match cause.kind() {
                Vendor::MaxPayloadExceeded => Kind::TooLarge { bytes, limit: self.client.max_payload() },
                Vendor::InvalidSubject => Kind::Invalid("not a subject".into()),
                Vendor::Send => Kind::Disconnected,
            };
            Error::new(shown.as_str(), kind)
        })
    }
}

/// The answer, unless it says that nobody answers.
pub(crate) fn answered(subject: &Subject, message: Message) -> Result<Message> {
    match message.status() {
        Some((503, _)) => Err(Error::new(subject.as_str(), Kind::NoResponders)),
        _ => Ok(message),
    }
}

fn inbox(options: &Options) -> String {
    let (a, b) = (options.entropy.next_u64(), options.entropy.next_u64());
    format!("{}.{a:016x}{b:016x}", options.inbox_prefix)
}

impl Core {
    pub(crate) fn inbox(&self) -> String {
        inbox(&self.options)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.state.borrow().generation
    }

    fn server(&self) -> Option<String> {
        self.state.borrow().server.clone()
    }

    /// The client in use.
    pub(crate) fn connected(&self, op: &str) -> Result<Arc<Slot>> {
        match self.slot.load_full() {
            Some(slot) if !slot.lost.given() => Ok(slot),
            _ if self.stop.given() => Err(Error::new(op, Kind::Closed)),
            _ => Err(Error::new(op, Kind::Disconnected)),
        }
    }

    /// Starts to serve an inbox of answers.
    pub(crate) async fn serve_replies(self: &Arc<Self>, replies: &Arc<Replies>) {
        let mut subscription = Subscription::new(self.clone(), replies.pattern().into(), None).await;
        let (unused, replies) = (replies.unused(), Arc::downgrade(replies));
        self.tasks.spawn("nats/replies", async move {
            loop {
                let message = tokio::select! {
                    biased;
                    message = subscription.next() => message,
                    () = unused.wait() => return,
                };
                let (Some(message), Some(replies)) = (message, replies.upgrade()) else { return };
                replies.deliver(message);
            }
        });
    }

    /// Registers an inbox of answers beside the connection's own.
    pub(crate) async fn add_replies(self: &Arc<Self>) -> Arc<Replies> {
        let replies = Replies::new(&self.inbox());
        self.serve_replies(&replies).await;
        let mut all = self.all_replies.lock();
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&replies));
        replies
    }

    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, name: &'static str, task: F) {
        self.tasks.spawn(name, task);
    }

    fn each_replies(&self, act: impl Fn(&Replies)) {
        let all: Vec<_> = self.all_replies.lock().iter().filter_map(Weak::upgrade).collect();
        for replies in all {
            act(&replies);
        }
    }

    /// A client is connected: every subscription moves to it, then the world is told.
    async fn up(&self, slot: &Arc<Slot>, server: String, version: Version) -> bool {
        if !self.wishes.ensure(slot).await {
            return false;
        }
        self.slot.store(Some(slot.clone()));
        // those that came between
        if !self.wishes.ensure(slot).await {
            return false;
        }
        let now = self.options.clock.now();
        self.state.send_modify(|state| state.up(now, slot.generation, server, version));
        true
    }

    /// No client is connected.
    fn down(&self, why: &str) {
        self.slot.store(None);
        let now = self.options.clock.now();
        self.state.send_modify(|state| state.down(now, why.to_owned()));
        self.each_replies(|replies| replies.interrupt(&Kind::Interrupted));
    }

    /// A better connection could not be made.
    fn failed(&self, why: String) {
        self.state.send_modify(|state| state.last_error = Some(why));
    }

    /// Changed files of credentials or certificates were taken, or cannot be.
    pub(crate) fn files(&self, taken: Result<(), String>) {
        self.state.send_modify(|state| match taken {
            Ok(()) => (state.files_taken, state.files_error) = (state.files_taken + 1, None),
            Err(error) => state.files_error = Some(error),
        });
    }

    fn closed(&self) {
        self.state.send_modify(|state| state.closed = true);
        self.each_replies(|replies| replies.interrupt(&Kind::Closed));
        self.wishes.clear();
    }

    /// The server said something that belongs to no message.
    fn said(&self, text: &str) {
        let text = text.strip_prefix("nats: ").unwrap_or(text);
        match refusals::read(text) {
            Some((subscription, subject)) => {
                self.refusals.note(subscription, subject);
                if !subscription {
                    self.each_replies(|replies| replies.refuse(subject));
                }
            }
            None => tracing::warn!(text, "the NATS server reports an error"),
        }
    }

    /// The server of this generation will leave soon.
    fn leave(&self, generation: u64) {
        self.leave.send_replace((generation, true));
    }

    /// The client of this generation is to be replaced.
    pub(crate) fn replace(&self, generation: u64) {
        self.leave.send_replace((generation, false));
    }

    /// Waits until the client of this generation is to be replaced; says whether its server leaves.
    async fn wait_leave(&self, generation: u64) -> bool {
        let mut leave = self.leave.subscribe();
        let found = leave.wait_for(|(which, _)| *which >= generation).await.map(|found| found.1);
        match found {
            Ok(leaving) => leaving,
            Err(_) => std::future::pending().await,
        }
    }
}
