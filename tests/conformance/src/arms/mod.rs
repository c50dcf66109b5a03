//! The backends that are judged. Another one is a file here, a line in [`all`] and an entry in `matrix.toml`.

mod embedded;
mod sim;

use crate::Arm;

/// Every arm whose surroundings are there, by its name in the matrix.
#[must_use]
pub fn all() -> Vec<Box<dyn Arm>> {
    vec![Box::new(sim::Sim), Box::new(embedded::Embedded)]
}
