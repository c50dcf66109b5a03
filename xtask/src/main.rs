//! The workspace's own commands: `cargo xtask --help`.

mod bench;
mod finding;
mod layers;
mod quickstart;
mod setup;
mod tell;
mod test;
mod tidy;
mod ui;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The workspace's own commands", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring the real servers that tests use into target/servers/
    Setup(setup::Args),
    /// Everything that CI runs
    Test(test::Args),
    /// The suite that judges every backend, on all arms or on one
    Conformance(test::conformance::Args),
    /// The rounds of kills and power cuts that CI runs a few of, many times
    Chaos(test::chaos::Args),
    /// Check the direction of dependencies and the homes of vendor clients
    Layers,
    /// Check the rules that neither the compiler nor clippy checks
    Tidy,
    /// From a clean clone to a running system with real data
    Quickstart(quickstart::Args),
    /// The live page in headless Chromium, with a screenshot; needs node
    Ui(ui::Args),
    /// Figures, each as a ratio to a limit measured in the same run
    Bench {
        #[command(subcommand)]
        bench: bench::Bench,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Setup(args) => setup::run(&args),
        // its last line is its verdict, so it says itself what went wrong
        Command::Test(args) => return test::run(&args),
        Command::Conformance(args) => return test::conformance::run(&args),
        Command::Chaos(args) => return test::chaos::run(&args),
        Command::Layers => layers::run(),
        Command::Tidy => tidy::run(),
        Command::Quickstart(args) => quickstart::run(&args),
        Command::Ui(args) => ui::run(&args),
        Command::Bench { bench } => bench::run(&bench),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell::complain(&error);
            ExitCode::FAILURE
        }
    }
}
