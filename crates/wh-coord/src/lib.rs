//! Leases: who should do a thing, for how long, and under which fence. The port [`Leases`] and its backends.
//!
//! A lease is a term in a shared store. Its holder renews it; others may take it once they saw it unchanged for its own
//! length on their own clock. Nothing here knows what a lease is for.
//!
//! A backend is a feature of this crate; a crate that only takes the port builds it with `default-features = false` and
//! cannot name one.

mod error;
mod key;
#[cfg(any(feature = "nats", feature = "sim"))]
mod kv;
#[cfg(feature = "local")]
pub mod local;
#[cfg(feature = "nats")]
pub mod nats;
mod options;
mod port;
mod seen;
#[cfg(feature = "sim")]
pub mod sim;
mod term;

pub use error::{Error, Kind, Result};
pub use key::Key;
pub use options::{Options, REQUEST_AT_LEAST};
pub use port::{Claim, Leases, MAX_NOTE};
pub use seen::{Seen, Session};
pub use term::{End, Keeper, Lease, Term};
