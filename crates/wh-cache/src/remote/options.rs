//! How a cache over a shared store is set up.

use std::{sync::Arc, time::Duration};
use wh_types::{Clock, Entropy, Tasks};

/// How a cache over a shared store is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// What every name in the store begins with. Members with the same prefix share answers.
    pub prefix: String,
    /// How long an operation may take; a slower one is a miss, an answer not kept or an invalidation owed.
    pub timeout: Duration,
    /// How long making connections and proving them may take.
    pub connect_timeout: Duration,
    /// How long the store is left alone after it failed.
    pub pause: Duration,
    /// How long connections are used.
    pub recycle: Duration,
    /// How long a version lives in the store, give or take a tenth.
    pub version_ttl: Duration,
    /// The largest answer that is kept, before it is packed.
    pub max_value_bytes: usize,
    /// From which size answers are packed.
    pub pack_from: usize,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Where the cache's own tasks run. They end with [`close`](crate::Cache::close), or when the cache is dropped.
    pub tasks: Tasks,
}

impl Options {
    /// 100 ms an operation, 5 s to connect, 5 s pause, connections for a minute, versions for a day, 1 MiB an answer.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, tasks: Tasks) -> Self {
        Self {
            prefix: "wh".to_owned(),
            timeout: Duration::from_millis(100),
            connect_timeout: Duration::from_secs(5),
            pause: Duration::from_secs(5),
            recycle: Duration::from_secs(60),
            version_ttl: Duration::from_secs(24 * 3_600),
            max_value_bytes: 1 << 20,
            pack_from: 1 << 10,
            clock,
            entropy,
            tasks,
        }
    }
}
