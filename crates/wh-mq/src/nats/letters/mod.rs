//! Dead letters: parked as messages of a stream, listed by direct get, removed one by one (decision D5).
//!
//! The order of parking is the stream's. A list may miss what was parked in the last moments where a replica that lags
//! answers.

mod index;
mod letter;
mod list;
mod park;
mod purge;

pub(crate) use list::{counts, list};
pub(crate) use park::park;
pub(crate) use purge::purge;

/// What is remembered between calls.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    index: index::Index,
}
