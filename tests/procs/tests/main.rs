//! The real binary under faults: kills, outages, stops, bad input. One test binary, a file a subject.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, like the tests")]

mod answers;
mod bad_input;
mod boot;
mod crash;
mod dead_letters;
mod dedupe;
mod fleet;
mod full;
mod guide;
mod guide_dlq;
mod guide_pipes;
mod guide_streams;
mod outage;
mod round_trip;
mod streams;
mod tls;
mod uploads;
mod waits;
