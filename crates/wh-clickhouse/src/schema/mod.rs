//! What the configured database holds: tables, columns, and what the server is. Never a partial view.

mod discovery;
mod model;
mod read;

pub use discovery::{Discovery, DiscoveryOptions, DiscoveryStats, SchemaHandle};
pub use model::{Column, ColumnKind, Schema, ServerSettings, TableSchema};
