//! What tests are made with: real servers, a proxy that injects faults, a harness for our own binaries, a small HTTP
//! client and waits for conditions.
//!
//! Nothing here is downloaded: `cargo xtask setup` brings the servers into `target/servers/`. Nothing here skips: a
//! server that is missing is an error that says how to get it. Every process started here is killed when its owner is
//! dropped, and by the kernel when the test process dies first.

pub mod chaos;
pub mod clickhouse;
pub mod dynamodb;
mod env;
pub mod fault;
pub mod http;
pub mod nats;
mod port;
pub mod process;
pub mod redis;
mod say;
pub mod servers;
pub mod tls;
mod wait;
pub mod workspace;

pub use port::free_port;
pub use process::Process;
pub use say::say;
pub use wait::{Probe, TimedOut, until, until_equal};
