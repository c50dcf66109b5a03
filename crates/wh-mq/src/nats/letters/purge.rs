//! Purging: letters are deleted one by one, where the user may.

use super::list;
use crate::{
    DeadLetter, DeadLetterId, Error, Kind, Result, metrics,
    nats::{error, shared::Shared},
};
use futures::StreamExt as _;
use wh_nats::Kind as Nats;
use wh_types::Tenant;

const OP: &str = "purge dead letters";
/// Deletes under way at once.
const AT_ONCE: usize = 32;

/// Removes a tenant's letters; gives how many there were.
///
/// # Errors
/// Unsupported (no right to delete), Unavailable, Unknown, Stopping.
pub(crate) async fn purge(shared: &Shared, tenant: &Tenant, ids: &[DeadLetterId]) -> Result<usize> {
    shared.running(OP)?;
    if !shared.spec().choices().dlq_delete {
        return Err(Error::new(OP, Kind::Unsupported("delete dead letters: its user has no right to")));
    }
    let found = list::find(shared, tenant, None, ids).await?;
    let deletes: Vec<_> = found.into_values().map(|(sequence, letter)| one(shared, sequence, letter)).collect();
    let mut deletes = futures::stream::iter(deletes).buffer_unordered(AT_ONCE);
    let (mut count, mut failed) = (0, None);
    // each is tried, whatever became of another
    while let Some(deleted) = deletes.next().await {
        match deleted {
            Ok(gone) => count += usize::from(gone),
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(count), Err)
}

async fn one(shared: &Shared, sequence: u64, letter: DeadLetter) -> Result<bool> {
    match shared.connection.api().message_delete(&shared.names().dead_letters, sequence).await {
        Ok(gone) => {
            if gone {
                metrics::letter(metrics::PURGED, &letter.tenant, &letter.table, &letter.code);
            }
            Ok(gone)
        }
        Err(error) if matches!(error.kind(), Nats::Refused { .. }) => {
            Err(Error::new(OP, Kind::Unsupported("delete dead letters: the server refuses it")).with_source(error))
        }
        Err(error) => Err(error::change(OP, error)),
    }
}
