//! A Sink in memory, for tests and for trying the worker without a ClickHouse. Keeps tokens, so repeats store once.

use crate::sink::{Failure, Insert, Refusal, Sink, SinkError};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::atomic::{AtomicUsize, Ordering},
};
use tokio::sync::watch;
use wh_types::{Table, frame};

/// What a coming insert shall meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// Fails; nothing is stored.
    Fail(Failure),
    /// Stores the rows, and loses the answer.
    LoseAnswer,
}

/// Rows by table, in the order they were stored.
#[derive(Debug)]
pub struct Memory {
    tables: Mutex<BTreeMap<Table, Vec<String>>>,
    tokens: Mutex<HashSet<String>>,
    script: Mutex<VecDeque<Script>>,
    refuse: Mutex<Option<String>>,
    failing: Mutex<Option<(Table, Failure)>>,
    down: Mutex<Option<Failure>>,
    limit: Mutex<Option<u64>>,
    asked: AtomicUsize,
    pool: String,
    stored: watch::Sender<usize>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            tables: Mutex::default(),
            tokens: Mutex::default(),
            script: Mutex::default(),
            refuse: Mutex::default(),
            failing: Mutex::default(),
            down: Mutex::default(),
            limit: Mutex::default(),
            asked: AtomicUsize::new(0),
            pool: "memory".to_owned(),
            stored: watch::Sender::new(0),
        }
    }
}

impl Memory {
    /// An empty sink that takes everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that fails by itself, under a name of its own.
    #[must_use]
    pub fn named(pool: &str) -> Self {
        Self { pool: pool.to_owned(), ..Self::default() }
    }

    /// Fails every insert.
    pub fn fail_all(&self, failure: Option<Failure>) {
        *self.down.lock() = failure;
    }

    /// Has memory for so many rows at once and no more, as ClickHouse says with 241; 0: for none.
    pub fn limit(&self, rows: Option<u64>) {
        *self.limit.lock() = rows;
    }

    /// How many inserts were asked for, failed ones included.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Lets the next inserts meet these, one each, in order.
    pub fn script(&self, steps: impl IntoIterator<Item = Script>) {
        self.script.lock().extend(steps);
    }

    /// Forgets what was scripted and did not come to pass.
    pub fn clear_script(&self) {
        self.script.lock().clear();
    }

    /// Refuses every row that contains this text.
    pub fn refuse(&self, text: Option<&str>) {
        *self.refuse.lock() = text.map(str::to_owned);
    }

    /// Fails every insert into this table.
    pub fn fail_table(&self, failing: Option<(Table, Failure)>) {
        *self.failing.lock() = failing;
    }

    /// The rows of a table as they were stored.
    #[must_use]
    pub fn rows(&self, table: &Table) -> Vec<String> {
        self.tables.lock().get(table).cloned().unwrap_or_default()
    }

    /// Returns once at least so many rows are stored.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait_for(&self, rows: usize) {
        let mut stored = self.stored.subscribe();
        // the sender lives as long as self, so waiting cannot fail
        let _stored = stored.wait_for(|n| *n >= rows).await;
    }
}

fn error(failure: Failure, reason: String, row: Option<u64>) -> SinkError {
    let refusal = Refusal { code: "memory".to_owned(), reason, column: None };
    SinkError { failure, refusal, splittable: false, table_scoped: false, row, columns: None, source: None }
}

#[async_trait]
impl Sink for Memory {
    fn pool(&self) -> &str {
        &self.pool
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), SinkError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if let Some(failure) = *self.down.lock() {
            return Err(error(failure, "everything fails".to_owned(), None));
        }
        let step = self.script.lock().pop_front();
        if let Some(Script::Fail(failure)) = step {
            return Err(error(failure, "as scripted".to_owned(), None));
        }
        if let Some((table, failure)) = &*self.failing.lock()
            && table == insert.table
        {
            return Err(error(*failure, "this table fails".to_owned(), None));
        }
        if self.limit.lock().is_some_and(|rows| insert.rows > rows) {
            let refused = error(Failure::Unavailable, "memory limit exceeded".to_owned(), None);
            return Err(SinkError { splittable: true, ..refused });
        }
        let plain = frame::decode(insert.encoding, &insert.frames.concat(), 256 << 20)
            .map_err(|e| error(Failure::Rejected, e.to_string(), None))?;
        let rows = String::from_utf8_lossy(&plain).lines().map(str::to_owned).collect::<Vec<_>>();
        if let Some(text) = &*self.refuse.lock()
            && let Some(row) = rows.iter().position(|row| row.contains(text.as_str()))
        {
            return Err(error(Failure::Rejected, format!("a row holds {text:?}"), Some(row as u64)));
        }
        if self.tokens.lock().insert(insert.token.to_owned()) {
            self.stored.send_modify(|n| *n += rows.len());
            self.tables.lock().entry(insert.table.clone()).or_default().extend(rows);
        }
        match step {
            Some(Script::LoseAnswer) => Err(error(Failure::Unknown, "the answer was lost".to_owned(), None)),
            Some(Script::Fail(_)) | None => Ok(()),
        }
    }
}
