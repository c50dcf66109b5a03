//! The real binary under faults: kills, outages, stops, bad input. One test binary, a file a subject.

mod bad_input;
mod boot;
mod crash;
mod outage;
mod round_trip;
