//! The history's stream over a connection. Waits out elections and reconnects up to a bound.

use super::{
    archive::{Archive, Begin, Ends, Stored},
    message,
};
use crate::{
    Error, Kind, Result,
    nats::{error, shared::Shared},
};
use std::{future::Future, sync::Arc, time::Duration};
use wh_nats::{Api, BatchStart, DirectBatch, DirectGet, StreamState};
use wh_types::{Backoff, Class, Timestamp};

const DELAYS: Backoff = Backoff::half_jitter(Duration::from_millis(50), Duration::from_secs(1));
/// Most entries of one read.
const BATCH: u32 = 256;
/// Most bytes of one read.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;

/// The history's stream.
#[derive(Debug)]
pub(super) struct StoredHistory {
    shared: Arc<Shared>,
    /// How long a request is repeated.
    patience: Duration,
}

impl StoredHistory {
    pub(super) fn new(shared: &Arc<Shared>, patience: Duration) -> Self {
        Self { shared: Arc::clone(shared), patience }
    }

    fn stream(&self) -> &str {
        &self.shared.names().history
    }

    /// Asks until there is an answer.
    async fn ask<T, F>(&self, mut request: impl FnMut(Api) -> F) -> Result<T>
    where
        F: Future<Output = wh_nats::Result<T>>,
    {
        let ask = || {
            let answer = request(self.shared.connection.api());
            async move { answer.await.map_err(|error| error::request("history", error)) }
        };
        self.persist(ask).await
    }

    /// Tries again, within the patience, what may go well later.
    pub(super) async fn persist<T, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let (until, mut failures) = (self.shared.clock().now() + self.patience, 0);
        loop {
            self.shared.running("history")?;
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let again = matches!(error.class(), Class::Unavailable | Class::Exhausted { .. });
            if !again || self.shared.clock().now() >= until {
                return Err(error);
            }
            failures += 1;
            tokio::time::sleep(DELAYS.delay(failures, self.shared.entropy())).await;
        }
    }

    fn read_one(&self, stored: &wh_nats::Stored) -> Stored {
        let tail = message::tail(&self.shared.names().prefix, &stored.subject);
        let message = tail.and_then(|tail| message::read(tail, stored.headers_first(), stored.body()));
        // one that no partition sent has the history's own headers only
        let message = message.filter(|message| *message.stream != *self.stream());
        Stored { at: stored.sequence, time: stored.time, message }
    }

    async fn batch(&self, batch: &DirectBatch) -> Result<wh_nats::Batch> {
        self.ask(|api| async move { api.direct_batch(self.stream(), batch).await }).await
    }
}

/// When a stream was made.
///
/// # Errors
/// The server's text cannot be read.
pub(super) fn created(state: &StreamState) -> Result<Timestamp> {
    let unreadable = |error| Error::new("history", Kind::Unavailable).with_source(error);
    state.created.parse::<Timestamp>().map_err(unreadable)
}

/// The ends of a stream.
fn ends(state: &StreamState) -> Result<Ends> {
    Ok(Ends {
        created: created(state)?,
        first: state.first_seq,
        last: state.last_seq,
        first_stored: state.first_ts.filter(|_| state.messages > 0),
        last_stored: state.last_ts.unwrap_or_default(),
    })
}

impl Archive for StoredHistory {
    async fn ends(&self) -> Result<Ends> {
        ends(&self.ask(|api| async move { api.stream_state(self.stream()).await }).await?)
    }

    async fn has(&self, subject: &str) -> Result<(Ends, bool)> {
        let ends = self.ends().await?;
        // what came after the ends were read does not matter; what went meanwhile is gone
        let subjects = self.ask(|api| async move { api.stream_subjects(self.stream(), subject).await }).await?;
        Ok((ends, subjects.contains_key(subject)))
    }

    async fn last(&self, subject: &str) -> Result<Option<(u64, Stored)>> {
        let which = DirectBatch { multi_last: vec![subject.to_owned()], ..DirectBatch::default() };
        let batch = self.batch(&which).await?;
        Ok(batch.up_to_seq.zip(batch.messages.last()).map(|(known, last)| (known, self.read_one(last))))
    }

    async fn next(&self, subject: &str, from: u64) -> Result<Option<Stored>> {
        let which = DirectGet::NextOf { seq: from, subject };
        let stored = self.ask(|api| async move { api.direct_get(self.stream(), which).await }).await?;
        Ok(stored.map(|stored| self.read_one(&stored)))
    }

    async fn read(&self, subject: &str, begin: Begin) -> Result<Vec<Stored>> {
        let start = match begin {
            Begin::Sequence(sequence) => BatchStart::Sequence(sequence),
            Begin::Time(time) => BatchStart::Time(time),
        };
        let which = DirectBatch {
            batch: BATCH,
            start,
            next_by_subj: Some(subject.to_owned()),
            max_bytes: Some(BATCH_BYTES),
            ..DirectBatch::default()
        };
        let batch = self.batch(&which).await?;
        Ok(batch.messages.iter().map(|stored| self.read_one(stored)).collect())
    }
}
