//! ClickHouse over HTTP: client, error classes, schema discovery, type model.
//!
//! [`Client`] inserts blocks as they are, runs queries with typed parameters and finds exceptions wherever ClickHouse
//! puts them. [`Error`] says what a failure means, from one table of codes. [`Discovery`] keeps a [`Schema`] fresh
//! behind a [`SchemaHandle`]. [`types`] models column types and judges JSON kinds against them.
//!
//! Nothing here retries an insert or a query: that is the caller's, who knows what a repeat means. Nothing here knows
//! tenants, queues or HTTP answers of ours.

mod answer;
mod body;
mod client;
mod codes;
mod connector;
mod error;
mod exception;
mod form;
mod inflate;
mod insert;
mod options;
mod query;
mod relations;
mod request;
mod schema;
pub mod sql;
pub mod types;

pub use answer::{Answer, AnswerStream, Summary};
pub use client::Client;
pub use codes::{Failure, QueryFailure, RoleCaps};
pub use error::{Error, Kind, MESSAGE_LIMIT, READ_ONLY_USER, Result};
pub use form::LONGEST_VALUE as LONGEST_PARAMETER;
pub use insert::{Insert, Inserted};
pub use options::Options;
pub use query::Query;
pub use relations::{Reads, Relations, TableRef};
pub use schema::{
    Column, ColumnKind, Discovery, DiscoveryOptions, DiscoveryStats, Schema, SchemaHandle, ServerSettings, TableSchema,
};
