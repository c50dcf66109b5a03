//! What may be set of the worker, with its defaults.

use std::time::Duration;
use wh_types::Backoff;

/// Bounds and times of a worker.
#[derive(Clone, Debug)]
pub struct Options {
    /// A table is inserted once so many rows wait. Blocks are not cut for it: a batch may have one block more.
    pub batch_rows: u64,
    /// … or once so many decoded bytes wait.
    pub batch_bytes: u64,
    /// … or once its oldest row waited so long. Up to eight times longer while the table's merges do not keep up.
    pub batch_wait: Duration,
    /// A batch takes all that waits, up to so many rows: the more a table lags, the larger its batches are.
    pub batch_max_rows: u64,
    /// … and up to so many decoded bytes.
    pub batch_max_bytes: u64,
    /// Inserts at once into one table. More than one gives up the order of a table's rows.
    pub table_inserts: usize,
    /// A table for which a batch was too large gets smaller ones; what may pass doubles each time this passes.
    pub learned_for: Duration,
    /// Rows delivered and not settled, in the whole process. At least two batches for each unit.
    pub held_rows: usize,
    /// Compressed bytes delivered and not settled, in the whole process.
    pub held_bytes: usize,
    /// The queue's own redelivery time: held blocks are kept alive every third of it.
    pub ack_wait: Duration,
    /// Waits between tries while the sink fails.
    pub backoff: Backoff,
    /// How long rows of a table that is gone are held before they are parked, and how long rows of a column that is gone
    /// are marked for being published again by themselves.
    pub missing_table_hold: Duration,
    /// Whether refused rows are parked. Else they are dropped, logged and counted: no row stops a table either way.
    pub dead_letters: bool,
    /// How long one insert may take: the sink's own bound. What is begun is awaited for so long.
    pub insert_timeout: Duration,
    /// How long a unit that another is to have may take to settle what it holds.
    pub handover_bound: Duration,
    /// How long a stop may take. Inserts begin as long as one may end inside of it: keep it above `insert_timeout`.
    pub stop_budget: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batch_rows: 10_000,
            batch_bytes: 8 * 1024 * 1024,
            batch_wait: Duration::from_secs(1),
            batch_max_rows: 100_000,
            batch_max_bytes: 64 * 1024 * 1024,
            table_inserts: 1,
            learned_for: Duration::from_secs(60),
            held_rows: 200_000,
            held_bytes: 256 * 1024 * 1024,
            ack_wait: Duration::from_secs(60),
            backoff: Backoff::half_jitter(Duration::from_secs(1), Duration::from_secs(30)),
            missing_table_hold: Duration::from_secs(600),
            dead_letters: true,
            insert_timeout: Duration::from_secs(30),
            handover_bound: Duration::from_secs(60),
            stop_budget: Duration::from_secs(35),
        }
    }
}
