//! The cases, by chapter of the port.

mod committing;
mod failing;
mod life;
mod releasing;
mod reserving;

use super::{Arm, Case, Failure};
use crate::suite::cases;

/// What a case with a twin needs: that this can go wrong.
fn can(arm: &dyn Arm, failure: Failure) -> bool {
    arm.fails(failure)
}

/// Every case.
pub(super) fn all() -> Vec<Case> {
    [reserving::CASES, committing::CASES, releasing::CASES, failing::CASES, life::CASES].concat()
}
