//! A ClickHouse that takes its time, fails now and then, and goes on with an insert whoever stops listening.

use crate::{chance::Chance, truth::Truth};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use wh_coord::Term;
use wh_ingest::{Failure, Insert, Refusal, Sink, SinkError};
use wh_types::{Table, Tasks, frame};

/// What the sink is like, for all processes.
#[derive(Debug)]
pub(crate) struct Weather {
    pub(crate) chance: Chance,
    /// Its own tasks: they go on when a process stops.
    pub(crate) tasks: Tasks,
    /// How long an insert takes at most now.
    pub(crate) slow: Mutex<Duration>,
    /// How many inserts in a hundred fail, and how many lose their answer.
    pub(crate) fails: Mutex<(u64, u64)>,
    /// Whether a token that was seen stores nothing.
    pub(crate) keeps_tokens: bool,
}

/// One process's way to it.
#[derive(Debug)]
pub(crate) struct Shore {
    pub(crate) process: u64,
    pub(crate) truth: Truth,
    pub(crate) weather: Arc<Weather>,
    /// The term that the process has.
    pub(crate) term: Arc<Mutex<Option<Term>>>,
}

/// Says that an insert ended, also when nobody waits for it any more.
struct Under<'a>(&'a Truth, &'a Table, u64);

impl Drop for Under<'_> {
    fn drop(&mut self) {
        self.0.ends(self.1, self.2);
    }
}

fn failed(failure: Failure) -> SinkError {
    let refusal = Refusal { code: "sim".to_owned(), reason: "as the seed has it".to_owned(), column: None };
    SinkError { failure, refusal, splittable: false, table_scoped: false, row: None, columns: None, source: None }
}

#[async_trait]
impl Sink for Shore {
    fn pool(&self) -> &str {
        "sim"
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), SinkError> {
        let term = self.term.lock().clone();
        let under = Under(&self.truth, insert.table, self.truth.begins(self.process, insert.table, term));
        let plain = frame::decode(insert.encoding, &insert.frames.concat(), 1 << 17);
        let plain = plain.map_err(|_| failed(Failure::Rejected))?;
        let number = |row: &str| row.trim_start_matches("{\"n\":").trim_end_matches('}').parse::<u64>().ok();
        let rows: Vec<u64> = String::from_utf8_lossy(&plain).lines().filter_map(number).collect();
        let weather = &self.weather;
        let slow = u64::try_from(weather.slow.lock().as_millis()).unwrap_or(0);
        let (takes, fate) = (weather.chance.millis(slow / 2, slow), weather.chance.below(100));
        let (fails, loses) = *weather.fails.lock();
        let (answer, answered) = oneshot::channel();
        let (truth, table, token) = (self.truth.clone(), insert.table.clone(), insert.token.to_owned());
        let (process, keeps) = (self.process, weather.keeps_tokens);
        let server = async move {
            tokio::time::sleep(takes).await;
            let outcome = if fate < fails {
                Err(Failure::Unavailable)
            } else {
                truth.store(process, &table, rows, &token, keeps);
                if fate < fails + loses { Err(Failure::Unknown) } else { Ok(()) }
            };
            // whoever asked may be gone
            let _listener = answer.send(outcome);
        };
        drop(weather.tasks.spawn("clickhouse", server));
        let outcome = answered.await.unwrap_or(Err(Failure::Unknown));
        drop(under);
        outcome.map_err(failed)
    }
}
