//! The NATS backend at real servers, beside the conformance suite: what only this backend does, and its faults.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail loudly")]

mod boot;
mod faults_unit;
mod flow;
mod history;
mod lagging;
mod late_acks;
mod malformed;
mod publish;
mod raw;
mod rights;
mod stand;
mod three;
mod unit;
