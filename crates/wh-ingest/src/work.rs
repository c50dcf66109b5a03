//! One piece of work as a future: an insert, or parking. Decides nothing; how it ended is for the loop.

use crate::{
    chunk::Chunk,
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
    /// The first one's id, code and reason.
    Parked(String),
    NotParked(Error),
}

pub(crate) fn insert(
    shared: &Arc<Shared>,
    rows: &TableRows,
    key: Key,
    chunk: &Chunk,
    sink: Arc<dyn Sink>,
    encoding: Encoding,
    frames: Vec<Bytes>,
) -> BoxFuture<'static, (Key, u64, End)> {
    let (table, count) = (rows.table.clone(), chunk.rows());
    let token = rows.token(chunk);
    let clock = shared.parts.clock.clone();
    Box::pin(async move {
        let started = clock.now();
        let insert = Insert { table: &table, encoding, frames, rows: count, token: &token };
        let outcome = sink.insert(insert).await;
        let took = clock.now().saturating_duration_since(started);
        (key, count, outcome.map_or_else(|error| End::Failed(error, took), |()| End::Stored(took)))
    })
}

pub(crate) fn park(shared: &Arc<Shared>, key: Key, letters: Vec<DeadLetter>) -> BoxFuture<'static, (Key, u64, End)> {
    let broker = shared.parts.broker.clone();
    Box::pin(async move {
        let count = letters.len() as u64;
        for (letter, outcome) in letters.iter().zip(broker.dead_letter(&letters).await) {
            match outcome {
                Ok(()) => metrics::parked(&letter.table, 1, &letter.code),
                // Parked ones are parked once whatever happens now: their ids stay the same.
                Err(error) => return (key, count, End::NotParked(error)),
            }
        }
        let first = letters.first().map(|letter| format!("{} ({}): {}", letter.id, letter.code, letter.reason));
        (key, count, End::Parked(first.unwrap_or_default()))
    })
}
