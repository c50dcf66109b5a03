//! Reading back what a life before left.

use super::{
    Options, error,
    live::Live,
    record::{Read, Said},
    table::{Claim, Table},
    when,
};
use crate::Result;
use std::{sync::Arc, time::Duration};
use wh_log::{Detail, Log, Opening, Position, RecordRef};
use wh_types::Mono;

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
    let (table, mut live) = (Table::new(&*options.entropy), Live::default());
    let mut recovery = Recovery::default();
    let opening = Opening::begin(options.log()).map_err(|error| error::of("open", &error))?;
    let shown = opening.replay(Position::START, Detail::Full, |record| {
        if replay(&table, &mut live, &record, began, now).is_none() {
            recovery.damaged += 1;
        }
    });
    let (log, recovered) = shown.map_err(|error| error::of("open", &error))?;
    recovery.damaged += recovered.damage_count;
    recovery.missing = recovered.missing.len() as u64;
    recovery.torn = recovered.torn;
    for mut shard in table.each() {
        // of these a commit of unknown outcome was written after all, and the claim was then taken over
        for segment in shard.drop_committed_claims() {
            live.resolved(segment, 1);
        }
        recovery.known += shard.len() as u64;
        recovery.claims += shard.claims.len() as u64;
    }
    recovery.took = options.clock.now().saturating_duration_since(began);
    Ok(Found { log, table, live, recovery })
}

/// What a record did when it was written. The order of the log is the order in which each key's states came, but for
/// keys that were copied forward while they expired.
fn replay(table: &Table, live: &mut Live, record: &RecordRef<'_>, mono: Mono, now: u32) -> Option<()> {
    let read = Read::decode(record.head.kind, record.meta, record.body?)?;
    let segment = record.place.segment;
    let mut counted = 0;
    match read.said {
        Said::Claimed(token, origin) => {
            let origin = Arc::new(origin);
            for (hash, payload) in read.keys() {
                let mut shard = table.shard(hash);
                counted += 1;
                let claim = Claim {
                    token,
                    origin: Arc::clone(&origin),
                    until: mono,
                    payload,
                    segment: Some(segment),
                    writing: false,
                };
                if let Some(before) = shard.claims.insert(hash, claim).and_then(|claim| claim.segment) {
                    live.resolved(before, 1);
                }
            }
            live.claimed(segment, counted);
        }
        Said::Committed { until } => {
            for (hash, payload) in read.keys() {
                let mut shard = table.shard(hash);
                // a copy of what was forgotten meanwhile and claimed anew
                if shard.claims.get(&hash).is_some_and(|claim| when::second(claim.origin.at) >= until) {
                    continue;
                }
                if let Some(claim) = shard.claims.remove(&hash)
                    && let Some(before) = claim.segment
                {
                    live.resolved(before, 1);
                }
                if until > now {
                    counted += 1;
                    shard.know(hash, until, payload);
                }
            }
            if counted > 0 {
                live.committed(segment, when::bucket(when::second(record.head.time), until), counted);
            }
        }
        Said::Released => {
            for (hash, _) in read.keys() {
                if let Some(claim) = table.shard(hash).claims.remove(&hash)
                    && let Some(before) = claim.segment
                {
                    live.resolved(before, 1);
                }
            }
        }
    }
    Some(())
}
