//! How far tables and units are settled. Not what was delivered: a block that was made due again is as one that never was,
//! so that everything unsettled counts as delivered.

use super::{Core, table::TableState};
use crate::Floor;
use wh_types::{Table, Tenant};

impl<B: Clone> Core<B> {
    /// How far a table is.
    pub(crate) fn floor(&mut self, tenant: &Tenant, table: &Table) -> Floor {
        let at = self.names.get(tenant).and_then(|at| self.tenants[at.0 as usize].tables.get(table)).copied();
        let (epoch, confirmed) = (self.epoch, self.confirmed);
        let first = at.and_then(|at| self.tables.get_mut(at.0 as usize)).and_then(first_unsettled);
        floor(epoch, confirmed, first)
    }

    /// How far all tables of a unit are.
    pub(crate) fn unit_floor(&mut self, shard: u32) -> Floor {
        let (epoch, confirmed) = (self.epoch, self.confirmed);
        let own = self.tables.iter_mut().filter(|table| table.unit == shard);
        floor(epoch, confirmed, own.filter_map(first_unsettled).min())
    }
}

fn first_unsettled<B>(table: &mut TableState<B>) -> Option<u64> {
    if table.unsettled_blocks == 0 { None } else { table.first_unsettled() }
}

fn floor(epoch: wh_types::Epoch, confirmed: u64, first: Option<u64>) -> Floor {
    let settled = first.map_or(confirmed, |first| (first - 1).min(confirmed));
    Floor { epoch, settled, delivered: if first.is_some() { confirmed } else { settled } }
}
