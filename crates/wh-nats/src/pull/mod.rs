//! The raw pull: requests with a group and a pin, and all that comes back on one inbox. It keeps no state of a unit:
//! which pull is outstanding, what is held and what is missing is its caller's to know.

mod request;
mod status;

pub use request::{PinId, PullRequest};
pub use status::{Rest, Status};

use crate::{
    AckSubject, Connection, Error, Kind, Message, Result,
    connection::{Heard, Subscription},
};
use async_nats::Subject;
use wh_types::Timestamp;

/// Pulls of one durable over one inbox. Renewals have an inbox of their own, so that the first may end before the pin
/// does.
#[derive(Debug)]
pub struct Puller {
    connection: Connection,
    subject: Subject,
    group: String,
    inbox: String,
    renewals: String,
    pulls: Option<Subscription>,
    renewed: Subscription,
    pulled: u64,
    /// The connection that its caller knows of.
    generation: u64,
    pin: Option<PinId>,
}

/// What a puller hears.
#[derive(Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "nearly all are deliveries, and a box for each would cost an allocation")]
pub enum Pulled {
    /// A message.
    Delivered(Delivered),
    /// The status of pull number `n`.
    Status {
        /// What [`Puller::pull`] returned.
        n: u64,
        /// The status.
        status: Status,
    },
    /// The answer to a renewal.
    Renewed(Status),
    /// There is another connection, with another inbox: the server drops the pulls of the one before, and nothing more of
    /// them follows. The pin lives on where only the connection broke, and is gone where the server was started again: a
    /// pull with it goes on, or is answered with a 423.
    Reconnected {
        /// The connection's number, as in [`State`](crate::State).
        generation: u64,
    },
}

/// A delivered message and what the server said of its delivery.
#[derive(Debug)]
pub struct Delivered {
    /// The message; its subject is its own, so that it belongs to no certain pull.
    pub message: Message,
    /// The pin it was delivered under.
    pub pin: Option<PinId>,
    /// Where it is settled.
    pub reply: AckSubject,
    /// Deliveries of this message, from 1; a reset of the durable starts again.
    pub deliveries: u64,
    /// Its sequence in the stream.
    pub stream_seq: u64,
    /// The durable's own count of deliveries: without a gap, unless one was lost.
    pub consumer_seq: u64,
    /// When it was stored.
    pub time: Timestamp,
    /// Messages of the durable that wait behind it.
    pub pending: u64,
}

impl Puller {
    /// Subscribes the inboxes. Nothing is pulled.
    ///
    /// # Errors
    /// [`Kind::Closed`], [`Kind::Invalid`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn open(connection: &Connection, stream: &str, durable: &str, group: &str) -> Result<Self> {
        let subject = connection.api_subject(&format!("CONSUMER.MSG.NEXT.{stream}.{durable}"));
        let inbox = connection.inbox();
        let renewals = connection.inbox();
        let renewed = connection.subscribe(&renewals).await?;
        let mut pulls = Subscription::numbered(connection, &inbox).await;
        let generation = pulls.prime();
        Ok(Self {
            connection: connection.clone(),
            subject: subject.into(),
            group: group.to_owned(),
            inbox,
            renewals,
            pulls: Some(pulls),
            renewed,
            pulled: 0,
            generation,
            pin: None,
        })
    }

    /// Sends a pull. Its number is in every status that answers it.
    ///
    /// # Errors
    /// [`Kind::Disconnected`], also while [`Self::next`] has a [`Pulled::Reconnected`] to tell: until its caller knows
    /// that the pull and the pin before are gone, no other is sent. [`Kind::Closed`] after [`Self::stop_pulling`].
    ///
    /// # Cancel safety
    /// Detached: it may have been sent.
    pub async fn pull(&mut self, request: &PullRequest) -> Result<u64> {
        if self.pulls.is_none() {
            return Err(Error::new(self.subject.as_str(), Kind::Closed));
        }
        let slot = self.connection.core().connected(&self.subject)?;
        if slot.generation != self.generation {
            return Err(Error::new(self.subject.as_str(), Kind::Disconnected));
        }
        self.pulled += 1;
        let reply = format!("{}.{}.{}", self.inbox, self.generation, self.pulled);
        slot.send(self.subject.clone(), Some(reply.into()), None, request.body(&self.group)).await?;
        Ok(self.pulled)
    }

    /// Renews the pin; nothing is delivered by it. The answer is a [`Pulled::Renewed`].
    ///
    /// # Errors
    /// [`Kind::Disconnected`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn renew(&self, pin: &PinId) -> Result<()> {
        let slot = self.connection.core().connected(&self.subject)?;
        let reply = Subject::from(self.renewals.as_str());
        slot.send(self.subject.clone(), Some(reply), None, request::null(&self.group, pin)).await
    }

    /// What comes next. None once the connection is closed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn next(&mut self) -> Option<Pulled> {
        loop {
            let heard = match &mut self.pulls {
                Some(pulls) => tokio::select! {
                    biased;
                    heard = pulls.hear() => (true, heard?),
                    heard = self.renewed.hear() => (false, heard?),
                },
                None => (false, self.renewed.hear().await?),
            };
            match heard {
                (of_pulls, Heard::Connected(generation)) => {
                    if generation > self.generation && (of_pulls || self.pulls.is_none()) {
                        self.generation = generation;
                        return Some(Pulled::Reconnected { generation });
                    }
                }
                (true, Heard::Message(message)) => {
                    if let Some(pulled) = self.read(message) {
                        return Some(pulled);
                    }
                }
                (false, Heard::Message(message)) => {
                    if let Some(status) = Status::of(&message) {
                        return Some(Pulled::Renewed(status));
                    }
                }
            }
        }
    }

    fn read(&mut self, mut message: Message) -> Option<Pulled> {
        if let Some(status) = Status::of(&message) {
            let n = message.subject().strip_prefix(&self.inbox)?.rsplit_once('.')?.1.parse().ok()?;
            return Some(Pulled::Status { n, status });
        }
        let reply = AckSubject::new(message.take_reply()?);
        let Some(of) = reply.read() else {
            tracing::warn!(reply = reply.as_str(), "a delivery with a reply subject of another kind, dropped");
            return None;
        };
        let (deliveries, stream_seq, consumer_seq) = (of.deliveries, of.stream_seq, of.consumer_seq);
        let (time, pending) = (of.time, of.pending);
        // the last one: a publisher may have stored a header of that name
        let pin = message.header("Nats-Pin-Id").filter(|id| !id.is_empty());
        let pin = match (pin, &self.pin) {
            (None, _) => None,
            (Some(id), Some(known)) if known.as_str() == id => Some(known.clone()),
            (Some(id), _) => {
                self.pin = Some(PinId::new(id));
                self.pin.clone()
            }
        };
        Some(Pulled::Delivered(Delivered { message, pin, reply, deliveries, stream_seq, consumer_seq, time, pending }))
    }

    /// Ends the outstanding pull by ending its inbox: the server drops a pull that nobody listens to. Renewals go on.
    /// What was under way is lost to us, and shows in the durable's state.
    ///
    /// # Cancel safety
    /// Detached: it ends in any case.
    pub async fn stop_pulling(&mut self) {
        if let Some(pulls) = self.pulls.take() {
            pulls.unsubscribe().await;
        }
    }

    /// Pulls again after [`Self::stop_pulling`], over a new inbox.
    ///
    /// # Errors
    /// As [`Self::open`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start_pulling(&mut self) -> Result<()> {
        if self.pulls.is_none() {
            if self.connection.core().stop.given() {
                return Err(Error::new(self.subject.as_str(), Kind::Closed));
            }
            let inbox = self.connection.inbox();
            self.pulls = Some(Subscription::numbered(&self.connection, &inbox).await);
            self.inbox = inbox;
        }
        Ok(())
    }
}
