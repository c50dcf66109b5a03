//! A whole system for tests: the real binary over a real ClickHouse engine, each in its own folder on its own port.

mod load;
mod system;

pub use load::{Sent, Writers};
pub use system::{System, TABLE, config};
