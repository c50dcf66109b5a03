//! How a log is opened.

use crate::{
    disk::{Disk, RealDisk},
    error::{Error, Kind, Result},
    format::{GROUP_HEADER, SEGMENT_HEADER},
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use wh_types::{Clock, Entropy, OsEntropy, SystemClock};

const KIB: u32 = 1024;
const MIB: u32 = 1024 * KIB;

/// How a log is opened. [`Options::new`] gives what suits a queue on one disk.
#[derive(Clone, Debug)]
pub struct Options {
    /// The log's own folder; nothing else should be in it. Made where it is missing.
    pub dir: PathBuf,
    /// The file system.
    pub disk: Arc<dyn Disk>,
    /// For stamps in files that people read. Never decides anything.
    pub clock: Arc<dyn Clock>,
    /// For the id of a new log.
    pub entropy: Arc<dyn Entropy>,
    /// A segment is sealed when the next group would make it larger. 64 KiB to 1 GiB; 64 MiB by default. One append has
    /// at most half of it.
    pub segment_bytes: u32,
    /// A group takes no further append beyond this, 4 MiB by default. At most half a segment.
    pub group_bytes: u32,
    /// Bytes of appends that may wait for the disk, 32 MiB by default, and as many again of lazy ones. One append has at
    /// most this.
    pub queue_bytes: u32,
    /// Retired segments kept to be overwritten, 4 by default. Overwriting is faster than growing a new file.
    pub pool_segments: usize,
    /// Retired segments with damage in them that are kept for inspection, 4 by default.
    pub quarantine_segments: usize,
    /// How long a lazy record may wait when nothing else is written, 200 ms by default.
    pub lazy_after: Duration,
    /// How long after the last group the end of the log is marked, 50 ms by default. A marked end lets recovery tell
    /// damage in the last group from a group that was never finished.
    pub mark_after: Duration,
    /// Bytes that are kept free for the notes that freeing takes ([`Log::spend_reserve`](crate::Log::spend_reserve)), in
    /// a file that is removed when the disk is full: 4 MiB by default, 0 for none. At most 1 GiB.
    pub reserve_bytes: u32,
    /// Most segment files held open for reading, 256 by default.
    pub open_files: usize,
}

impl Options {
    /// The defaults, on the operating system's files.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            disk: Arc::new(RealDisk),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            segment_bytes: 64 * MIB,
            group_bytes: 4 * MIB,
            queue_bytes: 32 * MIB,
            pool_segments: 4,
            quarantine_segments: 4,
            lazy_after: Duration::from_millis(200),
            mark_after: Duration::from_millis(50),
            reserve_bytes: 4 * MIB,
            open_files: 256,
        }
    }

    /// Most bytes one append may take, headers and padding included.
    #[must_use]
    pub fn max_append_bytes(&self) -> u32 {
        (self.segment_bytes / 2).min(self.queue_bytes).saturating_sub(SEGMENT_HEADER + GROUP_HEADER)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let invalid = |text: String| Err(Error::new(Kind::Invalid, "open", text));
        if !(64 * KIB..=1024 * MIB).contains(&self.segment_bytes) {
            return invalid(format!("segment_bytes is {}, it must be 64 KiB to 1 GiB", self.segment_bytes));
        }
        if !(4 * KIB..=self.segment_bytes / 2).contains(&self.group_bytes) {
            return invalid(format!("group_bytes is {}, it must be 4 KiB to half of segment_bytes", self.group_bytes));
        }
        if self.queue_bytes < self.group_bytes {
            return invalid(format!("queue_bytes is {}, it must be at least group_bytes", self.queue_bytes));
        }
        if self.reserve_bytes > 1024 * MIB {
            return invalid(format!("reserve_bytes is {}, it must be at most 1 GiB", self.reserve_bytes));
        }
        if self.open_files == 0 {
            return invalid("open_files is 0, it must be at least 1".into());
        }
        Ok(())
    }
}
