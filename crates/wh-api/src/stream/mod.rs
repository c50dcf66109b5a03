//! `GET /v1/stream?table=`: what is stored from now on, as server-sent events.
//!
//! Live only: a client that comes back is told of its gap, not given what it missed.

mod frame;
mod handler;
pub(crate) mod hub;
mod ring;

pub(crate) use handler::stream;
pub(crate) use hub::Hub;
