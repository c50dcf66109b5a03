//! Which member should own which unit. Pure, and the same in every process that read the same.

use std::collections::{BTreeMap, BTreeSet};
use wh_mq::Unit;
use wh_topology::unit_score;

/// Units by the membership slot that lists them.
pub(super) type Listed = BTreeMap<u32, BTreeSet<Unit>>;

/// Shares `units` among the members (the keys of `listed`), each between ⌊units/members⌋ and ⌈units/members⌉, moving as
/// few as possible away from whom they are listed by (decision D13).
///
/// A unit that two list counts for the one it scores higher with. Whom a unit leaves and where it goes follows the
/// scores, so that every process comes to the same answer.
pub(super) fn assign(units: &[Unit], listed: &Listed) -> BTreeMap<Unit, u32> {
    let Some(members) = u32::try_from(listed.len()).ok().filter(|members| *members > 0) else {
        return BTreeMap::new();
    };
    let score = |unit: Unit, slot: u32| (unit_score(&unit.to_string(), slot), std::cmp::Reverse(slot));
    let mut kept: BTreeMap<u32, Vec<Unit>> = listed.keys().map(|slot| (*slot, Vec::new())).collect();
    let mut free = Vec::new();
    for unit in units {
        let listing = listed.iter().filter(|(_, list)| list.contains(unit)).map(|(slot, _)| *slot);
        match listing.max_by_key(|slot| score(*unit, *slot)) {
            Some(slot) => kept.entry(slot).or_default().push(*unit),
            None => free.push(*unit),
        }
    }

    // Some may have one more than the others: first of all those that have it already. Not by how much they have: one
    // that acted before the others looked must not change their answer.
    let (least, mut more) = (units.len() / members as usize, units.len() % members as usize);
    let mut slots: Vec<u32> = kept.keys().copied().collect();
    slots.sort_by_key(|slot| (kept[slot].len() <= least, *slot));
    let mut room = BTreeMap::new();
    for slot in slots {
        let bound = least + usize::from(more > 0);
        more = more.saturating_sub(1);
        let own = kept.entry(slot).or_default();
        if own.len() > bound {
            own.sort_by_cached_key(|unit| std::cmp::Reverse(score(*unit, slot)));
            free.extend(own.drain(bound..));
        }
        room.insert(slot, bound - own.len());
    }

    let best = |unit: Unit| listed.keys().map(|slot| score(unit, *slot)).max();
    free.sort_by_cached_key(|unit| (std::cmp::Reverse(best(*unit)), *unit));
    for unit in free {
        let open = room.iter().filter(|(_, left)| **left > 0).map(|(slot, _)| *slot);
        // the bounds add up to the number of units, so there is room
        let Some(slot) = open.max_by_key(|slot| score(unit, *slot)) else { continue };
        room.entry(slot).and_modify(|left| *left -= 1);
        kept.entry(slot).or_default().push(unit);
    }
    kept.into_iter().flat_map(|(slot, units)| units.into_iter().map(move |unit| (unit, slot))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn units(partitions: u32, shards: u32) -> Vec<Unit> {
        (0..partitions).flat_map(|partition| (0..shards).map(move |shard| Unit { partition, shard })).collect()
    }

    fn listed(assigned: &BTreeMap<Unit, u32>, slots: &[u32]) -> Listed {
        let mut listed: Listed = slots.iter().map(|slot| (*slot, BTreeSet::new())).collect();
        for (unit, slot) in assigned {
            if let Some(list) = listed.get_mut(slot) {
                list.insert(*unit);
            }
        }
        listed
    }

    fn loads(assigned: &BTreeMap<Unit, u32>, slots: &[u32]) -> Vec<usize> {
        slots.iter().map(|slot| assigned.values().filter(|owner| *owner == slot).count()).collect()
    }

    fn even(assigned: &BTreeMap<Unit, u32>, slots: &[u32]) -> bool {
        let loads = loads(assigned, slots);
        loads.iter().max().unwrap_or(&0) - loads.iter().min().unwrap_or(&0) <= 1
    }

    /// The fewest units that must change their owner to reach an even split.
    fn fewest(units: &[Unit], listed: &Listed) -> usize {
        let (members, all) = (listed.len(), units.len());
        let mut counts: Vec<usize> = Vec::new();
        let mut seen = BTreeSet::new();
        for list in listed.values() {
            // in these tests nobody lists what another lists
            counts.push(list.iter().filter(|unit| units.contains(unit) && seen.insert(**unit)).count());
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let bounds = (0..members).map(|n| all / members + usize::from(n < all % members));
        let kept: usize = counts.iter().zip(bounds).map(|(count, bound)| (*count).min(bound)).sum();
        all - kept
    }

    fn moved(before: &Listed, after: &BTreeMap<Unit, u32>) -> usize {
        after.iter().filter(|(unit, slot)| !before.get(slot).is_some_and(|list| list.contains(unit))).count()
    }

    #[test]
    fn a_join_and_a_leave_move_only_what_they_must() {
        let all = units(4, 8);
        let mut slots = vec![0];
        let mut assigned = assign(&all, &listed(&BTreeMap::new(), &slots));
        for (joiner, must) in [(1, 16), (2, 10), (3, 8), (4, 6), (5, 5)] {
            slots.push(joiner);
            let before = listed(&assigned, &slots);
            assigned = assign(&all, &before);
            assert_eq!((moved(&before, &assigned), even(&assigned, &slots)), (must, true), "{joiner} joins");
        }
        for leaver in [2, 0, 5] {
            slots.retain(|slot| *slot != leaver);
            let before = listed(&assigned, &slots);
            let lost = all.len() - before.values().map(BTreeSet::len).sum::<usize>();
            assigned = assign(&all, &before);
            assert_eq!((moved(&before, &assigned), even(&assigned, &slots)), (lost, true), "{leaver} leaves");
        }
    }

    #[test]
    fn nobody_owns_anything_without_members_and_more_members_than_units_is_fine() {
        assert!(assign(&units(1, 4), &Listed::new()).is_empty());
        let slots: Vec<u32> = (0..64).collect();
        let assigned = assign(&units(1, 4), &listed(&BTreeMap::new(), &slots));
        assert_eq!(loads(&assigned, &slots).iter().sum::<usize>(), 4);
        assert!(even(&assigned, &slots));
    }

    proptest! {
        #[test]
        fn every_unit_has_one_owner_loads_are_even_and_the_least_moves(
            partitions in 1_u32..6, shards in 1_u32..17, slots in proptest::collection::btree_set(0_u32..64, 1..20),
            owners in proptest::collection::vec(proptest::option::of(0_usize..24), 96),
        ) {
            let all = units(partitions, shards);
            let slots: Vec<u32> = slots.into_iter().collect();
            // any listing: of live members, of some that are gone, of nobody
            let owned = all.iter().zip(&owners).filter_map(|(unit, owner)| Some((*unit, *slots.get((*owner)?)?)));
            let before = listed(&owned.collect(), &slots);
            let assigned = assign(&all, &before);
            prop_assert_eq!(assigned.keys().copied().collect::<Vec<_>>(), all.clone());
            prop_assert!(assigned.values().all(|slot| slots.contains(slot)));
            prop_assert!(even(&assigned, &slots));
            prop_assert_eq!(moved(&before, &assigned), fewest(&all, &before));
            // and it stays as it is
            prop_assert_eq!(assign(&all, &listed(&assigned, &slots)), assigned);
        }

        #[test]
        fn a_member_that_acted_already_changes_no_other_ones_answer(
            slots in proptest::collection::btree_set(0_u32..64, 2..10), joiner in 0_usize..10, early in 0_usize..10,
        ) {
            let all = units(4, 8);
            let slots: Vec<u32> = slots.into_iter().collect();
            let joiner = slots[joiner % slots.len()];
            let others: Vec<u32> = slots.iter().copied().filter(|slot| *slot != joiner).collect();
            let assigned = assign(&all, &listed(&BTreeMap::new(), &others));
            let before = listed(&assigned, &slots);
            let after = assign(&all, &before);
            // one member lists its new units before the others look
            let early = slots[early % slots.len()];
            let mut half = before.clone();
            half.insert(early, after.iter().filter(|(_, slot)| **slot == early).map(|(unit, _)| *unit).collect());
            // what a joiner lists is listed by its former owners, too
            prop_assert_eq!(assign(&all, &half), after);
        }
    }
}
