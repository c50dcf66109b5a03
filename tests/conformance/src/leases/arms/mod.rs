//! The lease stores that are judged. Another one is a file here, a line in [`all`] and an entry in the matrix.

mod local;
mod nats;
mod sim;

use super::Arm;
use std::{sync::Arc, time::Duration};
use wh_coord::Options;
use wh_testkit::servers::NATS_VERSIONS;
use wh_types::{OsEntropy, SystemClock, Tasks};

/// Every arm whose surroundings are there.
pub(super) fn all() -> Vec<Box<dyn Arm>> {
    vec![
        Box::new(local::Local),
        Box::new(sim::Sim),
        Box::new(nats::Nats { name: "nats-2.14", version: NATS_VERSIONS[0] }),
        Box::new(nats::Nats { name: "nats-2.15", version: NATS_VERSIONS[1] }),
    ]
}

fn options(holder: &str, duration: Duration) -> Options {
    Options {
        holder: holder.to_owned(),
        duration,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(OsEntropy),
        tasks: Tasks::new(),
    }
}
