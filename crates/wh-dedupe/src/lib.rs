//! Which rows came before: the port [`Dedupe`] and its backends.
//!
//! A row's key is claimed before its block is published, and committed after. In between it is nobody else's; a claim
//! whose holder vanished lapses, and whoever finds it is told which block the row went out in, so that the queue can be
//! asked. Nothing here publishes, probes or knows what a row is.
//!
//! A backend is a feature of this crate; a crate that only takes the port builds it with `default-features = false` and
//! cannot name one.

#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod error;
mod hash;
mod key;
#[cfg(feature = "log")]
pub mod log;
mod port;
mod row;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "sled")]
pub mod sled;
#[cfg(any(feature = "log", feature = "sled"))]
mod stir;
#[cfg(any(feature = "log", feature = "sled"))]
mod when;

pub use error::{Error, Kind, Result};
pub use key::{Key, LONGEST_ID, MAX_IDEMPOTENCY_KEY, Scope};
pub use port::{Dedupe, LEASE_AT_LEAST, LEASE_AT_MOST, MAX_PAYLOAD, MAX_ROWS};
pub use row::{Origin, Retention, Row, Ticket, Token, Under, Verdict};
