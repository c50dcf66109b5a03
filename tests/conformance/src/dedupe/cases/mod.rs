//! The cases, by chapter of the port.

mod committing;
mod failing;
mod life;
mod releasing;
mod reserving;

use super::Case;

/// Makes a list of cases out of async functions of the same name.
macro_rules! cases {
    ($($name:ident $(needs $failure:ident twin $twin:ident)?),* $(,)?) => {
        /// The cases of this file.
        pub(super) const CASES: &[$crate::dedupe::Case] = &[$(
            $crate::dedupe::Case {
                name: stringify!($name),
                needs: cases!(@needs $($failure)?),
                run: |arm| Box::pin($name(arm)),
                twin: cases!(@twin $($twin)?),
            },
        )*];
    };
    (@needs) => { None };
    (@needs $failure:ident) => { Some($crate::dedupe::Failure::$failure) };
    (@twin) => { None };
    (@twin $twin:ident) => { Some(|arm| Box::pin($twin(arm))) };
}
use cases;

/// Every case.
pub(super) fn all() -> Vec<Case> {
    [reserving::CASES, committing::CASES, releasing::CASES, failing::CASES, life::CASES].concat()
}
