//! Rows that were held because their column was gone are published again by themselves once it is back (decision D8): by
//! the owner of their table's unit, under the id of their dead letter, which is then removed. Their order is not kept.
//!
//! One loop a worker. It knows which units are worked on here; it decides nothing about rows but whether every column they
//! name is there.

mod owned;
mod run;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use owned::Owned;
pub(crate) use run::run;
