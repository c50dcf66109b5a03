//! `cargo xtask bench cache`: answers from memory and from Redis, beside a locked map and the bare client.
#![expect(clippy::print_stdout, reason = "it prints its tables")]

use super::{machine, queue};
use anyhow::Result;
use wh_testkit::workspace;

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long each line is measured
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// The size of an answer in bytes
    #[arg(long, default_value_t = 4_096)]
    bytes: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    println!("machine: {}\n", machine::line());
    let package = ["-p", "wh-cache", "--features", "memory,redis"];
    let figures = [args.seconds.to_string(), args.bytes.to_string()];
    queue::example(&workspace::root()?, &package, "cache_rates", &figures.each_ref().map(String::as_str))
}
