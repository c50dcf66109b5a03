//! The queue in the process's own data folder: the state machine over one segmented log for all tenants.
//!
//! A publish is one append and answered when that is durable. Settled ranges ride on the next group without a sync of
//! their own. Bodies of recent blocks are kept in memory; what is older is read from the log. `docs/queue-format.md`
//! has the records, `docs/operations/queue.md` what an operator should know.

mod batch;
mod cache;
mod checkpoint;
mod codec;
mod commit;
mod error;
mod forward;
pub mod inspect;
mod record;
mod recover;
mod relief;
mod store;
#[cfg(test)]
mod tests;
mod upkeep;
mod usage;

use crate::{
    Allowance, Error, Kind, Result,
    core::Settings,
    local::{Local, Shared, Store as _, local_broker},
};
use std::{path::PathBuf, sync::Arc, time::Duration};
pub(crate) use store::Disk;
use tokio::sync::mpsc;
use wh_log::{Damage, Detail, Missing};
use wh_types::{Clock, Entropy, OsEntropy, SystemClock};

/// How a queue is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The queue's own folder; made where it is missing.
    pub dir: PathBuf,
    /// Shards, and so units. May change from one opening to the next.
    pub shards: u32,
    /// After how long a block that is neither settled nor kept alive is delivered again.
    pub ack_wait: Duration,
    /// For how long an id is remembered.
    pub duplicate_window: Duration,
    /// What a tenant may keep until it is given its own allowance.
    pub default_allowance: Allowance,
    /// Dead letters have an nth of the tenant's bytes.
    pub dead_letter_share: u64,
    /// Most blocks remembered, settled or not; each takes about 80 bytes of memory. Beyond it history is forgotten early,
    /// and when that is not enough publishing is refused.
    pub max_blocks: usize,
    /// Bytes of one segment file, 64 KiB to 1 GiB.
    pub segment_bytes: u32,
    /// Bytes kept free on the disk for what freeing space takes, at most 1 GiB. 0: a full disk stays full until somebody
    /// makes room, or history grows old.
    pub reserve_bytes: u32,
    /// Bytes of bodies kept in memory.
    pub cache_bytes: usize,
    /// How often settled ranges are written down, history is dropped and segments are freed.
    pub upkeep_every: Duration,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where a new log's epoch comes from.
    pub entropy: Arc<dyn Entropy>,
    /// The file system.
    pub disk: Arc<dyn wh_log::disk::Disk>,
}

impl Options {
    /// The defaults: 8 shards, `ack_wait` 30 s, duplicates known for 2 minutes, 1 GiB a tenant with 5 minutes of
    /// history, segments of 64 MiB, 64 MiB of bodies in memory.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            dir: dir.into(),
            shards: 8,
            ack_wait: Duration::from_secs(30),
            duplicate_window: Duration::from_secs(120),
            default_allowance: Allowance {
                bytes: 1024 * MIB,
                table_bytes: 1024 * MIB,
                history: Duration::from_secs(300),
            },
            dead_letter_share: 10,
            max_blocks: 10_000_000,
            segment_bytes: 64 * 1024 * 1024,
            reserve_bytes: 4 * 1024 * 1024,
            cache_bytes: 64 * 1024 * 1024,
            upkeep_every: Duration::from_millis(250),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            disk: Arc::new(wh_log::disk::RealDisk),
        }
    }

    /// The largest body of a block a queue opened so can carry: 8 MiB, or less where the segments are small.
    #[must_use]
    pub fn max_body(&self) -> usize {
        (self.log().max_append_bytes() as usize / 4).min(8 * 1024 * 1024)
    }

    fn settings(&self) -> Settings {
        Settings {
            shards: self.shards,
            ack_wait: self.ack_wait,
            duplicate_window: self.duplicate_window,
            allowance: self.default_allowance,
            dead_letter_share: self.dead_letter_share,
            max_blocks: self.max_blocks,
        }
    }

    fn log(&self) -> wh_log::Options {
        let mut log = wh_log::Options::new(&self.dir);
        log.disk = Arc::clone(&self.disk);
        log.clock = Arc::clone(&self.clock);
        log.entropy = Arc::clone(&self.entropy);
        log.segment_bytes = self.segment_bytes;
        log.reserve_bytes = self.reserve_bytes;
        log.group_bytes = log.group_bytes.min(self.segment_bytes / 2);
        log
    }
}

/// What opening a queue found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Blocks that are kept.
    pub blocks: u64,
    /// Dead letters that are kept.
    pub dead_letters: u64,
    /// How long it took.
    pub took: Duration,
    /// Places in the log that cannot be read, at most the first 1,000.
    pub damages: Vec<Damage>,
    /// All there are.
    pub damage_count: u64,
    /// A write that was never answered was cut short by a crash; nothing is missing.
    pub torn: bool,
    /// Segments that were in the log and are not, or not whole, as long as others of their time are kept.
    pub missing: Vec<Missing>,
    /// Whether it is known which segments there should be. `false`: the queue is older than that note, or the note is
    /// lost.
    pub listed: bool,
}

/// The queue. Cloning gives another handle to the same one; it runs until [`crate::Broker::close`], or until the last
/// handle, feed and history is dropped.
#[derive(Clone, Debug)]
pub struct Broker {
    local: Local<Disk>,
    recovery: Arc<Recovery>,
}

impl Broker {
    /// Opens the queue of a folder, recovering what is in it. Needs a runtime with timers.
    ///
    /// # Errors
    /// `Denied` where the folder cannot be used: no folder, not writable, locked (the text names path and owner),
    /// another format version.
    ///
    /// # Cancel safety
    /// Detached: it is opened all the same, and given up at once.
    pub async fn open(options: Options) -> Result<Self> {
        let origin = options.clock.now();
        let clock = Arc::clone(&options.clock);
        let every = options.upkeep_every;
        let found = tokio::task::spawn_blocking(move || recover::recover(&options, Detail::Heads)).await;
        let found =
            found.map_err(|e| Error::new("open queue", Kind::Bug("recovery panicked".into())).with_source(e))?;
        let recover::Found { core, parts, mut recovery, spares, .. } = found?;
        let parts = Arc::new(parts);
        let (sender, jobs) = mpsc::unbounded_channel();
        parts.inner.lock().jobs = Some(sender);
        crate::metrics::missing(recovery.missing.len());
        recovery.took = clock.now().saturating_duration_since(origin);
        let shared = Shared::new(core, Disk(Arc::clone(&parts)), clock, origin);
        for (tenant, number) in spares {
            shared.store.note_gone(&tenant, &[number], 0);
        }
        let weak = Arc::downgrade(&shared);
        drop(parts.tasks.spawn("queue/commit", commit::run(weak.clone(), jobs)));
        drop(parts.tasks.spawn("queue/upkeep", upkeep::run(weak, parts.stop.clone(), every)));
        Ok(Self { local: Local(shared), recovery: Arc::new(recovery) })
    }

    /// What opening found.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }
}

local_broker!(Broker, local);
