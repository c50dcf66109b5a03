//! The cases, by chapter of the port.

mod claiming;
mod observing;
mod terms;

use super::{Arm, Case};
use crate::suite::cases;

/// What a case with a twin needs: leases that lapse, and a store that can be lost. One process has neither.
fn can(arm: &dyn Arm) -> bool {
    arm.lapses()
}

/// Every case.
pub(super) fn all() -> Vec<Case> {
    [claiming::CASES, terms::CASES, observing::CASES].concat()
}
