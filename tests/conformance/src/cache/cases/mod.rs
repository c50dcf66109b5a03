//! The cases, by chapter of the port.

mod ending;
mod faults;
mod serving;

use super::Case;

/// Makes a list of cases out of async functions of the same name.
macro_rules! cases {
    ($($name:ident $(twin $twin:ident)?),* $(,)?) => {
        /// The cases of this file.
        pub(super) const CASES: &[$crate::cache::Case] = &[$(
            $crate::cache::Case {
                name: stringify!($name),
                run: |arm| Box::pin($name(arm)),
                twin: cases!(@twin $($twin)?),
            },
        )*];
    };
    (@twin) => { None };
    (@twin $twin:ident) => { Some(|arm| Box::pin($twin(arm))) };
}
use cases;

/// Every case.
pub(super) fn all() -> Vec<Case> {
    [serving::CASES, ending::CASES, faults::CASES].concat()
}
