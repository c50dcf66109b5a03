//! `cargo xtask bench failover`: how soon rows flow again when processes come and go. The measuring is done by an example
//! of the process tests; this builds it and the programs with optimisation and runs it.
#![expect(clippy::print_stdout, reason = "it prints its table")]

use super::machine;
use anyhow::{Context, Result, ensure};
use wh_testkit::workspace;

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Runs of each figure, of which the median is told
    #[arg(long, default_value_t = 10)]
    runs: u32,
    /// Only these: kill, join, stop, restart, membership
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
}

/// What the example starts, and the example.
const BUILT: [&str; 10] =
    ["-p", "wavehouse-api", "-p", "wavehouse-ingest", "-p", "wh-testkit", "-p", "procs", "--bins", "--examples"];

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = workspace::root()?;
    let cargo = |args: &[&str]| {
        let mut command = crate::workspace::cargo();
        command.current_dir(&root).args(args).args(["--quiet", "--profile", "quick"]);
        command
    };
    let built = cargo(&["build"]).args(BUILT).status().context("building")?;
    ensure!(built.success(), "building failed: {built}");
    println!("machine: {}\n", machine::line());
    let mut example = cargo(&["run"]);
    example.args(["-p", "procs", "--example", "failover", "--"]).arg(args.runs.to_string()).args(&args.only);
    let status = example.status().context("the example failover")?;
    ensure!(status.success(), "the example failover failed: {status}");
    Ok(())
}
