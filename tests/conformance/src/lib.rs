//! One suite for every backend of a port. A case is written against the port alone; an arm is a backend and how to open
//! it; the ledger says which case ran on which arm, and why one did not.
//!
//! `cargo test -p conformance` runs every arm whose surroundings are there; a name filters (`-- embedded::`,
//! `-- mq22`). `docs/testing.md` has the rest.

mod arm;
pub mod arms;
pub mod cache;
mod case;
mod cases;
pub mod crash;
pub mod dedupe;
pub mod leases;
mod ledger;
pub mod stage;
mod suite;

pub use arm::{Arm, Ending, Profile, Setup, Stand};
pub use case::{Case, Needs, Run};
pub use cases::all;
pub use ledger::{Counts, Ledger, Tier, Verdict};
pub use stage::Stage;
pub use suite::{Check, Plan, Planned, Start};
