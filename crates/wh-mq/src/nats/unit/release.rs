//! Giving a unit up, in order and otherwise, and parking what cannot be read.

use super::{
    metrics,
    reading::read_with_places,
    run::{Answer, Runner},
    settler::Acks,
    term::{Life, Term},
};
use crate::{
    DeadLetter, DeadLetterId, Error, Kind, Result,
    nats::{error, letters, shared::Shared},
};
use futures::FutureExt as _;
use std::{sync::Arc, time::Duration};
use wh_nats::{Ack, AckSubject, Api, Connection, ConsumerInfo, Message, PinId};
use wh_topology::defaults::PRIORITY_GROUP;
use wh_types::{Backoff, Class, RowCursor, Table, Tenant, Timestamp, TopicKey};

const OP: &str = "release";
/// How long the last acks may take to be confirmed.
const SETTLE: Duration = Duration::from_secs(3);
/// How long giving up may take before the unit is left to free itself.
const BUDGET: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(250);
/// Verdicts of which one request confirms that they were heard, and how long that may take.
const AT_ONCE: usize = 4_096;
const HEARD: Duration = Duration::from_secs(1);
/// How long a pull of ours that nobody listens to may still wait.
const LAST_PULL: Duration = Duration::from_millis(500);

impl Runner {
    /// The end of a term in order: what is unsettled is due at once for the next owner (mq26).
    pub(super) async fn release(&mut self) {
        let outcome = self.let_go(Life::Fenced).await;
        if let Some(done) = self.releasing.take() {
            // whoever released it may have gone; it is released all the same
            done.send(outcome).ok();
        }
    }

    /// The queue closes: as a release, without being asked.
    pub(super) async fn close(&mut self) {
        self.puller.stop_pulling().await;
        if let Err(error) = self.let_go(Life::Stopping).await {
            tracing::debug!(unit = %self.term.unit, %error, "unit {} frees itself later", self.term.unit);
        }
    }

    /// The feed was dropped: as if its process had died. Its pin lapses, its handles settle on.
    pub(super) async fn abandon(&mut self) {
        self.puller.stop_pulling().await;
        // who buries it must know which pin is nobody's
        let pin = self.last_pin().await;
        self.term.lock().pin = pin;
        self.shared.units.count(std::mem::take(&mut self.reserved), 0);
    }

    async fn let_go(&mut self, life: Life) -> Result<()> {
        self.shared.units.count(std::mem::take(&mut self.reserved), 0);
        let rest = self.term.fence(&self.shared.units, life);
        tokio::time::timeout(SETTLE, &mut self.settler).await.ok();
        let pin = self.last_pin().await;
        let give_up = GiveUp {
            shared: &self.shared,
            term: &self.term,
            stream: &self.stream,
            durable: &self.durable,
            created: &self.created,
            pin,
            cause: "release",
        };
        let outcome = give_up.run(&rest).await;
        self.term.leave(&self.shared.units);
        self.shared.units.released(&self.term, outcome.as_ref().ok().copied());
        outcome.map(drop)
    }

    /// The pin that is ours once nothing is pulled any more. The last pull may have taken one with blocks that came too
    /// late to be heard: it is known by its time. The server processed the end of the inbox before it answers here, so
    /// that a pull it had not looked at yet finds nobody and takes nothing.
    async fn last_pin(&mut self) -> Option<PinId> {
        let Some(sent) = self.unpinned else { return self.pull.pin().cloned() };
        let until = self.now() + LAST_PULL;
        loop {
            let info = self.shared.connection.api().consumer_info(&self.stream, &self.durable).await.ok()?;
            if info.num_waiting == 0 || self.now() >= until {
                return pinned_within(&info, self.now().saturating_duration_since(sent));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// An unreadable block goes to the dead letters whole, with the reason, and is acked then (decision D1).
    pub(super) fn park(&mut self, sequence: u64, message: &Message, reason: String) {
        let (unit, shared) = (self.term.unit, self.shared.clone());
        tracing::error!(%unit, sequence, reason, "block {sequence} of unit {unit} cannot be read and is parked whole");
        crate::metrics::quarantined();
        let key = shared.ingest_tail(message.subject()).and_then(TopicKey::parse);
        let (tenant, table) = match key {
            Some(key) => (key.tenant().clone(), key.table().clone()),
            None => (Tenant::default(), unknown_table()),
        };
        let block = shared.cursor(unit, sequence);
        let letter = DeadLetter {
            id: DeadLetterId(RowCursor { block, row: 0 }),
            tenant,
            table,
            body: message.body().clone(),
            reason,
            code: "block.unreadable".to_owned(),
            column: None,
            attempted: shared.options.clock.wall(),
            received: Timestamp::default(),
            retry_until: None,
        };
        self.asks.push(parked(shared, letter, sequence).boxed());
    }
}

/// The pin, where it was given within so long, by the server's own clock.
fn pinned_within(info: &ConsumerInfo, span: Duration) -> Option<PinId> {
    let given = info.raw.pointer("/priority_groups/0/pinned_ts")?.as_str()?.parse::<Timestamp>().ok()?;
    (info.ts?.since(given) <= span).then(|| info.pinned.clone()).flatten()
}

/// The table of a message that names none.
fn unknown_table() -> Table {
    #[expect(clippy::expect_used, reason = "a constant that is a table's name")]
    Table::new("unreadable").expect("a name")
}

async fn parked(shared: Arc<Shared>, letter: DeadLetter, sequence: u64) -> Answer {
    let backoff = Backoff::half_jitter(Duration::from_millis(500), Duration::from_secs(30));
    let mut failures = 0;
    loop {
        match letters::park(&shared, std::slice::from_ref(&letter)).await.pop() {
            Some(Ok(())) => return Answer::Parked(sequence),
            Some(Err(error)) if failures == 0 => {
                tracing::warn!(sequence, %error, "parking block {sequence} failed, retrying");
            }
            _ => {}
        }
        failures += 1;
        tokio::time::sleep(backoff.delay(failures, shared.entropy())).await;
    }
}

/// A unit that is to be given up: by its owner, or for an owner of this process that is gone.
pub(super) struct GiveUp<'a> {
    pub(super) shared: &'a Shared,
    pub(super) stream: &'a str,
    pub(super) durable: &'a str,
    /// When the durable was made that it is about.
    pub(super) created: &'a str,
    /// The term that ends. Its acks that nobody confirmed are sent once more, so that their blocks do not come to the next
    /// owner.
    pub(super) term: &'a Term,
    /// The pin that is ours.
    pub(super) pin: Option<PinId>,
    pub(super) cause: &'static str,
}

impl GiveUp<'_> {
    /// Makes everything unsettled due, then gives the pin back. Gives the last consumer sequence delivered.
    ///
    /// The reset comes before the unpin, so that the next owner gets all of it in order; and it is left out where
    /// somebody else is pinned, since it would bring them their own blocks again. `rest` is given back one by one then.
    ///
    /// # Errors
    /// Unavailable once its time is over: the unit frees itself later. Denied.
    pub(super) async fn run(&self, rest: &[AckSubject]) -> Result<u64> {
        let done = tokio::time::timeout(BUDGET, self.until_done(rest)).await;
        done.unwrap_or_else(|_| Err(Error::new(OP, Kind::Unavailable)))
    }

    async fn until_done(&self, rest: &[AckSubject]) -> Result<u64> {
        let api = self.shared.connection.api();
        let mut unconfirmed = self.term.unconfirmed();
        let started = self.shared.clock().now();
        loop {
            let patient = self.shared.clock().now() - started < LAST_PULL;
            match self.attempt(&api, &mut unconfirmed, rest, patient).await {
                Ok(Some(delivered)) => return Ok(delivered),
                Ok(None) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) if error.is_gone() => return Ok(0),
                // a leader is elected, or the connection is made again
                Err(error) if matches!(error.class(), Class::Unavailable | Class::Unknown) => {
                    tokio::time::sleep(RETRY).await;
                }
                Err(error) => return Err(error::request(OP, error)),
            }
        }
    }

    async fn attempt(
        &self,
        api: &Api,
        unconfirmed: &mut Acks,
        rest: &[AckSubject],
        patient: bool,
    ) -> std::result::Result<Option<u64>, wh_nats::Error> {
        let (found, (_, delivered_to)) = read_with_places(api, self.stream, self.durable).await?;
        if found.created != self.created {
            return Ok(Some(0));
        }
        if !unconfirmed.is_empty() {
            let replies: Vec<AckSubject> = unconfirmed.iter().map(|(_, reply)| reply.clone()).collect();
            send(&self.shared.connection, &replies, Ack::Ack).await?;
            let sequences: Vec<u64> = std::mem::take(unconfirmed).into_iter().map(|(sequence, _)| sequence).collect();
            self.term.heard(&sequences);
            // it says more now than before
            return Ok(None);
        }
        let ours = found.pinned == self.pin;
        if !ours && found.pinned.is_some() {
            return send(&self.shared.connection, rest, Ack::Nak(None)).await.map(|()| Some(found.delivered));
        }
        // a pull of ours that the server still believes in would swallow what is made due
        if found.waiting > 0 && patient {
            return Ok(None);
        }
        let mut delivered = found.delivered;
        if found.unsettled > 0 {
            metrics::reset(self.cause);
            self.shared.units.note_delivered(self.term.unit, delivered_to);
            let reset = api.reset(self.stream, self.durable).await?;
            delivered = reset.delivered.consumer_seq;
        }
        if ours && found.pinned.is_some() {
            api.unpin(self.stream, self.durable, PRIORITY_GROUP).await?;
        }
        Ok(Some(delivered))
    }
}

/// Sends verdicts again and waits until the server has heard them. Being kept alive is answered always, an ack only where
/// its block is still unsettled.
pub(super) async fn send(
    connection: &Connection,
    replies: &[AckSubject],
    ack: Ack,
) -> std::result::Result<(), wh_nats::Error> {
    for part in replies.chunks(AT_ONCE) {
        let generation = connection.generation();
        for reply in part {
            connection.ack(reply, ack).await?;
        }
        if let Some(last) = part.last() {
            connection.ack_confirmed(last, Ack::InProgress, HEARD).await?;
        }
        // what went with another connection is not confirmed by this one
        if connection.generation() != generation {
            return Err(wh_nats::Kind::Interrupted.into());
        }
    }
    Ok(())
}
