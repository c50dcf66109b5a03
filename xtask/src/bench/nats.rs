//! `cargo xtask bench nats`: the queue on NATS beside a bare client, on one server that is started here. The measuring is
//! done by examples of wh-nats and wh-mq; this builds them with optimisation and runs them.
#![expect(clippy::print_stdout, reason = "it prints its tables")]

use super::machine;
use crate::workspace::cargo;
use anyhow::{Context, Result, ensure};
use std::process::Command;
use wh_testkit::{servers::NATS_VERSIONS, workspace};

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The release of nats-server
    #[arg(long, default_value = NATS_VERSIONS[0], value_parser = NATS_VERSIONS)]
    version: String,
    /// Rounds of each rate, of which the median is printed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Seconds over which idle units are watched
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    idle_seconds: u64,
    /// Seconds that a pin outlives its last renewal
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pinned_ttl: u64,
    /// One part of it
    #[arg(long, value_parser = ["rates", "ownership", "idle"])]
    only: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = workspace::root()?;
    let build = |package: &[&str], name: &str| -> Result<std::path::PathBuf> {
        let mut command = cargo();
        command.current_dir(&root).args(["build", "--quiet", "--profile", "quick"]).args(package);
        let status = command.args(["--example", name]).status().with_context(|| name.to_owned())?;
        ensure!(status.success(), "the example {name} does not build: {status}");
        Ok(root.join("target/quick/examples").join(name))
    };
    let bare = build(&["-p", "wh-nats"], "bare")?;
    let rates = build(&["-p", "wh-mq", "--features", "nats"], "nats_rates")?;
    println!("machine: {}", machine::line());
    let numbers = [args.rounds, args.idle_seconds, args.pinned_ttl].map(|number| number.to_string());
    let status = Command::new(rates).arg(bare).args(numbers).arg(&args.version).args(&args.only).status()?;
    ensure!(status.success(), "the measurement failed: {status}");
    Ok(())
}
