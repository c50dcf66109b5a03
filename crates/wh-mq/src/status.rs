//! What a queue holds, for metrics and the ops API. Not a health verdict.

use std::collections::BTreeMap;
use wh_types::{Epoch, Table, Tenant};

/// What the whole queue holds.
#[derive(Clone, Debug, Default)]
pub struct BrokerStatus {
    /// The history's epoch, where there is one (embedded).
    pub epoch: Option<Epoch>,
    /// Whether a publish would be taken now.
    pub accepting: bool,
    /// Why not, when it would not.
    pub reason: Option<String>,
    /// Bytes on the backend's disk, where it is known.
    pub disk_bytes: Option<u64>,
    /// By tenant.
    pub tenants: BTreeMap<Tenant, TenantStatus>,
}

/// What one tenant's share holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantStatus {
    /// Bytes charged: blocks not settled, and settled ones still inside the history window. `None` where the backend
    /// does not count them by tenant.
    pub bytes: Option<u64>,
    /// The budget, where there is one.
    pub budget_bytes: Option<u64>,
    /// Rows not settled. `None` where the backend counts blocks alone.
    pub unsettled_rows: Option<u64>,
    /// Blocks not settled.
    pub unsettled_blocks: u64,
    /// Dead letters kept, by table.
    pub dead_letters: BTreeMap<Table, u64>,
    /// Dead letters dropped because their share was full, since the queue was made. `None` where the backend does not
    /// say.
    pub dead_letters_dropped: Option<u64>,
}
