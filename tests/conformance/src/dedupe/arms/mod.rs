//! The dedupe stores that are judged. Another one is a file here, a line in [`all`] and an entry in the matrix.

mod log;
mod sim;

use super::Arm;

/// Every arm whose surroundings are there.
pub(super) fn all() -> Vec<Box<dyn Arm>> {
    vec![
        Box::new(sim::Sim),
        Box::new(log::Log { name: "log", simulated: false }),
        Box::new(log::Log { name: "log-simulated-disk", simulated: true }),
    ]
}
