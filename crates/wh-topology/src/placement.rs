//! Placement: which partition and shard a table belongs to, and how strongly a member is drawn to a unit.
//!
//! The functions and their vectors are the interface: two processes that disagree would split a table.

use wh_types::{Table, Tenant, TopicKey};

/// Where a table's blocks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// 0..N.
    pub partition: u32,
    /// 0..V.
    pub shard: u32,
}

/// FNV-1a, 64 bits.
#[must_use]
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The finaliser of splitmix64: every input bit reaches every output bit.
#[must_use]
pub fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Jump consistent hash (Lamping and Veach): raising `buckets` moves only the keys that go to the new buckets.
#[must_use]
pub fn jump(mut key: u64, buckets: u32) -> u32 {
    let (mut chosen, mut next) = (0_u32, 0_u64);
    while next < u64::from(buckets) {
        chosen = u32::try_from(next).unwrap_or(u32::MAX);
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        #[expect(clippy::cast_precision_loss, reason = "the algorithm is defined over f64; both stay below 2^53")]
        let stretch = (1_u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "truncation is the algorithm")]
        let jumped = (f64::from(chosen + 1) * stretch) as u64;
        next = jumped;
    }
    chosen
}

/// Where a table's blocks go among `partitions` × `shards`. Zero counts as one.
///
/// The second hash must be independent of the first: with one key for both, a table in partition 1 of 2 could never be
/// in shard 0 of 4, and shards would stand empty.
#[must_use]
pub fn route(tenant: &Tenant, table: &Table, partitions: u32, shards: u32) -> Route {
    let hash = fnv1a64(TopicKey::new(tenant.clone(), table.clone()).to_string().as_bytes());
    Route { partition: jump(hash, partitions.max(1)), shard: jump(mix(hash), shards.max(1)) }
}

/// How strongly membership slot `slot` is drawn to a unit (rendezvous hashing): the highest score owns it.
#[must_use]
pub fn unit_score(unit: &str, slot: u32) -> u64 {
    let mut bytes = unit.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(slot.to_string().as_bytes());
    mix(fnv1a64(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn routes_match_the_reference_vectors() {
        let cases = [
            ("0", "clicks", 0x5bb8_5604_1152_2d42, 0x1532_c9de_6782_2552, [0, 0, 0, 0], [0, 0, 23, 200]),
            ("acme", "events", 0xbb13_6c07_7452_5076, 0xa9b3_3b15_b6f3_f0d8, [0, 0, 2, 2], [0, 0, 22, 255]),
            ("acme", "a.b*c> d%e", 0x6f70_d0e0_5402_f27a, 0xaa9e_f57c_3bd0_d638, [0, 0, 3, 3], [0, 3, 20, 20]),
            ("globex", "events", 0x5bcd_39cd_f3a7_bb81, 0xc996_bd7f_2415_b245_u64, [0, 1, 3, 3], [0, 4, 26, 234]),
            ("tenant-1", "événements", 0x9b86_a9ee_1ccb_8213, 0x9d8d_99a1_df5c_e652, [0, 0, 0, 0], [0, 6, 6, 108]),
        ];
        for (tenant, table, hash, mixed, partitions, shards) in cases {
            let (tenant, table) = (Tenant::new(tenant).unwrap(), Table::new(table).unwrap());
            let key = TopicKey::new(tenant.clone(), table.clone()).to_string();
            assert_eq!(fnv1a64(key.as_bytes()), hash, "{key}");
            assert_eq!(mix(hash), mixed, "{key}");
            for (n, partition) in [1, 2, 4, 8].into_iter().zip(partitions) {
                assert_eq!(route(&tenant, &table, n, 1).partition, partition, "{key} N={n}");
            }
            for (v, shard) in [1, 8, 32, 256].into_iter().zip(shards) {
                assert_eq!(route(&tenant, &table, 1, v).shard, shard, "{key} V={v}");
            }
        }
    }

    #[test]
    fn scores_match_the_reference_vectors() {
        assert_eq!(unit_score("WH_INGEST_0/wh-ingest-0", 0), 0x2abb_77fc_57ef_34e8);
        assert_eq!(unit_score("WH_INGEST_0/wh-ingest-0", 1), 0xd6ab_f2c2_951b_b1b5);
    }

    fn tables(count: u32) -> Vec<(Tenant, Table)> {
        let name = |n: u32| (Tenant::new(&format!("t{}", n % 7)).unwrap(), Table::new(&format!("table {n}")).unwrap());
        (0..count).map(name).collect()
    }

    #[test]
    fn tables_spread_over_all_units_and_no_shard_stands_empty() {
        // with one hash for both choices, partition 1 of 2 would leave shards empty
        for (partitions, shards) in [(2, 4), (4, 8), (8, 8)] {
            let mut units = std::collections::BTreeMap::<_, usize>::new();
            for (tenant, table) in tables(200 * partitions * shards) {
                *units.entry(route(&tenant, &table, partitions, shards)).or_default() += 1;
            }
            assert_eq!(units.len(), (partitions * shards) as usize);
            let (least, most) = (units.values().min().unwrap(), units.values().max().unwrap());
            assert!(*least > 130 && *most < 280, "{least} to {most} tables a unit, 200 expected");
        }
    }

    #[test]
    fn raising_n_moves_its_share_of_tables_into_the_new_partitions_only() {
        for (before, after) in [(1, 2), (2, 4), (4, 5), (4, 8)] {
            let all = tables(8_000);
            let routes = |n| all.iter().map(move |(tenant, table)| route(tenant, table, n, 8));
            let moved: Vec<_> = routes(before).zip(routes(after)).filter(|(old, new)| old != new).collect();
            assert!(moved.iter().all(|(old, new)| new.partition >= before && old.shard == new.shard));
            let expected = 8_000 * (after - before) as usize / after as usize;
            assert!(moved.len().abs_diff(expected) < 300, "{before} to {after}: {} of {expected}", moved.len());
        }
    }

    #[test]
    fn a_member_is_drawn_to_about_its_share_of_units() {
        let units: Vec<_> = (0..4_000).map(|n| format!("WH_INGEST_{}/wh-ingest-{}", n / 256, n % 256)).collect();
        let mut owned = [0_u32; 5];
        for unit in &units {
            let best = (0..5).max_by_key(|slot| unit_score(unit, *slot)).unwrap();
            owned[best as usize] += 1;
        }
        assert!(owned.iter().all(|count| (700..900).contains(count)), "{owned:?}");
    }

    proptest! {
        #[test]
        fn a_route_is_within_its_counts_and_the_same_again(
            tenant in "[A-Za-z0-9_-]{1,64}", table in "[^\0]{1,60}", partitions in 0_u32..300, shards in 0_u32..300,
        ) {
            let (tenant, table) = (Tenant::new(&tenant).unwrap(), Table::new(&table).unwrap());
            let first = route(&tenant, &table, partitions, shards);
            prop_assert!(first.partition < partitions.max(1) && first.shard < shards.max(1));
            prop_assert_eq!(route(&tenant, &table, partitions, shards), first);
        }

        #[test]
        fn one_count_never_moves_what_the_other_decides(table in "[a-z]{1,12}", n in 1_u32..20, m in 1_u32..20, v in 1_u32..40) {
            let (tenant, table) = (Tenant::default(), Table::new(&table).unwrap());
            prop_assert_eq!(route(&tenant, &table, n, v).shard, route(&tenant, &table, m, v).shard);
            prop_assert_eq!(route(&tenant, &table, n, v).partition, route(&tenant, &table, n, m).partition);
        }

        #[test]
        fn lowering_a_count_moves_only_what_was_in_the_removed(key: u64, more in 2_u32..300, less in 1_u32..300) {
            let (less, more) = (less.min(more - 1), more);
            let (before, after) = (jump(key, more), jump(key, less));
            prop_assert!(before >= less || after == before);
        }

        #[test]
        fn a_jump_stays_in_range_and_moves_only_into_new_buckets(key: u64, buckets in 1_u32..300) {
            let (before, after) = (jump(key, buckets), jump(key, buckets + 1));
            prop_assert!(before < buckets);
            prop_assert!(after == before || after == buckets);
        }
    }

    #[test]
    fn raising_the_count_moves_about_one_in_n() {
        let moved = (0..20_000_u64).filter(|k| jump(mix(*k), 8) != jump(mix(*k), 9)).count();
        assert!((1_800..2_700).contains(&moved), "20,000 / 9 = 2,222 expected, {moved} moved");
    }
}
