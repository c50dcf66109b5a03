//! Looking into a queue's folder while no process has it: what is in it, and whether it can all be read.
//!
//! Nothing but the lock is written. What a crash left half done stays as it is; opening the queue puts it in order.

mod untouched;

use super::{Options, error::folder_failed, recover};
use crate::{Allowance, Error, Kind, Result};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use wh_log::Detail;
pub use wh_log::{Copied, Damage, Missing, Place};
use wh_types::{Cursor, Epoch, Table, Tenant};

/// What a queue's folder holds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The folder.
    pub dir: PathBuf,
    /// Which history it is.
    pub epoch: Option<Epoch>,
    /// The sequence of the next block.
    pub next_sequence: u64,
    /// By tenant.
    pub tenants: BTreeMap<Tenant, TenantReport>,
    /// Oldest first.
    pub segments: Vec<SegmentReport>,
    /// A write that was never answered was cut short by a crash; nothing is missing.
    pub torn: bool,
    /// What cannot be read, at most the first 1,000 places.
    pub damages: Vec<Damage>,
    /// All there are.
    pub damage_count: u64,
    /// Segments that were in the log and are not, or not whole; those that an earlier opening found too, as long as others
    /// of their time are kept.
    pub missing: Vec<Missing>,
    /// Whether it is known which segments there should be. `false`: a missing one would not be noticed.
    pub listed: bool,
}

/// What one tenant has in it.
#[derive(Clone, Debug, Default)]
pub struct TenantReport {
    /// Bytes charged to it.
    pub bytes: u64,
    /// Its budget. `None`: it was never given one, and the default is not known.
    pub budget_bytes: Option<u64>,
    /// By table.
    pub tables: BTreeMap<Table, TableReport>,
    /// Dead letters dropped for want of room, since the queue was made.
    pub dead_letters_dropped: u64,
}

/// What one table has in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableReport {
    /// Blocks that can be read: unsettled, and settled ones of the history.
    pub blocks: u64,
    /// Rows of them.
    pub rows: u64,
    /// Blocks not settled.
    pub unsettled_blocks: u64,
    /// Rows of them.
    pub unsettled_rows: u64,
    /// The first block that can be read.
    pub first: Option<Cursor>,
    /// The last one.
    pub last: Option<Cursor>,
    /// Dead letters kept.
    pub dead_letters: u64,
}

/// One segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its number.
    pub number: u64,
    /// Bytes of it that are written.
    pub bytes: u64,
    /// Bytes of it that are needed.
    pub live_bytes: u64,
    /// Whether it is written no more.
    pub sealed: bool,
    /// Whether damage was met in it.
    pub damaged: bool,
}

/// Lists what a queue's folder holds. Reads no bodies. Blocking.
///
/// `default` is what tenants have that were given nothing: it stands in the configuration and not in the log. `None`: it
/// is not known; then no budget is made up, and settled blocks count as long as they can be read.
///
/// # Errors
/// `Denied` where the folder is none of a queue, cannot be read, or is in use; the text names path and owner.
pub fn inspect(dir: &Path, default: Option<Allowance>) -> Result<Report> {
    look(dir, default, Detail::Heads)
}

/// The same, and reads every byte: damage in bodies is found too. Blocking, for as long as the disk takes.
///
/// # Errors
/// As [`inspect`]. Damage is no error: it is in the report.
pub fn verify(dir: &Path, default: Option<Allowance>) -> Result<Report> {
    look(dir, default, Detail::Full)
}

/// Copies a queue's folder, which a process may have, into another one, which is made or must be empty: what a crash a
/// moment ago would have left. Blocks that were stored in the last moment may not be in it. Blocking.
///
/// # Errors
/// `Denied` where the folder is none of a queue, the other is not empty, one cannot be read or written, or the queue frees
/// what is to be copied again and again; the text says which. `Exhausted` where there is no room.
pub fn copy(from: &Path, to: &Path) -> Result<Copied> {
    let copied = wh_log::copy(&wh_log::disk::RealDisk, from, to);
    copied.map_err(|error| folder_failed("copy queue", error))
}

fn look(dir: &Path, default: Option<Allowance>, detail: Detail) -> Result<Report> {
    let none = || Error::new("inspect queue", Kind::Folder(format!("{}: there is no queue", dir.display())));
    if !dir.is_dir() {
        return Err(none());
    }
    let mut options = Options::new(dir);
    options.disk = Arc::new(untouched::Untouched::default());
    options.default_allowance = default.unwrap_or(Allowance { history: Duration::MAX, ..options.default_allowance });
    let found = recover::recover(&options, detail)?;
    if found.created {
        return Err(none());
    }
    let (mut core, parts, recovery) = (found.core, found.parts, found.recovery);
    let status = core.status();
    let mut report = Report {
        dir: dir.to_owned(),
        epoch: Some(core.epoch()),
        next_sequence: core.draw_sequence(),
        torn: recovery.torn,
        damages: recovery.damages,
        damage_count: recovery.damage_count,
        missing: recovery.missing,
        listed: recovery.listed,
        ..Report::default()
    };
    for (tenant, status) in status {
        let budget = core.allowance_set(&tenant).or(default).map(|allowance| allowance.bytes);
        let of_tenant = report.tenants.entry(tenant).or_default();
        of_tenant.bytes = status.bytes.unwrap_or(0);
        of_tenant.budget_bytes = budget;
        of_tenant.dead_letters_dropped = status.dead_letters_dropped.unwrap_or(0);
        for (table, count) in status.dead_letters {
            of_tenant.tables.entry(table).or_default().dead_letters = count;
        }
    }
    for (tenant, table, held) in core.held() {
        let of_table = report.tenants.entry(tenant.clone()).or_default().tables.entry(table.clone()).or_default();
        let cursor = |sequence: Option<u64>| sequence.map(|sequence| core.cursor(sequence));
        of_table.blocks = held.blocks;
        of_table.rows = held.rows;
        of_table.unsettled_blocks = held.unsettled_blocks;
        of_table.unsettled_rows = held.unsettled_rows;
        (of_table.first, of_table.last) = (cursor(held.first), cursor(held.last));
    }
    let inner = parts.inner.lock();
    report.segments = parts
        .log
        .segments()
        .into_iter()
        .map(|segment| SegmentReport {
            number: segment.number,
            bytes: u64::from(segment.bytes),
            live_bytes: inner.usage.live_bytes_of(segment.number),
            sealed: segment.sealed,
            damaged: segment.damaged,
        })
        .collect();
    Ok(report)
}

impl Report {
    /// Whether everything that should be in it is there and can be read.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damage_count == 0 && self.missing.is_empty()
    }
}
