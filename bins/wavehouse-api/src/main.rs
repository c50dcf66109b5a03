//! WaveHouse's api alone: events over HTTP into a queue on NATS, queries, streams.

use std::process::ExitCode;
use wh_app::{About, cli};

const ABOUT: About =
    About { name: "wavehouse-api", version: env!("CARGO_PKG_VERSION"), commit: env!("WAVEHOUSE_COMMIT") };

fn main() -> ExitCode {
    cli::main(ABOUT, Some(&["api"])).into()
}
