//! Redis servers of a test's own: one alone, a cluster, a primary with a replica and a sentinel. They save nothing but
//! when told to.

mod client;
mod cluster;
mod sentinel;
mod server;

pub use client::command;
pub use cluster::Cluster;
pub use sentinel::Sentinel;
pub use server::{Options, Server};
