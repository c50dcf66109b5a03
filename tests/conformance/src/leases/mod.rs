//! The suite of the port `Leases`: its own arms, cases and counts (`leases.matrix.toml`, `leases.expected.toml`).
//!
//! An arm may have the name of an arm of the queue's suite: `sim::` filters for both.

pub mod arm;
mod arms;
mod cases;
mod stage;

pub use arm::{Arm, Member, Stand, Way};

use crate::suite::{self, Plan, Suite};
use std::sync::Arc;

/// One case.
pub type Case = suite::Case<dyn Arm>;

/// Every case on every arm, and a check of each arm's counts.
///
/// # Errors
/// The matrix or the counts cannot be read.
pub fn plan() -> anyhow::Result<Plan> {
    let arms = arms::all().into_iter().map(Arc::from).map(|arm: Arc<dyn Arm>| (arm.name(), arm)).collect();
    let ledger = [include_str!("../../leases.matrix.toml"), include_str!("../../leases.expected.toml")];
    Suite { of: "lease", ledger, arms, cases: cases::all() }.plan()
}
