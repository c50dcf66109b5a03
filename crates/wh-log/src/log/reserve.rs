//! What a log does for an owner that frees space on a full disk.

use super::Log;
use crate::{error::Result, record::Record, ticket::Places};

impl Log {
    /// As [`Log::append`], and written also while the reserve is spent: for what frees space, and nothing else.
    ///
    /// # Errors
    /// As `append`.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn append_reserved(&self, records: &[Record<'_>]) -> Result<Places> {
        self.shared.queue.append(records, true).await?.await
    }

    /// Gives up what is kept for a full disk: the reserve, and retired segments that wait to be overwritten. From now on,
    /// until [`Log::refill_reserve`] succeeds, the room is for [`Log::append_reserved`] and [`Log::write_checkpoint`];
    /// other appends are `NoSpace`, and retired segments are removed. Blocking.
    ///
    /// # Errors
    /// `Io`.
    pub fn spend_reserve(&self) -> Result<()> {
        self.shared.segments.spend_reserve()
    }

    /// Makes the reserve of [`Options::reserve_bytes`](crate::Options::reserve_bytes), or of `at_least` where that is
    /// more. Where it is there already, finds out whether there is as much room again. Success ends what
    /// [`Log::spend_reserve`] began, and [`Stats::full`](crate::Stats::full). Blocking, for as long as it takes to write as
    /// many bytes.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn refill_reserve(&self, at_least: u64) -> Result<()> {
        self.shared.segments.refill_reserve(at_least)?;
        if self.shared.segments.options.reserve_bytes > 0 {
            self.shared.stats.lock().full = false;
        }
        Ok(())
    }

    /// Whether the reserve was given up, and not made again yet.
    #[must_use]
    pub fn reserve_spent(&self) -> bool {
        self.shared.segments.reserve.spent()
    }

    /// Bytes of the reserve; 0: there is none.
    #[must_use]
    pub fn reserve_bytes(&self) -> u64 {
        self.shared.segments.reserve.bytes()
    }
}
