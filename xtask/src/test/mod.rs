//! `cargo xtask test`: everything CI runs, stage by stage, with one closing line.
//!
//! Nothing is retried. What did not run is listed with its reason. A stage of tests that failed does not keep the others
//! from telling what they find; any other stage that fails ends the run.

pub(crate) mod chaos;
pub(crate) mod conformance;
mod ledger;
mod runner;
mod space;
mod stage;
mod summary;

use crate::tell::{self, Teller};
use ledger::{Ledger, Outcome};
use stage::Stage;
use std::{process::ExitCode, time::Instant};

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these stages
    #[arg(long, value_delimiter = ',')]
    only: Vec<Stage>,
    /// All stages but these
    #[arg(long, value_delimiter = ',')]
    skip: Vec<Stage>,
    /// Run each stage of tests that often, property tests with other cases each time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Run the stages after one that failed too, whatever it was: after one of tests they run anyway
    #[arg(long)]
    keep_going: bool,
}

/// Runs the stages and says how it ended.
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut ledger = Ledger::default();
    match space::line() {
        Ok(line) => Teller::new().say(&line),
        Err(error) => tell::complain(&error),
    }
    let chosen = |stage: &&Stage| (args.only.is_empty() || args.only.contains(stage)) && !args.skip.contains(stage);
    for stage in stage::ALL.iter().filter(chosen) {
        let rounds = if stage.is_tests() { args.count } else { 1 };
        for round in 1..=rounds {
            let name = if rounds > 1 { format!("{stage} {round}/{rounds}") } else { stage.to_string() };
            let failed = run_stage(&mut ledger, *stage, name, round);
            if failed && !args.keep_going && !stage.is_tests() {
                return close(&ledger);
            }
        }
    }
    close(&ledger)
}

/// Whether it failed.
#[expect(clippy::disallowed_methods, reason = "a tool measures with the machine's clock")]
fn run_stage(ledger: &mut Ledger, stage: Stage, name: String, round: u32) -> bool {
    let mut teller = Teller::new();
    teller.say(&format!("\n── {name}"));
    let began = Instant::now();
    let outcome = stage.run(&mut teller, round).unwrap_or_else(|error| {
        tell::complain(&error);
        Outcome::failure(format!("{error:#}"))
    });
    let failed = outcome.failed > 0;
    ledger.add(name, stage.is_tests(), began.elapsed(), outcome);
    failed
}

/// The times, the skips, and the one line.
fn close(ledger: &Ledger) -> ExitCode {
    let mut teller = Teller::new();
    if let Err(error) = ledger.write() {
        tell::complain(&error);
    }
    teller.say(&format!("\n{}", ledger.table()));
    teller.say(&ledger.line());
    if ledger.good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
