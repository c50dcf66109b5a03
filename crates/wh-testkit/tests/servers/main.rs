//! The fixtures against the real servers that `cargo xtask setup` brought.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod clickhouse;
mod fault;
mod nats;
mod others;
