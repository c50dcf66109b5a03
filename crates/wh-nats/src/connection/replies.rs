//! Answers to requests: one inbox for many requests, each with a number. What waits is told at once when its subject is
//! refused or its connection breaks; nothing is left behind by a request that was not answered.

use super::refusals::same;
use crate::{ByOrdinal, Error, Kind, Message, Result};
use async_nats::Subject;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use tokio::sync::{Notify, mpsc, oneshot};
use wh_types::{Mono, Stop};

/// The requests of one inbox that wait.
#[derive(Debug)]
pub(crate) struct Replies {
    /// Ends in a dot; an answer's subject is this and the request's number.
    prefix: String,
    next: AtomicU64,
    waiting: Mutex<ByOrdinal<Waiting>>,
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
    /// Until when [`Replies::expire`] leaves it.
    until: Option<Mono>,
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
    done: bool,
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

    fn wait(self: &Arc<Self>, subject: Subject, to: To) -> Ticket {
        let ticket = self.ticket();
        self.waiting.lock().insert(ticket.number, Waiting { subject, to, until: None });
        ticket
    }

    /// A number to wait under later.
    pub(crate) fn ticket(self: &Arc<Self>) -> Ticket {
        Ticket { number: self.next.fetch_add(1, Relaxed), replies: self.clone(), done: false }
    }

    /// Waits under the number of a ticket that somebody else holds. False where nobody waits for the answer any more:
    /// who gives up drops the receiver first and the ticket after it.
    pub(crate) fn put(&self, number: u64, subject: Subject, until: Mono, to: oneshot::Sender<Result<Message>>) -> bool {
        let mut waiting = self.waiting.lock();
        let wanted = !to.is_closed();
        if wanted {
            waiting.insert(number, Waiting { subject, to: To::One(to), until: Some(until) });
        }
        wanted
    }

    /// Where the answer to a number comes.
    pub(crate) fn reply(&self, number: u64) -> Subject {
        format!("{}{number}", self.prefix).into()
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

    /// What waits under this number ends with an error.
    pub(crate) fn fail(&self, number: u64, error: Error) {
        if let Some(Waiting { to, .. }) = self.take(number) {
            to.give(Err(error));
        }
    }

    fn take(&self, number: u64) -> Option<Waiting> {
        let taken = self.waiting.lock().remove(&number);
        if taken.is_some() {
            self.freed.notify_one();
        }
        taken
    }

    /// Ends what had its time.
    pub(crate) fn expire(&self, now: Mono) {
        self.end(|waiting| waiting.until.is_some_and(|until| until <= now).then_some(Kind::Timeout));
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
            to.give(Err(error));
        }
    }
}

impl To {
    fn give(self, answer: Result<Message>) {
        match self {
            Self::One(to) => _ = to.send(answer),
            Self::Many(to) => _ = to.send(answer),
        }
    }
}

impl Ticket {
    /// Where the answer comes.
    pub(crate) fn reply(&self) -> Subject {
        self.replies.reply(self.number)
    }

    /// The number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The answer is there: nothing waits any more.
    pub(crate) fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.done {
            self.replies.take(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::{Clock as _, SystemClock};

    fn message(subject: String) -> Message {
        let (payload, length) = (bytes::Bytes::new(), 0);
        let subject = subject.into();
        Message::new(async_nats::Message {
            subject,
            reply: None,
            payload,
            headers: None,
            status: None,
            description: None,
            length,
        })
    }

    #[tokio::test]
    async fn answers_find_their_request_and_others_nobody() {
        let replies = Replies::new("_INBOX.a");
        let (ticket, answer) = replies.one("x".into());
        let (many, mut answers) = replies.many("y".into());
        for subject in ["_INBOX.a.99", "_INBOX.b.1", "_INBOX.a.x", "_INBOX.a"] {
            replies.deliver(message(subject.to_owned()));
        }
        assert_eq!(replies.len(), 2);
        replies.deliver(message(ticket.reply().to_string()));
        answer.await.unwrap().unwrap();
        for _ in 0..2 {
            replies.deliver(message(many.reply().to_string()));
            answers.recv().await.unwrap().unwrap();
        }
        drop((ticket, many));
        assert_eq!(replies.len(), 0);
    }

    #[tokio::test]
    async fn a_refusal_ends_the_requests_of_its_subject_only() {
        let replies = Replies::new("_INBOX.a");
        let (_kept, mut other) = replies.one("$JS.hub.API.STREAM.NAMES".into());
        let (_ticket, answer) = replies.one("$JS.hub.API.INFO".into());
        replies.refuse("$JS.API.INFO");
        let error = answer.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), &Kind::Refused { subject: "$JS.API.INFO".into() });
        assert!(other.try_recv().is_err());
        replies.interrupt(&Kind::Interrupted);
        assert_eq!(other.await.unwrap().unwrap_err().kind(), &Kind::Interrupted);
        assert_eq!(replies.len(), 0);
    }

    #[tokio::test]
    async fn a_publisher_that_gave_up_leaves_nothing_behind() {
        let replies = Replies::new("_INBOX.a");
        let (to, answer) = oneshot::channel();
        let ticket = replies.ticket();
        let number = ticket.number();
        drop((answer, ticket));
        let now = SystemClock.now();
        assert!(!replies.put(number, "x".into(), now, to));
        let (to, _answer) = oneshot::channel();
        let ticket = replies.ticket();
        assert!(replies.put(ticket.number(), "x".into(), now, to));
        drop(ticket);
        replies.below(1).await;
    }

    #[tokio::test]
    async fn what_had_its_time_is_told_so_and_the_rest_waits_on() {
        let replies = Replies::new("_INBOX.a");
        let now = SystemClock.now();
        let ((first, answer), (later, mut waits)) = (oneshot::channel(), oneshot::channel());
        let (_request, mut unbounded) = replies.one("y".into());
        let tickets = [replies.ticket(), replies.ticket()];
        assert!(replies.put(tickets[0].number(), "x".into(), now, first));
        assert!(replies.put(tickets[1].number(), "x".into(), now + std::time::Duration::from_secs(1), later));
        replies.expire(now);
        assert_eq!(answer.await.unwrap().unwrap_err().kind(), &Kind::Timeout);
        assert!(waits.try_recv().is_err() && unbounded.try_recv().is_err());
        let [one, other] = tickets;
        one.done();
        other.done();
        assert_eq!(replies.len(), 2, "a ticket that is done gives up nothing");
    }
}
