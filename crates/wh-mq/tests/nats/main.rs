//! The NATS backend at real servers, beside the conformance suite: what only this backend does, and its faults.

mod boot;
mod publish;
mod stand;
