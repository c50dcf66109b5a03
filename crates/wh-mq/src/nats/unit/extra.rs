//! Units beyond the configured counts: what a higher N or V left behind is delivered until nothing is left.

use crate::{
    Result, Unit,
    nats::{error, shared::Shared},
};
use std::{collections::BTreeSet, sync::Arc};

const OP: &str = "extra units";

/// Those that were found when the queue was opened, are still there and hold blocks. Where none was found nothing is
/// asked.
///
/// # Errors
/// Unavailable, Denied, Stopping.
pub(crate) async fn extra(shared: &Arc<Shared>) -> Result<BTreeSet<Unit>> {
    let mut units = BTreeSet::new();
    for partition in shared.partitions.iter().chain(&shared.leftovers) {
        let unit = |shard| Unit { partition: partition.index, shard };
        let known: BTreeSet<Unit> =
            partition.durables.keys().map(|shard| unit(*shard)).filter(|unit| shared.is_extra(*unit)).collect();
        if known.is_empty() {
            continue;
        }
        let list = match shared.connection.api().consumer_list(partition.name()).await {
            Ok(list) => list,
            // emptied and deleted by its operator
            Err(error) if error.is_gone() => continue,
            Err(error) => return Err(error::request(OP, error)),
        };
        let shard = |name: &String| shared.names().shard_of(name);
        // what a list leaves out was not read; it is not absent
        units.extend(list.missing.iter().filter_map(shard).map(unit).filter(|unit| known.contains(unit)));
        let holding = list.infos.iter().filter(|info| info.num_pending > 0 || info.num_ack_pending > 0);
        units.extend(holding.filter_map(|info| shard(&info.name)).map(unit).filter(|unit| known.contains(unit)));
    }
    Ok(units)
}
