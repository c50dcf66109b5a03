//! WaveHouse in one process: every role and the command line.

use std::process::ExitCode;
use wh_app::{About, cli};

const ABOUT: About = About { name: "wavehouse", version: env!("CARGO_PKG_VERSION"), commit: env!("WAVEHOUSE_COMMIT") };

fn main() -> ExitCode {
    cli::main(ABOUT, None).into()
}
