//! Units whose owner is gone: making their blocks due (decision D14), and finding them.

use super::{
    metrics,
    pull::Reading,
    reading::{read, reading},
    release::GiveUp,
    term::{Life, Term},
    units::{Slot, pin},
};
use crate::{
    Error, Kind, Result, Unit,
    nats::{
        error,
        shared::{Durable, PartitionStream, Shared},
    },
};
use futures::{StreamExt as _, stream};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use wh_nats::ConsumerInfo;

const OP: &str = "release orphan";
/// At least so long apart are the two quiet readings.
const APART: Duration = Duration::from_millis(250);
/// How long the loop of a dropped feed may take to end.
const END: Duration = Duration::from_secs(2);
/// Durables read one by one, where a list left them out.
const MOST_READS: usize = 16;

/// What a reading of a unit without an owner here says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// Somebody is, or was just now, active on it.
    Held,
    /// There is nothing to make due.
    Idle,
    /// Quiet: look once more.
    Quiet,
    /// Quiet twice: it may be reset.
    Orphaned,
}

fn judge(found: &Reading, first: Option<&Reading>, ttl: Duration) -> Judgement {
    if found.pinned.is_some() || found.quiet.is_some_and(|quiet| quiet < ttl) {
        // a pin is somebody's; and without one a leader that just changed looks the same
        return if found.unsettled == 0 && found.pinned.is_none() { Judgement::Idle } else { Judgement::Held };
    }
    if found.unsettled == 0 {
        return Judgement::Idle;
    }
    match first {
        None => Judgement::Quiet,
        Some(first) if (first.delivered, first.unsettled) == (found.delivered, found.unsettled) => Judgement::Orphaned,
        Some(_) => Judgement::Held,
    }
}

/// Makes the blocks of a unit due whose owner is gone (mq28).
///
/// # Errors
/// Conflict when somebody was active on it, `NotFound`, Unavailable, Stopping.
pub(crate) async fn release_orphan(shared: &Arc<Shared>, unit: Unit) -> Result<()> {
    shared.running(OP)?;
    let (partition, durable) = shared.durable(OP, unit)?;
    let held = || Error::new(OP, Kind::UnitHeld(unit));
    let claimed = shared.units.claim(unit).ok_or_else(held)?;
    let delivered = match claimed.before() {
        Some(Slot::Orphan(term)) => Some(bury(shared, partition, durable, term).await?),
        _ => {
            foreign(shared, partition, durable, unit).await?;
            None
        }
    };
    claimed.set(delivered.map(Slot::Released));
    Ok(())
}

/// A dropped feed of this process: it is known to be gone, and its pin to be nobody's.
pub(super) async fn bury(
    shared: &Shared,
    partition: &PartitionStream,
    durable: &Durable,
    term: &Arc<Term>,
) -> Result<u64> {
    tokio::time::timeout(END, term.ended.wait()).await.map_err(|_| Error::new(OP, Kind::UnitHeld(term.unit)))?;
    let (pin, created) = {
        let inner = term.lock();
        (inner.pin.clone(), inner.created.clone())
    };
    let rest = term.fence(&shared.units, Life::Fenced);
    let (stream, durable, created) = (partition.name(), durable.name.as_str(), created.as_str());
    let give_up = GiveUp { shared, stream, durable, created, term, pin, cause: "orphan" };
    let outcome = give_up.run(&rest).await;
    if outcome.is_ok() {
        term.leave(&shared.units);
    }
    outcome
}

/// Another process's unit: only two quiet readings, the second right before the reset, show that it is nobody's.
async fn foreign(shared: &Shared, partition: &PartitionStream, durable: &Durable, unit: Unit) -> Result<()> {
    let api = shared.connection.api();
    let (stream, name) = (partition.name(), durable.name.as_str());
    let failed = |error| error::request(OP, error);
    let mut first: Option<Reading> = None;
    loop {
        let found = read(&api, stream, name).await.map_err(failed)?;
        match judge(&found, first.as_ref(), durable.pinned_ttl) {
            Judgement::Idle => return Ok(()),
            Judgement::Held => return Err(Error::new(OP, Kind::UnitHeld(unit))),
            Judgement::Quiet => {
                first = Some(found);
                tokio::time::sleep(APART).await;
            }
            Judgement::Orphaned => {
                metrics::reset("orphan");
                tracing::info!(%unit, blocks = found.unsettled, "unit {unit} has no owner, its blocks are made due");
                return api.reset(stream, name).await.map(drop).map_err(failed);
            }
        }
    }
}

/// The units that hold unsettled blocks and have no owner (mq29).
///
/// # Errors
/// Unavailable, Stopping.
pub(crate) async fn unowned(shared: &Arc<Shared>) -> Result<BTreeSet<Unit>> {
    const OP: &str = "unowned";
    shared.running(OP)?;
    let mut found = BTreeSet::new();
    for partition in shared.partitions.iter().chain(&shared.leftovers) {
        let list = shared.connection.api().consumer_list(partition.name()).await;
        let list = list.map_err(|error| error::request(OP, error))?;
        // a name in `missing` was not read by the list; it is not absent
        let ours = |name: &String| shared.names().shard_of(name).is_some();
        let reads = list.missing.into_iter().filter(ours).map(|name| {
            let (api, stream) = (shared.connection.api(), partition.name().to_owned());
            async move { api.consumer_info(&stream, &name).await.ok() }
        });
        let missing: Vec<Option<ConsumerInfo>> = stream::iter(reads).buffer_unordered(MOST_READS).collect().await;
        let units = list.infos.iter().chain(missing.iter().flatten()).filter_map(|info| {
            let shard = shared.names().shard_of(&info.name)?;
            let durable = partition.durables.get(&shard)?;
            let unit = Unit { partition: partition.index, shard };
            is_unowned(shared, unit, info, durable.pinned_ttl).then_some(unit)
        });
        found.extend(units);
    }
    Ok(found)
}

fn is_unowned(shared: &Shared, unit: Unit, info: &ConsumerInfo, ttl: Duration) -> bool {
    let Some(found) = reading(info) else { return false };
    if found.unsettled == 0 && found.pending == 0 {
        return false;
    }
    let slot = shared.units.get(unit);
    let quiet = found.quiet.is_none_or(|quiet| quiet >= ttl);
    match &slot {
        Some(Slot::Busy | Slot::Owned(_)) => false,
        Some(Slot::Orphan(_)) => found.pinned.is_none() || found.pinned == pin(slot.as_ref()),
        Some(Slot::Released(delivered)) => found.pinned.is_none() && (quiet || found.delivered == *delivered),
        None => found.pinned.is_none() && quiet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_nats::PinId;

    #[test]
    fn only_what_was_quiet_twice_is_an_orphan() {
        let ttl = Duration::from_secs(10);
        let quiet = Reading {
            created: String::new(),
            delivered: 9,
            unsettled: 4,
            pending: 3,
            waiting: 0,
            pinned: None,
            quiet: Some(ttl),
            undelivered: Some(ttl),
        };
        let pinned = Reading { pinned: Some(PinId::new("p")), ..quiet.clone() };
        let active = Reading { quiet: Some(ttl - Duration::from_millis(1)), ..quiet.clone() };
        let never = Reading { quiet: None, ..quiet.clone() };
        let idle = Reading { unsettled: 0, ..quiet.clone() };
        assert_eq!(judge(&pinned, None, ttl), Judgement::Held);
        assert_eq!(judge(&pinned, Some(&quiet), ttl), Judgement::Held);
        assert_eq!(judge(&Reading { unsettled: 0, ..pinned }, None, ttl), Judgement::Held, "its owner idles");
        assert_eq!(judge(&active, None, ttl), Judgement::Held);
        assert_eq!(judge(&active, Some(&quiet), ttl), Judgement::Held);
        assert_eq!(judge(&idle, None, ttl), Judgement::Idle);
        assert_eq!(judge(&Reading { unsettled: 0, ..active }, None, ttl), Judgement::Idle);
        for found in [quiet.clone(), never] {
            assert_eq!(judge(&found, None, ttl), Judgement::Quiet);
            assert_eq!(judge(&found, Some(&found), ttl), Judgement::Orphaned);
            let moved = Reading { delivered: 10, ..found.clone() };
            assert_eq!(judge(&moved, Some(&found), ttl), Judgement::Held);
            let settled = Reading { unsettled: 3, ..found.clone() };
            assert_eq!(judge(&settled, Some(&found), ttl), Judgement::Held, "somebody settles");
        }
    }
}
