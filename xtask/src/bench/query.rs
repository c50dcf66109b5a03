//! `cargo xtask bench query`: kept, computed and shared answers, beside a direct query and a handler that does nothing.
#![expect(clippy::print_stdout, reason = "it prints its tables")]

use super::{machine, queue};
use anyhow::Result;
use wh_testkit::workspace;

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Seconds for each line
    #[arg(long, default_value_t = 5)]
    seconds: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    println!("machine: {}\n", machine::line());
    queue::example(&workspace::root()?, &["-p", "wh-api"], "bench_query", &[&args.seconds.to_string()])
}
