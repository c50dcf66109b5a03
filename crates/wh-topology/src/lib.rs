//! What the operator creates on a NATS cluster, and where a table lives in it. Pure: no I/O, no clock.
//!
//! An operator's choices ([`Choices`]) are checked ([`Spec`]) and laid out ([`Topology`]); a [`Renderer`] prints them for
//! the tool that creates them, [`Rights`] says what each of our processes may do there, [`verify`] says what is wrong
//! with what a server answers ([`Observed`]), and [`Plan`] what would change, in which order. Reading files and asking
//! servers is for others.

pub mod config;
pub mod defaults;
mod names;
mod observe;
mod placement;
mod plan;
mod problem;
pub mod render;
mod rights;
mod size;
mod span;
mod spec;
mod subject;
#[cfg(test)]
mod testing;
mod topology;
mod verify;

pub use config::{Bucket, ConsumerConfig, StreamConfig};
pub use names::Names;
pub use observe::{
    Captured, CapturedError, Consumer, Fields, ObserveError, Observed, Observer, Peer, Refused, Server, State, Stream,
};
pub use placement::{Route, fnv1a64, jump, mix, route, unit_score};
pub use plan::{Action, Change, Counts, Difference, Phase, Plan, Step};
pub use problem::{Problem, Problems};
pub use render::{File, RENDERERS, Renderer, Unsayable, renderer};
pub use rights::{Right, Rights, RightsFormat, Role};
pub use size::{parse_size, show_size};
pub use span::{parse_span, show_span};
pub use spec::{Choices, Spec};
pub use subject::overlap;
pub use topology::{METADATA_PARTITION, METADATA_PARTITIONS, METADATA_SHARDS, Partition, Sizes, Topology};
pub use verify::{Finding, Severity, verify};
