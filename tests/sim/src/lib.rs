//! Many workers over one queue and one lease store, in one thread and in paused time, under faults that a seed chooses.
//!
//! The workers, their claims and the leases are the real code; the queue and the stores are the fakes that pass the
//! conformance suites. Between them stand wires that this crate cuts, and tasks that it freezes and kills.
//! `docs/testing.md` says how a seed that failed is run again.

mod chance;
mod process;
mod script;
mod sink;
mod truth;
mod wire;
mod world;

pub use script::{Event, Trouble};
pub use world::{Outcome, Story, run, tell};
