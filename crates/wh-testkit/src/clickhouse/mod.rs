//! A real ClickHouse engine behind its own HTTP interface.
//!
//! [`Server`] is one of a test's own, to crash and to pause. [`database`] is a fresh database on a server that the
//! tests of this process share, or on the one that `WH_TEST_CLICKHOUSE_URL` names: enough for a test that breaks
//! nothing.
//!
//! [`Newer`] is a newer engine that can only be asked what it would store.
//!
//! What it is not: the official server binary. No replicated tables, no users made by SQL (`users.xml` has some), no
//! TLS, and the server's own `async_insert` runs synchronously.

mod database;
mod endpoint;
mod newer;
mod server;

pub use database::{Database, database};
pub use endpoint::Endpoint;
pub use newer::Newer;
pub use server::{Server, ServerOptions};
