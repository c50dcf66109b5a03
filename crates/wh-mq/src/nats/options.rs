//! How a queue on NATS is opened.

use std::{sync::Arc, time::Duration};
use wh_topology::{Role, Spec};
use wh_types::{Clock, Entropy, OsEntropy, SystemClock};

/// How a queue on NATS is opened. What the operator chose is in the [`Spec`]; what the durables say is read from them.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names, counts and timeouts.
    pub spec: Spec,
    /// What this process does: only one that serves follows the history, only one that ingests owns units.
    pub role: Role,
    /// Bytes of recent blocks kept in memory, from which a history fills what it missed and blocks are looked up.
    pub ring_bytes: usize,
    /// Bytes of bodies that all units of this process hold together, delivered and not settled: the harder bound than
    /// the feeds' own budgets.
    pub held_bytes: usize,
    /// Blocks on their way to a partition and not answered, over all calls.
    pub publish_window: usize,
    /// How long a block is looked for in the ring and the history before it counts as not found (decision D4).
    pub lookup_wait: Duration,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where jitter comes from.
    pub entropy: Arc<dyn Entropy>,
}

impl Options {
    /// The defaults: both roles, 64 MiB of recent blocks, 256 MiB held, 1,024 blocks on their way, 2 s for a look-up.
    #[must_use]
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            role: Role::Both,
            ring_bytes: 64 * 1024 * 1024,
            held_bytes: 256 * 1024 * 1024,
            publish_window: 1024,
            lookup_wait: Duration::from_secs(2),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
        }
    }
}
