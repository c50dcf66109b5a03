//! The workspace's own commands: `cargo xtask --help`.

mod bench;
mod quickstart;
mod setup;
mod tell;

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
    /// From a clean clone to a running system with real data
    Quickstart(quickstart::Args),
    /// Figures, each as a ratio to a limit measured in the same run
    Bench {
        #[command(subcommand)]
        bench: bench::Bench,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Setup(args) => setup::run(&args),
        Command::Quickstart(args) => quickstart::run(&args),
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
