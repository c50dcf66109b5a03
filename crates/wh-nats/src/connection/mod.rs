//! The connection: one client at a time, replaced whenever it is lost; requests, subscriptions and what is known of it.

mod core;
mod refusals;
mod replies;
mod slot;
mod state;
mod subscription;
mod supervisor;

pub(crate) use core::Core;
pub use refusals::{Refusal, Refusals};
pub(crate) use replies::{Replies, Ticket};
pub use state::State;
pub(crate) use subscription::Heard;
pub use subscription::Subscription;

use crate::{Ack, AckSubject, Api, Error, Headers, Kind, Message, Result, identity::Identity, options::Options};
use async_nats::Subject;
use bytes::Bytes;
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};

/// A connection to a NATS cluster that is made again for ever. Cloning it is cheap; it closes with its last clone.
#[derive(Clone)]
pub struct Connection(Arc<Handle>);

struct Handle(Arc<Core>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.stop.give();
    }
}

impl Connection {
    /// Starts to connect, in the background and for ever.
    ///
    /// # Errors
    /// [`Kind::Config`] where the options, or the files they name, cannot work.
    pub async fn start(options: Options) -> Result<Self> {
        let addresses = options.check()?;
        let identity = Arc::new(Identity::read(&options)?);
        let core = Core::new(options, identity);
        core.serve_replies(&core.replies).await;
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
        Ok(Subscription::bounded(core.clone(), wanted, self.clone()).await)
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

/// The answer, unless it says that nobody answers.
pub(crate) fn answered(subject: &Subject, message: Message) -> Result<Message> {
    match message.status() {
        Some((503, _)) => Err(Error::new(subject.as_str(), Kind::NoResponders)),
        _ => Ok(message),
    }
}
