//! The queue: the ports [`Broker`], [`Feed`], [`Settle`] and [`History`], and their backends.
//!
//! A backend is a feature of this crate; a crate that only takes the port builds it with `default-features = false` and
//! cannot name one.

#[cfg(any(feature = "embedded", feature = "sim"))]
#[cfg_attr(
    not(all(feature = "embedded", feature = "sim")),
    allow(dead_code, unused_imports, reason = "each backend uses a part")
)]
mod core;
mod dead_letter;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
#[cfg(feature = "sim")]
pub mod faulty;
mod happening;
#[cfg(any(feature = "embedded", feature = "sim"))]
#[cfg_attr(
    not(all(feature = "embedded", feature = "sim")),
    allow(dead_code, unused_imports, reason = "each backend uses a part")
)]
mod local;
#[cfg(any(feature = "embedded", feature = "sim", feature = "nats"))]
#[cfg_attr(not(any(feature = "embedded", feature = "sim")), allow(dead_code, reason = "each backend uses a part"))]
mod metrics;
#[cfg(feature = "nats")]
pub mod nats;
mod port;
mod progress;
#[cfg(feature = "sim")]
pub mod sim;
mod status;
mod unit;

pub use dead_letter::{
    BadCursor, DeadLetter, DeadLetterCursor, DeadLetterFilter, DeadLetterId, DeadLetterPage, DeadLetterQuery,
};
pub use error::{Error, Kind, Result};
pub use happening::{From, Gap, Happening};
pub use port::{AckToken, Allowance, Broker, Budget, Delivery, Feed, History, Receipt, Settle, Verdict};
pub use progress::{Began, Floor, MOST_PARKED, Marks, ParkedRow, Progress, Reader};
pub use status::{BrokerStatus, TenantStatus};
pub use unit::Unit;
