//! The store of answers as an API is given it, and what ends answers in it.

use super::view;
use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};
use wh_cache::{Cache, Change};
use wh_clickhouse::{Client, Relations, TableRef};
use wh_types::Tenant;

/// Most time for finding out what stands on a table: whoever wrote to it waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where answers of reads are kept.
#[derive(Clone, Debug)]
pub struct AnswerCache {
    /// The store.
    pub store: Arc<dyn Cache>,
    /// The largest answer that is kept, in bytes.
    pub max_value_bytes: usize,
    /// The longest life of an answer, whatever its tenant allows: short where writes are not told of.
    pub longest: Duration,
    /// Whether an answer ends with every mark of a table that it reads (decision D32): where the store is of this process
    /// alone, and others insert.
    pub by_marks: bool,
}

/// Ends the answers that a write changed, of every tenant whose database it is. Cloning shares it.
#[derive(Clone)]
pub struct Invalidation(Arc<Inner>);

struct Inner {
    store: Arc<dyn Cache>,
    grounds: Vec<Ground>,
}

/// Where a tenant's tables are.
struct Ground {
    tenant: Tenant,
    address: String,
    database: String,
}

impl Invalidation {
    /// For these tenants, each with the client of its database.
    pub fn new<'a>(store: Arc<dyn Cache>, tenants: impl IntoIterator<Item = (Tenant, &'a Client)>) -> Self {
        let ground = |(tenant, client): (Tenant, &Client)| Ground {
            tenant,
            address: client.address().to_owned(),
            database: client.database().to_owned(),
        };
        Self(Arc::new(Inner { store, grounds: tenants.into_iter().map(ground).collect() }))
    }

    /// Ends what read a table of the client's database, or what an insert into it is pushed on to. Where that cannot be
    /// found out, everything.
    ///
    /// # Cancel safety
    /// Detached once it has begun to end answers; before, nothing happened.
    pub async fn wrote(&self, client: &Client, relations: &Relations, table: &str) {
        match tokio::time::timeout(PATIENCE, relations.changed_by(table)).await {
            Ok(Ok(changed)) => self.changed(client, &changed).await,
            failed => {
                let error = failed.ok().and_then(Result::err);
                tracing::debug!(?error, table, "what stands on table {table} could not be asked: all answers end");
                self.everything(client).await;
            }
        }
    }

    /// Ends what read one of these tables on the client's server.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn changed(&self, client: &Client, tables: &BTreeSet<TableRef>) {
        let of = |ground: &Ground| {
            let name = |table| view::name(&ground.database, table);
            let changes: Vec<Change> =
                tables.iter().filter_map(name).map(|table| Change::table(ground.tenant.clone(), table)).collect();
            changes
        };
        self.end(self.on(client).flat_map(of).collect()).await;
    }

    /// Ends every answer of every tenant on the client's server.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn everything(&self, client: &Client) {
        self.end(self.on(client).map(|ground| Change::tenant(ground.tenant.clone())).collect()).await;
    }

    fn on<'a>(&'a self, client: &'a Client) -> impl Iterator<Item = &'a Ground> {
        self.0.grounds.iter().filter(|ground| ground.address == client.address())
    }

    async fn end(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        // what is owed is tried again by the store itself
        for outcome in self.0.store.invalidate(&changes).await {
            if let Err(error) = outcome {
                tracing::debug!(%error, "answers could not be ended");
            }
        }
    }
}

impl fmt::Debug for Invalidation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenants = self.0.grounds.iter().map(|ground| &ground.tenant);
        f.debug_tuple("Invalidation").field(&self.0.store).field(&tenants.collect::<Vec<_>>()).finish()
    }
}
