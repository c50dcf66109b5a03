//! The worker in front of the real engine, directly and through the fault proxy.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail loudly")]

mod batches;
mod outage;
mod rig;
mod schema;
