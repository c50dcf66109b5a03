//! The API over a queue in memory, called as a service; and over the real engine where ClickHouse has a part.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail loudly")]

mod coalesce;
mod contract;
mod dead_letters;
mod dedupe;
mod differential;
mod engine;
mod forms;
mod ingest;
mod lifetime;
mod ops;
mod pipes;
mod query;
mod rig;
mod shapes;
mod stream;
mod stream_view;
mod ui;
mod wait;
