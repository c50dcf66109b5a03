//! Subscriptions that outlive the client they were made on.

use super::{Connection, Core, slot::Slot};
use crate::Message;
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::mpsc;

/// Messages of one subject, over reconnects. What is published while nothing is connected is not received. Nor is what
/// came faster than it was read and does not fit into [`Options::subscription_capacity`](crate::Options) and
/// `subscription_bytes`: it is dropped and counted in [`State::slow_consumers`](crate::State).
#[derive(Debug)]
pub struct Subscription {
    wanted: Arc<Wanted>,
    feed: mpsc::UnboundedReceiver<Fed>,
    current: Option<async_nats::Subscriber>,
    /// What came before the reader took it.
    backlog: Option<Backlog>,
    generation: u64,
    core: Arc<Core>,
    /// Keeps the connection's tasks alive; what these tasks themselves subscribe to must not.
    _keep: Option<Connection>,
}

/// Messages in the order they came, bounded by bytes.
#[derive(Debug)]
struct Backlog {
    messages: VecDeque<Message>,
    bytes: usize,
    most: usize,
}

impl Backlog {
    fn new(most: usize) -> Self {
        Self { messages: VecDeque::new(), bytes: 0, most }
    }

    /// Keeps a message. False where it does not fit and is dropped. One alone fits always.
    fn push(&mut self, message: Message) -> bool {
        let bytes = cost(&message);
        let fits = self.messages.is_empty() || self.bytes + bytes <= self.most;
        if fits {
            self.bytes += bytes;
            self.messages.push_back(message);
        }
        fits
    }

    fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= cost(&message);
        Some(message)
    }
}

fn cost(message: &Message) -> usize {
    message.wire_len() + Subscription::OVERHEAD
}

/// What a subscription tells.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A message.
    Message(Message),
    /// It is live on another connection now; all that follows came over this one.
    Connected(u64),
}

#[derive(Debug)]
struct Fed {
    subscriber: async_nats::Subscriber,
    generation: u64,
}

/// A subject that is to be subscribed to on every client.
#[derive(Debug)]
struct Wanted {
    id: u64,
    subject: async_nats::Subject,
    /// Whether each connection has a subject of its own: this one, the connection's number, one token more.
    numbered: bool,
    feed: mpsc::UnboundedSender<Fed>,
    /// The last generation it was subscribed on.
    on: AtomicU64,
}

/// All that is wanted.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    next: AtomicU64,
    all: Mutex<HashMap<u64, Arc<Wanted>>>,
}

impl Wishes {
    /// Subscribes everything on a client, if it is not there already. False when the client is lost.
    pub(super) async fn ensure(&self, slot: &Slot) -> bool {
        let all: Vec<_> = self.all.lock().values().cloned().collect();
        for wanted in all {
            if !wanted.ensure(slot).await {
                return false;
            }
        }
        true
    }

    /// Ends every subscription.
    pub(super) fn clear(&self) {
        self.all.lock().clear();
    }
}

impl Wanted {
    async fn ensure(&self, slot: &Slot) -> bool {
        if self.on.fetch_max(slot.generation, Ordering::AcqRel) >= slot.generation {
            return true;
        }
        let subject = match self.numbered {
            true => format!("{}.{}.*", self.subject, slot.generation).into(),
            false => self.subject.clone(),
        };
        match slot.client.subscribe(subject).await {
            Ok(subscriber) => {
                _ = self.feed.send(Fed { subscriber, generation: slot.generation });
                true
            }
            Err(_) => false,
        }
    }
}

impl Subscription {
    /// Bytes that a message which waits for its reader is counted with besides its own.
    pub const OVERHEAD: usize = 512;

    /// One whose reader takes what comes at once.
    pub(super) async fn new(core: Arc<Core>, subject: async_nats::Subject, keep: Option<Connection>) -> Self {
        Self::wanted(core, subject, false, keep).await
    }

    /// One that keeps so many bytes for its reader.
    pub(super) async fn bounded(core: Arc<Core>, subject: async_nats::Subject, keep: Connection) -> Self {
        let most = core.options.subscription_bytes;
        let mut this = Self::wanted(core, subject, false, Some(keep)).await;
        this.backlog = Some(Backlog::new(most));
        this
    }

    /// An inbox of many answers that is another on each connection, so that what was asked for over one never comes over
    /// the next: `<inbox>.<generation>.*`.
    pub(crate) async fn numbered(connection: &Connection, inbox: &str) -> Self {
        Self::wanted(connection.core().clone(), inbox.into(), true, Some(connection.clone())).await
    }

    async fn wanted(core: Arc<Core>, subject: async_nats::Subject, numbered: bool, keep: Option<Connection>) -> Self {
        let (to, feed) = mpsc::unbounded_channel();
        let id = core.wishes.next.fetch_add(1, Ordering::Relaxed);
        let wanted = Arc::new(Wanted { id, subject, numbered, feed: to, on: AtomicU64::new(0) });
        core.wishes.all.lock().insert(id, wanted.clone());
        let this = Self { wanted, feed, current: None, backlog: None, generation: 0, core, _keep: keep };
        // one that comes up meanwhile subscribes it by itself
        if let Some(slot) = this.core.slot.load_full() {
            this.wanted.ensure(&slot).await;
        }
        this
    }

    /// The next message; waits over reconnects. None once the connection is closed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            if let Heard::Message(message) = self.hear().await? {
                return Some(message);
            }
        }
    }

    /// The number of the connection that the last message came over; 0 before the first.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes the client it is live on, if it is on one already, so that no word of it is given. Says its number.
    pub(crate) fn prime(&mut self) -> u64 {
        if let Ok(fed) = self.feed.try_recv() {
            self.current = Some(fed.subscriber);
            self.generation = fed.generation;
        }
        self.generation
    }

    /// The subject.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.wanted.subject
    }

    /// The next message, or word of another connection.
    pub(crate) async fn hear(&mut self) -> Option<Heard> {
        if let Some(message) = self.waiting_message().await {
            return Some(Heard::Message(message));
        }
        if let Some(current) = &mut self.current {
            if let Some(message) = current.next().await {
                return Some(Heard::Message(Message::new(message)));
            }
            self.current = None;
        }
        let fed = tokio::select! {
            biased;
            fed = self.feed.recv() => fed?,
            () = self.core.stop.wait() => return None,
        };
        self.current = Some(fed.subscriber);
        self.generation = fed.generation;
        Some(Heard::Connected(fed.generation))
    }

    /// Takes all that the client has for us, as far as it fits, and gives the first. The client itself bounds only the
    /// number of messages.
    async fn waiting_message(&mut self) -> Option<Message> {
        let backlog = self.backlog.as_mut()?;
        if !backlog.messages.is_empty() {
            // a backlog is never waited for: others must have their turn all the same. Nothing is taken yet
            tokio::task::coop::consume_budget().await;
        }
        let mut dropped = 0;
        while let Some(current) = &mut self.current {
            // all of it: what is left in the client is not bounded by bytes
            match tokio::task::coop::unconstrained(current.next()).now_or_never() {
                Some(Some(message)) => dropped += u64::from(!backlog.push(Message::new(message))),
                Some(None) => self.current = None,
                None => break,
            }
        }
        if dropped > 0 {
            self.core.state.send_modify(|state| state.slow_consumers += dropped);
        }
        backlog.pop()
    }

    /// Ends it: once this returns, the server was told, before everything that is sent from now on. Messages that were
    /// under way may have been lost.
    ///
    /// # Cancel safety
    /// Detached: it ends in any case.
    pub async fn unsubscribe(mut self) {
        self.core.wishes.all.lock().remove(&self.wanted.id);
        self.feed.close();
        while let Ok(fed) = self.feed.try_recv() {
            self.current = Some(fed.subscriber);
        }
        if let Some(mut current) = self.current.take() {
            _ = current.unsubscribe().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.core.wishes.all.lock().remove(&self.wanted.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Message {
        let (payload, subject) = (bytes::Bytes::from(vec![0; bytes]), "x".into());
        Message::new(async_nats::Message {
            subject,
            reply: None,
            payload,
            headers: None,
            status: None,
            description: None,
            length: bytes,
        })
    }

    #[test]
    fn what_waits_is_bounded_by_bytes_and_one_alone_fits_always() {
        let mut backlog = Backlog::new(2 * Subscription::OVERHEAD + 100);
        assert!(backlog.push(message(10_000)), "there would be no other way for it");
        assert!(!backlog.push(message(0)));
        assert_eq!(backlog.pop().map(|message| message.body().len()), Some(10_000));
        assert!(backlog.push(message(40)) && backlog.push(message(60)) && !backlog.push(message(0)));
        let lens: Vec<_> = std::iter::from_fn(|| backlog.pop()).map(|message| message.body().len()).collect();
        assert_eq!((lens, backlog.bytes), (vec![40, 60], 0));
    }
}
