//! Queue in, ClickHouse out: the worker that batches delivered blocks by table, inserts them, and settles them.
//!
//! Give [`Worker`] a queue (`wh_mq::Broker`) and a [`Sinks`] and run it; nothing of HTTP, configuration or a process is
//! needed, so that any Rust service can embed it (`examples/embed-ingest`).
//!
//! What is promised, per table: blocks are inserted in the order they were stored, one insert at a time (unless
//! [`Options::table_inserts`] says otherwise); a block is settled only after all its rows are in the sink or in the dead letters; a batch whose outcome is unknown is repeated
//! with the same rows under the same token; a row the sink refuses costs no other row anything.

mod bodies;
mod chunk;
mod claim;
#[cfg(feature = "clickhouse")]
mod clickhouse;
mod gate;
mod line;
mod marking;
mod memory;
mod metrics;
mod options;
mod replay;
mod rows;
mod sink;
mod size;
mod table;
mod unit;
mod work;
mod worker;

pub use claim::{ClaimOptions, MEMBERS};
#[cfg(feature = "clickhouse")]
pub use clickhouse::ClickHouse;
pub use memory::{Memory, Script};
pub use options::Options;
pub use sink::{Failure, Insert, Refusal, Sink, SinkError, Sinks};
pub use worker::{Parts, Worker};
