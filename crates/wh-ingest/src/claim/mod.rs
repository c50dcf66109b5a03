//! Which units this process works on: membership by leases, an even split among the members, handovers, and the units
//! of members that died.
//!
//! `step` decides and is pure; `run` acts. Leases say who *should* own a unit; the queue decides who receives.

mod acts;
mod assign;
mod note;
mod run;
mod state;
mod step;
mod view;

pub use run::ClaimOptions;
pub(crate) use run::run;
pub use view::MEMBERS;

#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod step_tests;
