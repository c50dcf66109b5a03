//! The queue: the ports [`Broker`], [`Feed`], [`Settle`] and [`History`], and their backends.
//!
//! A backend is a feature of this crate; a crate that only takes the port builds it with `default-features = false` and
//! cannot name one.

#[cfg(any(feature = "embedded", feature = "sim"))]
mod core;
mod dead_letter;
mod error;
mod port;
mod status;
mod unit;

pub use dead_letter::{DeadLetter, DeadLetterId, DeadLetterPage, DeadLetterQuery};
pub use error::{Error, Kind, Result};
pub use port::{
    AckToken, Allowance, Broker, Budget, Delivery, Feed, From, Gap, Happening, History, Receipt, Settle, Verdict,
};
pub use status::{BrokerStatus, TenantStatus};
pub use unit::Unit;
