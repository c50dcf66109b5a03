//! The tenants this process serves, and what each brings. Not where their settings come from.

use crate::{dedupe::DedupeRules, pipes::Pipes};
use std::{collections::HashMap, time::Duration};
use wh_clickhouse::{Client, SchemaHandle};
use wh_types::Tenant;

/// How records are judged (decision D6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Also refuses what ClickHouse would zero or default in silence.
    #[default]
    Strict,
    /// Lets ClickHouse decide.
    Lenient,
}

/// Bounds and modes of one tenant.
#[derive(Clone, Debug)]
pub struct TenantLimits {
    /// How records are judged.
    pub mode: Mode,
    /// The same for single tables, by name.
    pub table_modes: HashMap<String, Mode>,
    /// How events are told apart. Without a store in [`Parts`](crate::Parts) they are not.
    pub dedupe: DedupeRules,
    /// Largest record, in bytes of its compact text.
    pub max_row_bytes: usize,
    /// Most rows a structured query gives; what is cut off is said in `X-Truncated`.
    pub max_result_rows: u64,
    /// The longest life of a kept answer; zero: none is kept.
    pub cache_ttl: Duration,
    /// The length of the steps from which ages in queries are counted, so that queries that come shortly after each other
    /// are the same; zero: ages are exact.
    pub time_step: Duration,
    /// Most time for a query, ClickHouse's and ours.
    pub query_timeout: Duration,
    /// Most open streams of the tenant in this process.
    pub max_streams: usize,
}

impl TenantLimits {
    /// How records of one table are judged.
    #[must_use]
    pub fn mode_of(&self, table: &str) -> Mode {
        self.table_modes.get(table).copied().unwrap_or(self.mode)
    }
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            mode: Mode::Strict,
            table_modes: HashMap::new(),
            dedupe: DedupeRules::default(),
            max_row_bytes: 1 << 20,
            max_result_rows: 10_000,
            cache_ttl: Duration::from_secs(3_600),
            time_step: Duration::from_secs(60),
            query_timeout: Duration::from_secs(30),
            max_streams: 10_000,
        }
    }
}

/// One served tenant.
#[derive(Clone, Debug)]
pub struct TenantRuntime {
    /// Who.
    pub tenant: Tenant,
    /// What the tenant's database holds.
    pub schema: SchemaHandle,
    /// Runs the tenant's queries. Inserts have a client of their own, elsewhere.
    pub clickhouse: Client,
    /// Bounds.
    pub limits: TenantLimits,
    /// Its pipes.
    pub pipes: Pipes,
    /// The role of who presents nothing; without one they may run no pipe.
    pub default_role: Option<String>,
}

/// The tenants to serve. Of two with the same id the later one counts.
pub type Tenants = Vec<TenantRuntime>;
