//! The queue on a JetStream cluster that the operator owns: any number of processes share it.
//!
//! WaveHouse creates nothing on the server. [`boot::wait`] says whether the topology is sound; [`Broker::open`] finds
//! the streams and durables and does not judge them. A partition's stream stores the blocks, its durables deliver them
//! unit by unit, the history hears each stored block by republish, and the dead letters are a stream of rows.
//! `docs/operations/nats.md` has what an operator should know.

pub mod boot;
mod broker;
mod cursor;
mod envelope;
mod error;
mod fault;
mod history;
mod letters;
mod open;
mod options;
mod progress;
mod publish;
mod shared;
mod status;
mod unit;

pub use broker::Broker;
pub use cursor::epoch;
pub use fault::{Fault, Faults};
pub use options::Options;
