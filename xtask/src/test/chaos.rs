//! `cargo xtask chaos`: the rounds of kills and power cuts that CI runs a few of, many times.

use super::{
    ledger::{Ledger, Outcome},
    runner,
};
use crate::{setup, tell::Teller, workspace};
use anyhow::{Context, Result, ensure};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

/// How long it goes on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Rounds of each kind
    #[arg(long, default_value_t = 50)]
    rounds: u32,
}

/// Runs them and says how it ended.
#[expect(clippy::disallowed_methods, reason = "a tool measures with the machine's clock")]
pub(crate) fn run(args: &Args) -> ExitCode {
    let (mut teller, mut ledger) = (Teller::new(), Ledger::default());
    let rounds = args.rounds.to_string();
    let env = ["WH_TEST_CRASH_ROUNDS", "WH_TEST_ROUNDS"].map(|name| (name.to_owned(), rounds.clone()));
    if let Err(error) = build() {
        ledger.add("build".into(), true, Duration::ZERO, Outcome::failure(format!("{error:#}")));
    } else {
        for (name, package, filter) in [("queue", "conformance", "crash::"), ("process", "procs", "crash::")] {
            teller.say(&format!("\n── {name}: {rounds} rounds of each kind"));
            let began = Instant::now();
            let command = ["test", "--package", package, "--tests", "--no-fail-fast", "--", filter];
            let outcome = runner::libtest(&command, &env).unwrap_or_else(|e| Outcome::failure(format!("{e:#}")));
            ledger.add(name.into(), true, began.elapsed(), outcome);
        }
    }
    teller.say(&format!("\n{}", ledger.table()));
    teller.say(&ledger.line());
    if ledger.good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The servers, and the binaries that are killed.
fn build() -> Result<()> {
    setup::ensure(&[setup::Server::Clickhouse])?;
    let mut cargo = workspace::cargo();
    cargo.current_dir(wh_testkit::workspace::root()?).args(["build", "--workspace", "--bins"]);
    ensure!(cargo.status().context("running cargo")?.success(), "the build failed");
    Ok(())
}
