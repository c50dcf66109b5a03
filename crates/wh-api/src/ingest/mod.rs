//! `POST /v1/ingest`: from a request to rows that are durable in the queue, and the answer for each.

mod answer;
mod coalesce;
mod delimited;
mod format;
mod handler;
mod judge;
mod plan;
mod records;
mod wait;

pub(crate) use answer::Summary;
pub(crate) use coalesce::{Claims, Coalescer, Outcome, PublishOptions, Publishing};
pub(crate) use delimited::{Dialect, Header, Piece, Sheet, Syntax};
pub(crate) use handler::{__path_ingest, ingest};
pub(crate) use judge::{Judge, Refusal};
pub(crate) use plan::Plan;
pub(crate) use records::{Form, Records, Walk};
pub(crate) use wait::Waits;
