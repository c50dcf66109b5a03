//! The backends that are judged. Another one is a file here, a line in [`all`] and an entry in `matrix.toml`.

mod embedded;
pub mod nats;
mod sim;

use crate::Arm;
use wh_testkit::servers::NATS_VERSIONS;

/// Every arm whose surroundings are there, by its name in the matrix.
///
/// # Errors
/// The environment names surroundings that cannot be used.
pub fn all() -> anyhow::Result<Vec<Box<dyn Arm>>> {
    let mut arms: Vec<Box<dyn Arm>> = vec![
        Box::new(sim::Sim),
        Box::new(embedded::Embedded),
        Box::new(nats::Own { name: "nats-2.14", version: NATS_VERSIONS[0] }),
        Box::new(nats::Own { name: "nats-2.15", version: NATS_VERSIONS[1] }),
    ];
    #[expect(clippy::disallowed_methods, reason = "surroundings of tests are named by the environment")]
    let live = nats::LiveOptions::from(|name| std::env::var(name).ok())?;
    if let Some(options) = live {
        arms.push(Box::new(nats::Live::new(options)));
    }
    Ok(arms)
}
