//! Tests of the real binary: kills, outages, bad input.
