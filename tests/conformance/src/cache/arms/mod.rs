//! The caches that are judged. Another one is a file here, a line in [`all`] and an entry in the matrix.

mod memory;
mod redis;
mod sim;

use super::Arm;
use std::{sync::Arc, time::Duration};
use wh_cache::Options;
use wh_types::{OsEntropy, SystemClock, Tasks};

/// The largest value in every arm.
const MAX_VALUE: usize = 64 << 10;

/// Every arm whose surroundings are there.
pub(super) fn all() -> Vec<Box<dyn Arm>> {
    vec![
        Box::new(sim::Sim),
        Box::new(memory::Memory),
        Box::new(redis::Redis(redis::Shape::Standalone)),
        Box::new(redis::Redis(redis::Shape::Cluster)),
        Box::new(redis::Redis(redis::Shape::Sentinel)),
    ]
}

/// As in operation, but for what cases wait for: the pause after a failure, and a dial into a black hole.
fn options() -> Options {
    let mut options = Options::new(Arc::new(SystemClock), Arc::new(OsEntropy), Tasks::new());
    options.pause = Duration::from_millis(400);
    options.connect_timeout = Duration::from_secs(2);
    options.max_value_bytes = MAX_VALUE;
    options
}
