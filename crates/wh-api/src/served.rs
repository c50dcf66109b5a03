//! The served tenants at run time: finding a tenant, its tables, and what judges and publishes their rows.

use crate::{
    budget::Budget,
    codes,
    error::{ApiError, shown},
    ingest::{Coalescer, Plan, Publishing},
    tenant::TenantRuntime,
};
use arc_swap::ArcSwapOption;
use http::HeaderMap;
use parking_lot::RwLock;
use std::{collections::HashMap, fmt, sync::Arc};
use tokio::sync::Semaphore;
use wh_clickhouse::{Relations, Schema, TableSchema};
use wh_types::{Table, Tenant};

/// Every served tenant, by id.
pub(crate) struct Served(HashMap<Box<str>, Arc<TenantState>>);

/// A tenant, and its tables that have had rows.
#[derive(Debug)]
pub(crate) struct TenantState {
    pub(crate) runtime: TenantRuntime,
    /// What stands behind the tenant's tables.
    pub(crate) relations: Relations,
    /// The tenant's part of what the process may hold.
    pub(crate) budget: Budget,
    /// Places for its streams.
    pub(crate) streams: Arc<Semaphore>,
    tables: RwLock<HashMap<Box<str>, Arc<TableState>>>,
}

/// What outlives a request for a table. Stays while the process runs: a table costs nothing while it is quiet.
#[derive(Debug)]
pub(crate) struct TableState {
    pub(crate) coalescer: Arc<Coalescer>,
    plan: ArcSwapOption<Plan>,
}

impl Served {
    /// Of two tenants with the same id the later one counts.
    pub(crate) fn new(tenants: impl IntoIterator<Item = TenantRuntime>, budget: impl Fn() -> Budget) -> Self {
        let state = |runtime: TenantRuntime| {
            let relations = Relations::new(runtime.clickhouse.clone(), runtime.schema.clone());
            let streams = Arc::new(Semaphore::new(runtime.limits.max_streams.min(Semaphore::MAX_PERMITS)));
            Arc::new(TenantState { runtime, relations, budget: budget(), streams, tables: RwLock::default() })
        };
        Self(tenants.into_iter().map(|one| (one.tenant.as_str().into(), state(one))).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<TenantState>> {
        self.0.values()
    }

    /// The tenant a data request is for: `X-Tenant-ID`, `0` where it is absent or empty.
    pub(crate) fn of_headers(&self, headers: &HeaderMap) -> Result<&Arc<TenantState>, ApiError> {
        let mut values = headers.get_all("x-tenant-id").iter();
        let value = values.next().map_or(&b""[..], |value| value.as_bytes());
        if values.next().is_some() {
            return Err(ApiError::new(&codes::TENANT_INVALID, "X-Tenant-ID is given more than once"));
        }
        self.named(value)
    }

    /// The tenant of that id; an empty one means `0`.
    pub(crate) fn named(&self, id: &[u8]) -> Result<&Arc<TenantState>, ApiError> {
        let id = if id.is_empty() { &b"0"[..] } else { id };
        if let Some(found) = std::str::from_utf8(id).ok().and_then(|id| self.0.get(id)) {
            return Ok(found);
        }
        match Tenant::new(&String::from_utf8_lossy(id)) {
            Ok(_) => Err(ApiError::new(&codes::TENANT_NOT_FOUND, format!("unknown tenant: {}", shown(id)))),
            Err(why) => Err(ApiError::new(&codes::TENANT_INVALID, format!("invalid tenant id: {why}"))),
        }
    }
}

impl TenantState {
    /// The tenant's tables as they are known now.
    pub(crate) fn schema(&self) -> Result<Arc<Schema>, ApiError> {
        let missing = || ApiError::new(&codes::SCHEMA_NOT_LOADED, format!("schema not loaded yet: {}", self.unread()));
        self.runtime.schema.get().ok_or_else(missing)
    }

    /// Why the tables are not known, as anybody may be told it.
    pub(crate) fn unread(&self) -> String {
        match self.runtime.schema.stats().last_code {
            Some(code) => format!("ClickHouse answers with its error {code}"),
            None => "ClickHouse has not answered".to_owned(),
        }
    }

    /// A table of the tenant.
    pub(crate) fn table_schema(&self, name: &str) -> Result<Arc<TableSchema>, ApiError> {
        let schema = self.schema()?;
        let found = schema.table(name).map(Arc::clone);
        found
            .ok_or_else(|| ApiError::new(&codes::TABLE_NOT_FOUND, format!("unknown table: {}", shown(name.as_bytes()))))
    }

    /// A table to write to, with the plan of its schema as it is known now.
    pub(crate) fn table(
        &self,
        name: &str,
        publishing: &Arc<Publishing>,
    ) -> Result<(Arc<TableState>, Arc<Plan>), ApiError> {
        let schema = self.table_schema(name)?;
        if !schema.takes_rows() {
            let text = format!("table {} is a {} and takes no rows", shown(name.as_bytes()), schema.engine);
            return Err(ApiError::new(&codes::TABLE_NOT_WRITABLE, text));
        }
        let known = self.tables.read().get(name).map(Arc::clone);
        let table = match known {
            Some(table) => table,
            None => self.add(name, publishing)?,
        };
        let plan = match table.plan.load_full() {
            Some(plan) if Arc::ptr_eq(&plan.schema, &schema) => plan,
            _ => {
                let limits = &self.runtime.limits;
                let rule = publishing.claims.as_ref().and_then(|_| limits.dedupe.of(name));
                let plan = Arc::new(Plan::new(schema, limits.mode_of(name)).with_id(rule));
                table.plan.store(Some(Arc::clone(&plan)));
                plan
            }
        };
        Ok((table, plan))
    }

    #[cold]
    fn add(&self, name: &str, publishing: &Arc<Publishing>) -> Result<Arc<TableState>, ApiError> {
        let table = Table::new(name).map_err(|why| ApiError::new(&codes::TABLE_NOT_FOUND, why.to_string()))?;
        let make = || {
            let rule = self.runtime.limits.dedupe.of(name);
            let coalescer = Coalescer::new(self.runtime.tenant.clone(), table, rule, Arc::clone(publishing));
            Arc::new(TableState { coalescer: Arc::new(coalescer), plan: ArcSwapOption::empty() })
        };
        Ok(Arc::clone(self.tables.write().entry(name.into()).or_insert_with(make)))
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
