//! The whole of it: what is deployed, judged by other people's readers and by real servers.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail loudly")]

mod formats;
mod golden;
mod real;
mod rights;
