//! Real nats-servers of a test's own: one, three as a cluster, or a hub with a leafnode; and an operator who creates a
//! topology there from the files that our own renderer prints.
//!
//! Nothing here knows a topology: files and permissions come in as text.

mod client;
mod cluster;
mod leaf;
mod operator;
mod options;
mod server;
mod shape;

pub use client::{Client, Reply};
pub use cluster::Cluster;
pub use leaf::Leaf;
pub use operator::Operator;
pub use options::{ACK_V2, OPERATOR, Options, PASSWORD, User};
pub use server::Server;
pub use shape::Shape;

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// How long a server may take to start or to stop, and a cluster to elect.
const WITHIN: Duration = Duration::from_secs(90);

/// A subject prefix that no other test of this machine has: `t`, the process's id, a number. Streams that share a
/// server never share a name, and never come back under a name that was deleted.
#[must_use]
pub fn unique_prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("t{}n{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
