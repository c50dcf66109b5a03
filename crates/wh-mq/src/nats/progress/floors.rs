//! What the durables know of tables, asked for at most once a second each, however many want to know.

use crate::{
    Error, Floor, Kind, Result, Unit,
    nats::{error, shared::Shared, unit::places},
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use wh_types::{Mono, Table, Tenant};

/// An answer may be so old.
const FRESH: Duration = Duration::from_millis(500);
const OP: &str = "progress floor";

type Answer = Arc<tokio::sync::Mutex<Option<(Mono, Floor)>>>;

/// The last answer of each unit's durable.
#[derive(Debug, Default)]
pub(crate) struct Floors(Mutex<HashMap<Unit, Answer>>);

impl Floors {
    /// How far a table is by its durable, of which all tables of the unit are part.
    pub(super) async fn of(&self, shared: &Shared, tenant: &Tenant, table: &Table) -> Result<Floor> {
        let route = shared.route(tenant, table);
        let unit = Unit { partition: route.partition, shard: route.shard };
        let answer = self.0.lock().entry(unit).or_default().clone();
        // who asks meanwhile waits for the same answer
        let mut answer = answer.lock().await;
        let fresh = |(at, _): &(Mono, Floor)| shared.clock().now().saturating_duration_since(*at) < FRESH;
        if let Some((_, floor)) = answer.filter(fresh) {
            return Ok(floor);
        }
        let partition = shared.partition_of(tenant, table);
        let durable = shared.names().durable(route.shard);
        let info = shared.connection.api().consumer_info(partition.name(), &durable).await;
        let info = info.map_err(|error| error::request(OP, error))?;
        let (settled, delivered) = places(&info).ok_or_else(|| Error::new(OP, Kind::Unavailable))?;
        let floor = Floor { epoch: partition.epoch(), settled, delivered };
        *answer = Some((shared.clock().now(), floor));
        Ok(floor)
    }
}
