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

    proptest! {
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
