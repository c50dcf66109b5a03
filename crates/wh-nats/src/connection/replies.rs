//! Answers to requests: one inbox for many requests, each with a number. What waits is told at once when its subject is
//! refused or its connection breaks; nothing is left behind by a request that was not answered.

use super::refusals::same;
use crate::{Error, Kind, Message, Result};
use async_nats::Subject;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tokio::sync::{Notify, mpsc, oneshot};
use wh_types::Stop;

/// The requests of one inbox that wait.
#[derive(Debug)]
pub(crate) struct Replies {
    /// Ends in a dot; an answer's subject is this and the request's number.
    prefix: String,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    freed: Notify,
    /// Given with the last handle: its subscription ends.
    unused: Stop,
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.unused.give();
    }
}

#[derive(Debug)]
struct Waiting {
    subject: Subject,
    to: To,
}

#[derive(Debug)]
enum To {
    One(oneshot::Sender<Result<Message>>),
    Many(mpsc::UnboundedSender<Result<Message>>),
}

/// Whoever holds it waits for an answer; dropping it gives the wait up.
#[derive(Debug)]
pub(crate) struct Ticket {
    replies: Arc<Replies>,
    number: u64,
}

impl Replies {
    pub(crate) fn new(inbox: &str) -> Arc<Self> {
        Arc::new(Self {
            prefix: format!("{inbox}."),
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            freed: Notify::new(),
            unused: Stop::new(),
        })
    }

    pub(super) fn unused(&self) -> Stop {
        self.unused.clone()
    }

    /// The subject to subscribe to.
    pub(crate) fn pattern(&self) -> String {
        format!("{}*", self.prefix)
    }

    /// Waits for one answer to a request to `subject`.
    pub(crate) fn one(self: &Arc<Self>, subject: Subject) -> (Ticket, oneshot::Receiver<Result<Message>>) {
        let (to, from) = oneshot::channel();
        (self.wait(subject, To::One(to)), from)
    }

    /// Waits for answers until the ticket is dropped.
    pub(crate) fn many(self: &Arc<Self>, subject: Subject) -> (Ticket, mpsc::UnboundedReceiver<Result<Message>>) {
        let (to, from) = mpsc::unbounded_channel();
        (self.wait(subject, To::Many(to)), from)
    }

    /// Waits under a sender that exists already.
    pub(crate) fn one_to(self: &Arc<Self>, subject: Subject, to: oneshot::Sender<Result<Message>>) -> Ticket {
        self.wait(subject, To::One(to))
    }

    fn wait(self: &Arc<Self>, subject: Subject, to: To) -> Ticket {
        let number = self.next.fetch_add(1, Relaxed);
        self.waiting.lock().insert(number, Waiting { subject, to });
        Ticket { replies: self.clone(), number }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    /// Returns when fewer than `window` wait.
    pub(crate) async fn below(&self, window: usize) {
        loop {
            let freed = self.freed.notified();
            if self.len() < window {
                return;
            }
            freed.await;
        }
    }

    /// Gives a message to whom it belongs. One that nobody waits for is dropped.
    pub(crate) fn deliver(&self, message: Message) {
        let Some(number) = message.subject().strip_prefix(&self.prefix).and_then(|number| number.parse().ok()) else {
            return;
        };
        let waiting = &mut *self.waiting.lock();
        match waiting.get(&number).map(|one| &one.to) {
            Some(To::Many(to)) => _ = to.send(Ok(message)),
            Some(To::One(_)) => {
                if let Some(Waiting { to: To::One(to), .. }) = waiting.remove(&number) {
                    self.freed.notify_one();
                    _ = to.send(Ok(message));
                }
            }
            None => {}
        }
    }

    /// The server refuses `subject`: none of its requests will be answered.
    pub(crate) fn refuse(&self, subject: &str) {
        self.end(|waiting| same(&waiting.subject, subject).then(|| Kind::Refused { subject: subject.to_owned() }));
    }

    /// What waits under this reply subject ends with an error.
    pub(crate) fn fail(&self, reply: &str, error: Error) {
        let number = reply.strip_prefix(&self.prefix).and_then(|number| number.parse().ok());
        let waiting = number.and_then(|number: u64| self.waiting.lock().remove(&number));
        if let Some(Waiting { to, .. }) = waiting {
            self.freed.notify_one();
            match to {
                To::One(to) => _ = to.send(Err(error)),
                To::Many(to) => _ = to.send(Err(error)),
            }
        }
    }

    /// The connection broke: nothing that waits will be answered.
    pub(crate) fn interrupt(&self, why: &Kind) {
        self.end(|_| Some(why.clone()));
    }

    fn end(&self, why: impl Fn(&Waiting) -> Option<Kind>) {
        let mut ended = Vec::new();
        self.waiting.lock().retain(|_, waiting| match why(waiting) {
            Some(kind) => {
                let (gone, _) = oneshot::channel();
                let to = std::mem::replace(&mut waiting.to, To::One(gone));
                ended.push((to, Error::new(waiting.subject.as_str(), kind)));
                false
            }
            None => true,
        });
        if !ended.is_empty() {
            self.freed.notify_one();
        }
        for (to, error) in ended {
            match to {
                To::One(to) => _ = to.send(Err(error)),
                To::Many(to) => _ = to.send(Err(error)),
            }
        }
    }
}

impl Ticket {
    /// Where the answer comes.
    pub(crate) fn reply(&self) -> Subject {
        format!("{}{}", self.replies.prefix, self.number).into()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.replies.waiting.lock().remove(&self.number).is_some() {
            self.replies.freed.notify_one();
        }
    }
}
