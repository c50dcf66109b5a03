//! One shard of one partition: what a member owns and a feed delivers.

use std::fmt;

/// A unit of delivery. Every table belongs to exactly one (`wh_topology::route`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit {
    /// Which ingest stream, 0..N. The embedded queue has one.
    pub partition: u32,
    /// Which shard of it, 0..V.
    pub shard: u32,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}s{}", self.partition, self.shard)
    }
}
