//! The snapshot the log keeps for us: what recovery could not learn from the segments that are left.

use super::{
    codec::{Reader, Writer},
    record::{decode_allowance, encode_allowance},
};
use crate::core::{Snapshot, TableSnapshot, TenantSnapshot};
use wh_types::{BlockId, Table, Tenant, Timestamp};

/// Version 1 had no ids.
const VERSION: u32 = 2;

/// An id whose block's record is gone before its window is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptId {
    pub(super) id: BlockId,
    pub(super) sequence: u64,
    pub(super) rows: u32,
    pub(super) stored: Timestamp,
}

/// A snapshot, and what only the log's side knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) snapshot: Snapshot,
    /// Each table's number, in the order of the snapshot's tables.
    pub(super) numbers: Vec<u64>,
    pub(super) ids: Vec<KeptId>,
}

impl Content {
    /// Bytes of one id.
    pub(super) const ID_BYTES: usize = 36;

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        w.u32(VERSION);
        w.u64(self.snapshot.next_sequence);
        w.u32(count(self.snapshot.tables.len()));
        for (table, number) in self.snapshot.tables.iter().zip(&self.numbers) {
            w.u64(*number);
            w.text(table.tenant.as_str());
            w.text(table.table.as_str());
            w.u64(table.floor.0);
            w.i64(table.floor.1.as_nanos());
            w.u32(count(table.removed.len()));
            for (sequence, received) in &table.removed {
                w.u64(*sequence);
                w.i64(received.as_nanos());
            }
            w.u32(count(table.settled.len()));
            for (first, last) in &table.settled {
                w.u64(*first);
                w.u64(*last);
            }
        }
        w.u32(count(self.snapshot.tenants.len()));
        for tenant in &self.snapshot.tenants {
            w.text(tenant.tenant.as_str());
            w.u64(tenant.letters_dropped);
            match tenant.allowance {
                Some((revision, allowance)) => {
                    w.u64(revision);
                    encode_allowance(&mut w.0, &tenant.tenant, allowance);
                }
                None => w.u64(0),
            }
            w.u32(count(tenant.letters.len()));
            tenant.letters.iter().for_each(|number| w.u64(*number));
        }
        w.u32(count(self.ids.len()));
        for kept in &self.ids {
            w.0.extend_from_slice(&kept.id.0);
            w.u64(kept.sequence);
            w.u32(kept.rows);
            w.i64(kept.stored.as_nanos());
        }
        w.0
    }

    /// `None`: it was written by another version, or is not whole.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        let version = r.u32()?;
        if !(1..=VERSION).contains(&version) {
            return None;
        }
        let mut content = Self::default();
        content.snapshot.next_sequence = r.u64()?;
        let tables = r.list(30, |r| {
            let number = r.u64()?;
            let (tenant, table) = (Tenant::new(r.text()?).ok()?, Table::new(r.text()?).ok()?);
            let floor = (r.u64()?, Timestamp::from_nanos(r.i64()?));
            let removed = r.list(16, |r| Some((r.u64()?, Timestamp::from_nanos(r.i64()?))))?;
            let settled = r.list(16, |r| Some((r.u64()?, r.u64()?)))?;
            Some((number, TableSnapshot { tenant, table, floor, removed, settled }))
        })?;
        (content.numbers, content.snapshot.tables) = tables.into_iter().unzip();
        content.snapshot.tenants = r.list(20, |r| {
            let tenant = Tenant::new(r.text()?).ok()?;
            let letters_dropped = r.u64()?;
            let revision = r.u64()?;
            let allowance = if revision == 0 { None } else { Some((revision, decode_allowance(r)?.1)) };
            let letters = r.list(8, Reader::u64)?;
            Some(TenantSnapshot { tenant, allowance, letters_dropped, letters })
        })?;
        if version > 1 {
            content.ids = r.list(Self::ID_BYTES, |r| {
                let id = BlockId(r.bytes(16)?.try_into().ok()?);
                let (sequence, rows, stored) = (r.u64()?, r.u32()?, Timestamp::from_nanos(r.i64()?));
                Some(KeptId { id, sequence, rows, stored })
            })?;
        }
        r.is_empty().then_some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Allowance;
    use proptest::prelude::*;
    use std::time::Duration;

    fn content() -> Content {
        let at = Timestamp::from_nanos;
        let table = TableSnapshot {
            tenant: Tenant::new("acme").unwrap(),
            table: Table::new("a.b").unwrap(),
            floor: (4, at(-1)),
            removed: vec![(9, at(7))],
            settled: vec![(5, 9), (11, 11)],
        };
        let allowance = Allowance { bytes: 1, table_bytes: u64::MAX, history: Duration::new(5, 6) };
        let tenant = TenantSnapshot {
            tenant: Tenant::new("acme").unwrap(),
            allowance: Some((12, allowance)),
            letters_dropped: 3,
            letters: vec![8, 10],
        };
        let other = TenantSnapshot { allowance: None, tenant: Tenant::default(), ..tenant.clone() };
        let snapshot = Snapshot { next_sequence: 20, tables: vec![table], tenants: vec![tenant, other] };
        let kept = KeptId { id: BlockId([3; 16]), sequence: 9, rows: 500, stored: at(99) };
        Content { snapshot, numbers: vec![1], ids: vec![kept, kept] }
    }

    #[test]
    fn it_is_read_back_and_no_part_of_it_passes_for_the_whole() {
        let bytes = content().encode();
        assert_eq!(Content::decode(&bytes), Some(content()));
        for len in 0..bytes.len() {
            assert_eq!(Content::decode(&bytes[..len]), None, "{len}");
        }
    }

    #[test]
    fn what_the_version_before_wrote_is_read() {
        let bytes = Content { ids: Vec::new(), ..content() }.encode();
        let mut before = bytes[..bytes.len() - 4].to_vec();
        before[0] = 1;
        assert_eq!(Content::decode(&before), Some(Content { ids: Vec::new(), ..content() }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0_usize..400, byte: u8) {
            let mut bytes = content().encode();
            if let Some(target) = bytes.get_mut(at) {
                *target = byte;
            }
            Content::decode(&bytes);
        }
    }
}
