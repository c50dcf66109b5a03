//! The port `Sink`: where batches go. Duties, not mechanism; ClickHouse's own words stop at its implementation.

use async_trait::async_trait;
use bytes::Bytes;
use std::{collections::BTreeSet, error::Error as StdError, fmt, sync::Arc};
use wh_types::{Encoding, Table, Tenant};

/// One insert: rows of one table, as compressed frames end to end.
#[derive(Debug)]
pub struct Insert<'a> {
    /// The table.
    pub table: &'a Table,
    /// How the frames are compressed; all the same way.
    pub encoding: Encoding,
    /// NDJSON, every row ending in a line feed, in frames that concatenate.
    pub frames: Vec<Bytes>,
    /// Rows in the frames.
    pub rows: u64,
    /// Names exactly these rows (decision D9): a sink that has seen it stores nothing again.
    pub token: &'a str,
    /// Part of a batch that was refused a moment ago: what was looked up for the batch need not be again.
    pub part: bool,
}

/// What a failed insert means for its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The sink looked at the rows and refuses them: find the bad one.
    Rejected,
    /// The table is not there. It may come back (decision D8).
    NoTable,
    /// Not now, whatever the rows: overload, outage, refused connection.
    Unavailable,
    /// Not for us: credentials, grants.
    Denied,
    /// The answer was lost or says nothing: the rows may be stored.
    Unknown,
}

impl Failure {
    /// Its name in logs and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::NoTable => "no_table",
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a row was refused, kept with its dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The sink's code for it.
    pub code: String,
    /// The sink's words, bounded.
    pub reason: String,
    /// The column at fault, where the sink names one.
    pub column: Option<String>,
}

/// A failed insert.
#[derive(Debug)]
pub struct SinkError {
    /// What it means.
    pub failure: Failure,
    /// The sink's words.
    pub refusal: Refusal,
    /// A smaller batch may succeed (memory limit, too many partitions).
    pub splittable: bool,
    /// It concerns this table alone: others of the same pool go on.
    pub table_scoped: bool,
    /// Which row is at fault, from 0, where the sink says so. A hint: it is not trusted blindly.
    pub row: Option<u64>,
    /// A row named a column that the table does not have; these are the ones it has now. Rows that name others are
    /// parked together, instead of being found one by one.
    pub columns: Option<Arc<BTreeSet<String>>>,
    /// What caused it.
    pub source: Option<Box<dyn StdError + Send + Sync>>,
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "insert {}: {} ({})", self.failure.name(), self.refusal.reason, self.refusal.code)
    }
}

impl StdError for SinkError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn StdError + 'static))
    }
}

/// Where batches of one tenant go.
///
/// # Contract
/// 1. `Ok` means every row is stored and stays stored.
/// 2. An error other than `Unknown` means that no row of this insert was stored, or that the token makes a repeat
///    store each row once.
/// 3. Inserts of different tables may run at once; the caller runs one at a time for a table.
/// 4. An insert ends within a bound of the sink's own (its request timeout).
#[async_trait]
pub trait Sink: fmt::Debug + Send + Sync {
    /// Names what fails together (address, user, database): a failure that is not table-scoped backs off all of it.
    fn pool(&self) -> &str;

    /// Stores the rows.
    ///
    /// # Errors
    /// A [`SinkError`]; clause 2.
    /// # Cancel safety
    /// Detached. The rows may be stored; repeat them under the same token.
    async fn insert(&self, insert: Insert<'_>) -> Result<(), SinkError>;

    /// The tables there are, where that is known: what is not in it brings no rows.
    fn tables(&self) -> Option<Vec<Table>> {
        None
    }

    /// Which columns a row may name in the table now. `None`: not known, or there is no such table. Cheap: it is asked
    /// again and again while rows wait for a column to come back (decision D8).
    ///
    /// # Cancel safety
    /// Safe.
    async fn columns(&self, _table: &Table) -> Option<Arc<BTreeSet<String>>> {
        None
    }
}

/// Which sink a tenant has. `None`: the tenant is not served now; its rows wait.
pub trait Sinks: fmt::Debug + Send + Sync {
    /// Looked up for every insert, so that a change of settings takes effect with the next one.
    fn sink(&self, tenant: &Tenant) -> Option<Arc<dyn Sink>>;

    /// The served tenants whose sink is of another pool; `None` where that is not known. A unit that could get rows of
    /// one of them goes on taking while `pool` fails (decision D8).
    fn beside(&self, _pool: &str) -> Option<Vec<(Tenant, Arc<dyn Sink>)>> {
        None
    }
}

/// The same sink for every tenant.
impl<S: Sink + 'static> Sinks for Arc<S> {
    fn sink(&self, _: &Tenant) -> Option<Arc<dyn Sink>> {
        Some(self.clone())
    }

    fn beside(&self, _: &str) -> Option<Vec<(Tenant, Arc<dyn Sink>)>> {
        Some(Vec::new())
    }
}
