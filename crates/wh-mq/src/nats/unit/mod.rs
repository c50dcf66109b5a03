//! Units: raw pinned pulls, delivery in order, settling, orphans. Not which process should own a unit.
//!
//! [`pull`] decides what to ask of the server and [`desk`] what becomes of a block; both are pure. One loop a unit
//! ([`run`]) does what they say, a settler beside it sends the acks, and [`feed`] is what the owner holds.

mod act;
mod desk;
mod extra;
mod feed;
mod late;
mod metrics;
mod open;
mod orphan;
mod pull;
mod reading;
mod release;
mod run;
mod settler;
mod sizes;
mod term;
mod topics;
mod units;

pub(crate) use extra::extra;
pub(crate) use late::run as send_late_acks;
pub(crate) use open::{close, open};
pub(crate) use orphan::{release_orphan, unowned};
pub(crate) use reading::places;
pub(crate) use units::Units;
