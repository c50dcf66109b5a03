//! WaveHouse's ingest alone: from a queue on NATS into ClickHouse.

use std::process::ExitCode;
use wh_app::{About, cli};

const ABOUT: About =
    About { name: "wavehouse-ingest", version: env!("CARGO_PKG_VERSION"), commit: env!("WAVEHOUSE_COMMIT") };

fn main() -> ExitCode {
    cli::main(ABOUT, Some(&["ingest"])).into()
}
