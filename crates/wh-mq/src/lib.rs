//! The queue: port Broker and Feed, backends embedded and sim.
