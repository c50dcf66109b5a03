//! A case: a name, what it needs of the backend, and what it does.

use crate::{Arm, Profile};
use futures::future::BoxFuture;

/// What runs a case.
pub type Run = for<'a> fn(&'a dyn Arm) -> BoxFuture<'a, anyhow::Result<()>>;

/// What a case needs of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing that not every backend has.
    Nothing,
    /// [`Profile::allowances`].
    Allowances,
    /// [`Profile::purge`].
    Purge,
    /// [`Profile::ack_wait`].
    AckWait,
    /// [`Profile::tables_take_turns`].
    Turns,
}

impl Needs {
    /// Whether a backend has it.
    #[must_use]
    pub fn met_by(self, profile: Profile) -> bool {
        match self {
            Self::Nothing => true,
            Self::Allowances => profile.allowances,
            Self::Purge => profile.purge,
            Self::AckWait => profile.ack_wait,
            Self::Turns => profile.tables_take_turns,
        }
    }
}

/// One case of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// `mqNN_` and what is true when it passes. `NN` is the clause of the port.
    pub name: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// What it does.
    pub run: Run,
    /// Where the need is not met: what checks that the backend says so.
    pub twin: Option<Run>,
}

/// Makes a list of cases out of async functions of the same name.
macro_rules! cases {
    ($($name:ident $(needs $needs:ident $(twin $twin:ident)?)?),* $(,)?) => {
        /// The cases of this file.
        pub(crate) const CASES: &[$crate::Case] = &[$(
            $crate::Case {
                name: stringify!($name),
                needs: cases!(@needs $($needs)?),
                run: |arm| Box::pin($name(arm)),
                twin: cases!(@twin $($($twin)?)?),
            },
        )*];
    };
    (@needs) => { $crate::Needs::Nothing };
    (@needs $needs:ident) => { $crate::Needs::$needs };
    (@twin) => { None };
    (@twin $twin:ident) => { Some(|arm| Box::pin($twin(arm))) };
}
pub(crate) use cases;
