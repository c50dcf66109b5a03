//! One piece of work as a future: an insert, or parking. Decides nothing; how it ended is for the loop.

use crate::{
    chunk::Chunk,
    line::WorkId,
    metrics,
    sink::{Insert, Sink, SinkError},
    table::TableRows,
    worker::Shared,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use wh_mq::{DeadLetter, Error};
use wh_types::Encoding;

/// Which table of a loop.
pub(crate) type Key = usize;

/// How a piece of work ended.
pub(crate) enum End {
    Stored(Duration),
    Failed(SinkError, Duration),
    /// Or dropped, where there are no dead letters. The first one's id, code and reason.
    Parked(String),
    NotParked(Error),
    /// It was over before the insert began.
    NotBegun,
}

/// Which piece of work ended, and how.
pub(crate) struct Ended {
    pub(crate) key: Key,
    pub(crate) id: WorkId,
    pub(crate) rows: u64,
    /// Who was asked, of an insert.
    pub(crate) sink: Option<Arc<dyn Sink>>,
    pub(crate) end: End,
}

pub(crate) type Running = BoxFuture<'static, Ended>;

/// What an insert is made of.
pub(crate) struct Load {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) encoding: Encoding,
    pub(crate) frames: Vec<Bytes>,
    /// Part of a batch that was refused.
    pub(crate) part: bool,
}

/// `first` is done before it, and says whether it may still begin.
pub(crate) fn insert(
    shared: &Arc<Shared>,
    rows: &TableRows,
    (key, id): (Key, WorkId),
    chunk: &Chunk,
    load: Load,
    first: BoxFuture<'static, bool>,
) -> Running {
    let (table, count) = (rows.table.clone(), chunk.rows());
    let token = rows.token(chunk);
    let clock = shared.parts.clock.clone();
    let Load { sink, encoding, frames, part } = load;
    Box::pin(async move {
        if !first.await {
            return Ended { key, id, rows: count, sink: Some(sink), end: End::NotBegun };
        }
        let started = clock.now();
        let insert = Insert { table: &table, encoding, frames, rows: count, token: &token, part };
        let outcome = sink.insert(insert).await;
        let took = clock.now().saturating_duration_since(started);
        let end = outcome.map_or_else(|error| End::Failed(error, took), |()| End::Stored(took));
        Ended { key, id, rows: count, sink: Some(sink), end }
    })
}

/// What is told of a letter in the log: not its reason, in which ClickHouse may repeat values of the row.
fn told(letter: &DeadLetter) -> String {
    let column = letter.column.iter().map(|column| format!(", column {column:?}"));
    format!("{} (code {}{})", letter.id, letter.code, column.collect::<String>())
}

pub(crate) fn park(shared: &Arc<Shared>, (key, id): (Key, WorkId), letters: Vec<DeadLetter>) -> Running {
    let (broker, owned) = (shared.parts.broker.clone(), shared.owned.clone());
    let kept = shared.options.dead_letters;
    Box::pin(async move {
        let rows = letters.len() as u64;
        let ended = |end| Ended { key, id, rows, sink: None, end };
        let first = letters.first().map(told).unwrap_or_default();
        if !kept {
            letters.iter().for_each(|letter| metrics::dropped(&letter.table, &letter.code));
            return ended(End::Parked(first));
        }
        for (letter, outcome) in letters.iter().zip(broker.dead_letter(&letters).await) {
            match outcome {
                Ok(()) => metrics::parked(&letter.table, 1, &letter.code),
                // Parked ones are parked once whatever happens now: their ids stay the same.
                Err(error) => return ended(End::NotParked(error)),
            }
        }
        if letters.iter().any(|letter| letter.retry_until.is_some()) {
            owned.held();
        }
        ended(End::Parked(first))
    })
}
