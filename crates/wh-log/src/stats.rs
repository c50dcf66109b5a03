//! What the log counts.

use crate::{
    batch::Batch,
    error::{Kind, Result},
    record::Position,
};

/// What a log did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Groups written and synced.
    pub groups: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes of them, headers and padding included.
    pub bytes: u64,
    /// Groups that found the disk full.
    pub no_space: u64,
    /// Groups whose sync failed.
    pub sync_failed: u64,
    /// Groups that failed in another way.
    pub write_failed: u64,
    /// The last group found the disk full: the log refuses until there is space.
    pub full: bool,
}

impl Stats {
    pub(crate) fn count(&mut self, batch: &Batch, result: &Result<Position>) {
        match result {
            Ok(_) => {
                self.groups += 1;
                self.records += batch.records() as u64;
                self.bytes += u64::from(batch.len());
                // what the reserve took says nothing about others
                self.full &= batch.reserved;
            }
            Err(error) if error.kind() == Kind::NoSpace => {
                self.no_space += 1;
                self.full = true;
            }
            Err(error) if error.kind() == Kind::Sync => self.sync_failed += 1,
            Err(_) => self.write_failed += 1,
        }
    }
}
