//! `cargo xtask quickstart`: from a clean clone to a running system with real data, told step by step.
//!
//! Everything lives in `target/quickstart/` and listens on 127.0.0.1. Each run begins with an empty folder.

mod steps;
pub(crate) mod system;

use crate::tell::Teller;
use anyhow::Result;
use std::time::{Duration, Instant};
use system::System;

/// What a run may be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End after the tour instead of staying up until Ctrl-C
    #[arg(long)]
    once: bool,
    /// Build with optimisation: takes longer to build and shows what the system can do
    #[arg(long)]
    optimised: bool,
    /// The port WaveHouse listens on; another is chosen when it is taken
    #[arg(long, default_value_t = 8080)]
    port: u16,
}

/// Runs the tour.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut teller = Teller::new();
    system::build(&mut teller, args.optimised)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(tour(args, teller))
}

#[expect(clippy::disallowed_methods, reason = "a tool measures with the machine's clock")]
async fn tour(args: &Args, mut teller: Teller) -> Result<()> {
    let began = Instant::now();
    let mut system = System::start(&mut teller, args.optimised, args.port).await?;
    let outcome = tokio::select! {
        done = steps::all(&system, &mut teller) => done,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    if outcome.is_err() {
        teller.say(&system.last_words());
    }
    if outcome.is_ok() {
        teller.say(&format!("\nThe whole tour took {:.1} s after the build.", began.elapsed().as_secs_f64()));
        if args.once {
            teller.say("Without --once it stays up, and prints what to try next.");
        } else {
            steps::what_next(&system, &mut teller);
            teller.say("\nIt stays up until you press Ctrl-C.");
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                ended = system.ended() => {
                    teller.say(&system.last_words());
                    ended?;
                }
            }
        }
    }
    teller.step("stopping");
    system.stop(Duration::from_secs(20)).await?;
    teller.done("all stopped; the data stays in target/quickstart until the next run");
    outcome
}
