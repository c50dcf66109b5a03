//! Where a table lives. Pure: no I/O, no clock. What the operator must create comes in a later part.

mod placement;

pub use placement::{Route, fnv1a64, jump, mix, route, unit_score};
