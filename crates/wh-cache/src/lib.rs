//! Answers of queries that were computed before, and what ends them. The port [`Cache`] and its backends.
//!
//! Nothing here knows a query or ClickHouse. A caller takes a snapshot of the tables that a query reads before it reads
//! them, and puts the answer under that snapshot; a write says which tables it changed. A fault of a cache never fails a
//! query: it is a miss, an answer that is not kept, or an invalidation that is owed.
//!
//! A backend is a feature of this crate; a crate that only takes the port builds it with `default-features = false` and
//! cannot name one.

mod error;
mod key;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(any(feature = "memory", feature = "redis", feature = "sim"))]
mod metrics;
#[cfg(any(feature = "memory", feature = "redis", feature = "sim"))]
mod name;
mod port;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "redis", feature = "sim"))]
mod remote;
#[cfg(feature = "sim")]
pub mod sim;
mod snapshot;
mod view;

pub use error::{Error, Kind, Result};
pub use key::{Key, ttl_for};
pub use port::{Cache, Filled, Found, Hit, Landing, MAX_TTL, Outcome, Skipped, Status};
#[cfg(any(feature = "redis", feature = "sim"))]
pub use remote::Options;
pub use snapshot::Snapshot;
pub use view::{Change, MAX_READS, MAX_SCOPE, Read, Scope, View, What};
