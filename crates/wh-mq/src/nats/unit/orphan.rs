//! Units whose owner is gone: making their blocks due (decision D14), and finding them.

use super::{
    metrics,
    pull::Reading,
    reading::{places, reading},
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
use wh_nats::{Api, ConsumerInfo};
use wh_types::Timestamp;

const OP: &str = "release orphan";
/// At least so long apart are the two looks at a unit that is reset, by the server's clock.
const APART: Duration = Duration::from_millis(250);
/// A unit that may be free so soon is waited for, and looked at so often where it is not by then.
const SOON: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(20);
/// How long the loop of a dropped feed may take to end.
const END: Duration = Duration::from_secs(2);
/// Durables read one by one, where a list left them out.
const MOST_READS: usize = 16;

/// A unit as it was looked at.
#[derive(Clone, Debug)]
struct Look {
    reading: Reading,
    /// Who answered, in a cluster: a pin is in its memory alone.
    leader: String,
    /// The server's clock.
    at: Option<Timestamp>,
    /// Up to where something was delivered: nobody knows after the reset.
    delivered: u64,
}

/// What a look at a unit without an owner here says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// Somebody is, or was of late, active on it: by its activity alone it is free after so long.
    Held(Duration),
    /// There is nothing to make due.
    Idle,
    /// Quiet: look once more.
    Quiet,
    /// It may be reset.
    Orphaned,
}

impl Look {
    /// Whether nothing happened on the unit since another look, and the same leader says so: one that just became it has
    /// no pin and may know of no activity.
    fn follows(&self, first: &Self) -> bool {
        let state = |look: &Self| (look.reading.delivered, look.reading.unsettled);
        self.leader == first.leader && self.reading.created == first.reading.created && state(self) == state(first)
    }

    fn since(&self, first: &Self) -> Duration {
        self.at.zip(first.at).map_or(Duration::ZERO, |(at, first)| at.since(first))
    }
}

/// Two looks are needed (decision D14). The first may still see a pin or activity, so that the reset follows their lapse at
/// once; the second must not.
fn judge(found: &Look, first: Option<&Look>, ttl: Duration) -> Judgement {
    let Reading { pinned, quiet, unsettled, .. } = &found.reading;
    let left = quiet.map_or(Duration::ZERO, |quiet| ttl.saturating_sub(quiet));
    if *unsettled == 0 && pinned.is_none() {
        return Judgement::Idle;
    }
    // a pin is somebody's; and without one a leader that just changed looks the same
    if pinned.is_some() || !left.is_zero() {
        return Judgement::Held(left);
    }
    match first {
        Some(first) if found.follows(first) && found.since(first) >= APART => Judgement::Orphaned,
        Some(_) | None => Judgement::Quiet,
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

/// Another process's unit: only two looks, the second right before the reset, show that it is nobody's.
async fn foreign(shared: &Shared, partition: &PartitionStream, durable: &Durable, unit: Unit) -> Result<()> {
    let api = shared.connection.api();
    let (stream, name) = (partition.name(), durable.name.as_str());
    let failed = |error| error::request(OP, error);
    let (mut first, mut waited) = (None::<Look>, Duration::ZERO);
    loop {
        let found = look(&api, stream, name).await.map_err(failed)?;
        if first.as_ref().is_some_and(|first| !found.follows(first)) {
            first = None;
        }
        let pause = match judge(&found, first.as_ref(), durable.pinned_ttl) {
            Judgement::Idle => return Ok(()),
            Judgement::Orphaned => {
                metrics::reset("orphan");
                shared.units.note_delivered(unit, found.delivered);
                let blocks = found.reading.unsettled;
                tracing::info!(%unit, blocks, "unit {unit} has no owner, its blocks are made due");
                return api.reset(stream, name).await.map(drop).map_err(failed);
            }
            Judgement::Quiet => APART.saturating_sub(first.as_ref().map_or(Duration::ZERO, |first| found.since(first))),
            // this look is the first of two when it is followed by another that late
            Judgement::Held(left) if first.is_none() => left.max(APART),
            Judgement::Held(left) => left,
        }
        .max(AGAIN);
        waited += pause;
        if waited > SOON {
            return Err(Error::new(OP, Kind::UnitHeld(unit)));
        }
        first.get_or_insert(found);
        tokio::time::sleep(pause).await;
    }
}

async fn look(api: &Api, stream: &str, durable: &str) -> std::result::Result<Look, wh_nats::Error> {
    let info = api.consumer_info(stream, durable).await?;
    let reading = reading(&info).ok_or_else(|| wh_nats::Error::from(wh_nats::Kind::NoResponders))?;
    let leader = info.raw["cluster"]["leader"].as_str().unwrap_or_default().to_owned();
    let delivered = places(&info).map_or(0, |(_, delivered)| delivered);
    Ok(Look { reading, leader, at: info.ts, delivered })
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

    const TTL: Duration = Duration::from_secs(10);
    const MS: Duration = Duration::from_millis(1);

    /// Quiet for so long, at so many milliseconds of the server's clock.
    fn quiet(at: i64, quiet: Option<Duration>) -> Look {
        let reading = Reading {
            created: String::new(),
            delivered: 9,
            unsettled: 4,
            pending: 3,
            waiting: 0,
            pinned: None,
            quiet,
            undelivered: quiet,
        };
        Look { reading, leader: "n1".to_owned(), at: Some(Timestamp::from_millis(at)), delivered: 0 }
    }

    fn with(look: &Look, change: impl FnOnce(&mut Reading)) -> Look {
        let mut look = look.clone();
        change(&mut look.reading);
        look
    }

    fn pinned(look: &Look) -> Look {
        with(look, |reading| reading.pinned = Some(PinId::new("p")))
    }

    #[test]
    fn a_unit_with_a_pin_or_activity_is_held_and_an_empty_one_is_idle() {
        let (now, then) = (quiet(1_000, Some(TTL)), quiet(0, Some(TTL)));
        let active = quiet(1_000, Some(TTL - MS));
        assert_eq!(judge(&pinned(&now), None, TTL), Judgement::Held(Duration::ZERO));
        assert_eq!(judge(&pinned(&now), Some(&then), TTL), Judgement::Held(Duration::ZERO));
        assert_eq!(judge(&active, None, TTL), Judgement::Held(MS));
        assert_eq!(judge(&active, Some(&then), TTL), Judgement::Held(MS));
        let empty = |look: &Look| with(look, |reading| reading.unsettled = 0);
        assert_eq!(judge(&empty(&pinned(&now)), None, TTL), Judgement::Held(Duration::ZERO), "its owner idles");
        assert_eq!(judge(&empty(&now), None, TTL), Judgement::Idle);
        assert_eq!(judge(&empty(&active), None, TTL), Judgement::Idle);
    }

    #[test]
    fn only_what_two_looks_at_one_leader_found_unchanged_is_an_orphan() {
        for ago in [Some(TTL), None] {
            let (first, second) = (quiet(750, ago), quiet(1_000, ago));
            assert_eq!(judge(&second, None, TTL), Judgement::Quiet);
            assert_eq!(judge(&second, Some(&first), TTL), Judgement::Orphaned);
            // the first may see what is about to lapse
            assert_eq!(judge(&second, Some(&pinned(&first)), TTL), Judgement::Orphaned);
            assert_eq!(judge(&second, Some(&quiet(750, Some(TTL - 250 * MS))), TTL), Judgement::Orphaned);
            assert_eq!(judge(&second, Some(&quiet(751, ago)), TTL), Judgement::Quiet, "too soon");
            for (other, why) in [
                (Look { leader: "n2".to_owned(), ..first.clone() }, "another leads it"),
                (Look { at: None, ..first.clone() }, "nobody knows when that was"),
                (with(&first, |reading| reading.delivered = 8), "somebody takes"),
                (with(&first, |reading| reading.unsettled = 5), "somebody settles"),
                (with(&first, |reading| reading.created = "later".to_owned()), "another durable"),
            ] {
                assert_eq!(judge(&second, Some(&other), TTL), Judgement::Quiet, "{why}");
            }
        }
    }
}
