//! `cargo xtask bench worker`: CPU a row, rows a second into ClickHouse beside a plain client, what a bad row costs, many
//! tables. The measuring is done by an example of `wh-ingest`; this builds it with optimisation and runs it.
#![expect(clippy::print_stdout, reason = "it prints its tables")]

use super::machine;
use anyhow::{Context, Result, ensure};
use wh_testkit::workspace;

pub(crate) fn run() -> Result<()> {
    crate::setup::ensure(&[crate::setup::Server::Clickhouse])?;
    let root = workspace::root()?;
    println!("machine: {}", machine::line());
    let cargo = || {
        let mut command = crate::workspace::cargo();
        command.current_dir(&root);
        command
    };
    let engine = ["build", "--quiet", "--profile", "quick", "-p", "wh-testkit", "--bin", "wh-chserver"];
    ensure!(cargo().args(engine).status()?.success(), "the engine's launcher could not be built");
    let example = ["run", "--quiet", "--profile", "quick", "-p", "wh-ingest", "--example", "worker_rates"];
    let status = cargo().args(example).status().context("worker_rates")?;
    ensure!(status.success(), "the example worker_rates failed: {status}");
    Ok(())
}
