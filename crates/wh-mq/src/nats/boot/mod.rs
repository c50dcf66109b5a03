//! The topology at boot and while running: seen live, verified, probed, waited for, checked again. Nothing here repairs.
//!
//! A process waits with [`wait`] until nothing required is wrong, opens its queue, and hands its [`Check`] to
//! [`Recheck`], whose [`Health`] readiness follows.

mod check;
mod health;
mod live;
mod metrics;
mod probe;
mod recheck;
mod subscriptions;
#[cfg(test)]
mod tests;
mod unsound;
mod wait;

pub use check::{Check, Report};
pub use health::{Health, Verdict};
pub use live::Live;
pub use recheck::Recheck;
pub use unsound::Unsound;
pub use wait::wait;
