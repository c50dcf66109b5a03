//! The cases, by chapter of the port.

mod ending;
mod faults;
mod serving;

use super::{Arm, Case};
use crate::suite::cases;

/// What a case with a twin needs: a store that is not the process itself, and can be lost.
fn can(arm: &dyn Arm) -> bool {
    arm.is_shared()
}

/// Every case.
pub(super) fn all() -> Vec<Case> {
    [serving::CASES, ending::CASES, faults::CASES].concat()
}
