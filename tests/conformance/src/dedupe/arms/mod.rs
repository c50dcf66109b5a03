//! The dedupe stores that are judged. Another one is a file here, a line in [`all`] and an entry in the matrix.

mod dynamodb;
mod log;
mod sim;
mod sled;

use super::Arm;

/// Every arm whose surroundings are there.
pub(super) fn all() -> Vec<Box<dyn Arm>> {
    let mut arms: Vec<Box<dyn Arm>> = vec![
        Box::new(sim::Sim),
        Box::new(log::Log { name: "log", simulated: false }),
        Box::new(log::Log { name: "log-simulated-disk", simulated: true }),
        Box::new(sled::Sled),
        Box::new(dynamodb::DynamoDb::own("dynalite")),
        Box::new(dynamodb::DynamoDb::own("dynamodb-moto")),
    ];
    if let Some(url) = dynamodb::url() {
        arms.push(Box::new(dynamodb::DynamoDb::given("dynamodb", url)));
    }
    arms
}
