//! The Sink that is a ClickHouse. What ClickHouse's errors mean is `wh-clickhouse`'s; here it only becomes the port's.

use crate::sink::{Failure, Insert, Refusal, Sink, SinkError};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use wh_clickhouse::{Client, ColumnKind, Error, SchemaHandle};
use wh_types::{Clock, Mono, Table};

/// While a refused batch is searched for its bad rows, a schema that was read this lately is not read again.
const FRESH: Duration = Duration::from_secs(1);

/// One tenant's ClickHouse: a client, and the schema it discovered.
#[derive(Debug)]
pub struct ClickHouse {
    client: Client,
    schema: Option<SchemaHandle>,
    clock: Arc<dyn Clock>,
    pool: String,
    refreshed: Mutex<Option<Mono>>,
}

impl ClickHouse {
    /// With a schema, ephemeral columns can be written, settings that only some versions know are pinned, and a row
    /// that names an unknown column lets the schema be read again before it is refused. Without one, none of that.
    #[must_use]
    pub fn new(client: Client, schema: Option<SchemaHandle>, clock: Arc<dyn Clock>) -> Self {
        let pool = client.pool_key().to_owned();
        Self { client, schema, clock, pool, refreshed: Mutex::new(None) }
    }

    /// The explicit column list, where the table needs one: without it an EPHEMERAL column cannot be named by a row.
    fn columns(&self, table: &Table) -> Option<Vec<String>> {
        let schema = self.schema.as_ref()?.get()?;
        let columns = schema.table(table.as_str())?.columns();
        let ephemeral = columns.iter().any(|column| column.kind == ColumnKind::Ephemeral);
        let writable = || columns.iter().filter(|c| c.writable()).map(|c| c.name.clone()).collect();
        ephemeral.then(writable)
    }

    /// The columns that a row may name, as the schema has them now.
    fn writable(&self, table: &Table) -> Option<Arc<BTreeSet<String>>> {
        let schema = self.schema.as_ref()?.get()?;
        let columns = schema.table(table.as_str())?.columns();
        Some(Arc::new(columns.iter().filter(|c| c.writable()).map(|c| c.name.clone()).collect()))
    }

    async fn insert_once(&self, insert: &Insert<'_>) -> Result<(), Error> {
        let columns = self.columns(insert.table);
        let request = wh_clickhouse::Insert {
            table: insert.table,
            columns: columns.as_deref(),
            encoding: insert.encoding,
            frames: &insert.frames,
            rows: insert.rows,
            token: Some(insert.token),
            settings: &[],
        };
        self.client.insert(request).await.map(drop)
    }

    /// Reads the schema again; who asks meanwhile shares the read. Not for a `part` of a batch for which that was done a
    /// moment ago. Gives whether it was read now.
    async fn refresh(&self, part: bool) -> bool {
        let Some(schema) = &self.schema else { return false };
        let now = self.clock.now();
        {
            let mut refreshed = self.refreshed.lock();
            if part && refreshed.is_some_and(|at| now.saturating_duration_since(at) < FRESH) {
                return false;
            }
            *refreshed = Some(now);
        }
        schema.refresh().await.is_ok()
    }
}

#[async_trait]
impl Sink for ClickHouse {
    fn pool(&self) -> &str {
        &self.pool
    }

    fn tables(&self) -> Option<Vec<Table>> {
        let schema = self.schema.as_ref()?.get()?;
        Some(schema.tables.keys().filter_map(|name| Table::new(name).ok()).collect())
    }

    async fn columns(&self, table: &Table) -> Option<Arc<BTreeSet<String>>> {
        self.writable(table)
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), SinkError> {
        let Err(error) = self.insert_once(&insert).await else { return Ok(()) };
        if error.unknown_table() {
            // The api's next request is judged by what is there now.
            self.refresh(insert.part).await;
        } else if error.unknown_column() {
            let error = if self.refresh(insert.part).await {
                let Err(again) = self.insert_once(&insert).await else { return Ok(()) };
                again
            } else {
                error
            };
            // What the view says now decides, not the error's words. A view that still has every column a row names
            // (another replica, a view read too early) leaves the row to be found by isolation.
            let columns = if error.unknown_column() { self.writable(insert.table) } else { None };
            return Err(SinkError { columns, ..translated(error) });
        }
        Err(translated(error))
    }
}

fn translated(error: Error) -> SinkError {
    let failure = match error.failure() {
        _ if error.unknown_table() => Failure::NoTable,
        // Whatever the code says, an answer that was lost leaves the rows in doubt.
        _ if error.in_doubt() => Failure::Unknown,
        wh_clickhouse::Failure::Unavailable => Failure::Unavailable,
        wh_clickhouse::Failure::Denied => Failure::Denied,
        wh_clickhouse::Failure::Unknown => Failure::Unknown,
        wh_clickhouse::Failure::Rejected => Failure::Rejected,
    };
    let code = error.code().map(|code| code.to_string()).or_else(|| error.status().map(|s| format!("http {s}")));
    SinkError {
        failure,
        refusal: Refusal {
            code: code.unwrap_or_else(|| "transport".to_owned()),
            reason: error.message().to_owned(),
            column: None,
        },
        splittable: error.splittable(),
        table_scoped: error.table_scoped(),
        // ClickHouse counts from 1
        row: error.row_hint().and_then(|row| row.checked_sub(1)),
        columns: None,
        source: Some(Box::new(error)),
    }
}
