//! Reading back what a life before left: one thread reads the log, others put what it says into the table, each into
//! shards of its own.

mod replay;

use super::{Options, error, live::Live, table::Table};
use crate::{Result, when};
use replay::Replay;
use std::time::Duration;
use wh_log::{Detail, Log, Opening, Position};

/// What opening found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Keys that are known.
    pub known: u64,
    /// Claims that nobody resolved: they have lapsed.
    pub claims: u64,
    /// How long it took.
    pub took: Duration,
    /// Places in the log that cannot be read: keys that stood there are not known any more, and their rows may double.
    pub damaged: u64,
    /// Segments that were in the log and are not, or not whole.
    pub missing: u64,
    /// A write that was never answered was cut short by a crash; nothing is missing.
    pub torn: bool,
}

pub(super) struct Found {
    pub(super) log: Log,
    pub(super) table: Table,
    pub(super) live: Live,
    pub(super) recovery: Recovery,
}

/// Opens the log of a folder and replays it. Blocking.
pub(super) fn recover(options: &Options) -> Result<Found> {
    let began = options.clock.now();
    let now = when::second(options.clock.wall());
    let mut table = Table::new(&*options.entropy);
    let mut recovery = Recovery::default();
    let opening = Opening::begin(options.log()).map_err(|error| error::of("open", &error))?;
    let (shown, live) = Replay::run(&mut table, began, now, |replay| {
        opening.replay(Position::START, Detail::Full, |record| {
            if replay.take(&record).is_none() {
                recovery.damaged += 1;
            }
        })
    });
    let (log, recovered) = shown.map_err(|error| error::of("open", &error))?;
    recovery.damaged += recovered.damage_count;
    recovery.missing = recovered.missing.len() as u64;
    recovery.torn = recovered.torn;
    for shard in table.each() {
        recovery.known += shard.known() as u64;
        recovery.claims += shard.claims() as u64;
    }
    recovery.took = options.clock.now().saturating_duration_since(began);
    Ok(Found { log, table, live, recovery })
}
