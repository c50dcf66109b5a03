//! `cargo xtask bench queue`: the log against the disk's own limit, and the queue on top of it. The measuring is done by
//! examples of the two crates; this builds them with optimisation and runs them one after the other.
#![expect(clippy::print_stdout, reason = "it prints its tables")]

use super::machine;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use wh_testkit::workspace;

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the logs are written: the disk that is measured. A folder of its own is made in it and removed
    #[arg(long)]
    folder: Option<std::path::PathBuf>,
    /// Seconds of the steady state, with a live window of 200,000 rows
    #[arg(long, default_value_t = 180)]
    steady_seconds: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = workspace::root()?;
    let parent = args.folder.clone().unwrap_or_else(|| root.join("target"));
    let folder = tempfile::tempdir_in(&parent).with_context(|| parent.display().to_string())?;
    println!("machine: {}", machine::line());
    println!("disk: {}\n", parent.display());
    let steady = args.steady_seconds.to_string();
    let folder = folder.path();
    let dir = folder.to_string_lossy();
    println!("— the log against the disk's own limit");
    example(&root, LOG, "append", &[&dir])?;
    println!("\n— opening a log of a million records");
    example(&root, LOG, "recover", &[&dir])?;
    println!("\n— the queue: publish, deliver, settle, recover, replay");
    example(&root, QUEUE, "queue_rates", &["5", &dir])?;
    println!("\n— the queue for {steady} s, with a live window of 200,000 rows");
    example(&root, QUEUE, "queue_rates", &["5", &dir, "steady", &steady])
}

const LOG: &[&str] = &["-p", "wh-log"];
const QUEUE: &[&str] = &["-p", "wh-mq", "--features", "embedded,sim"];

pub(super) fn example(root: &Path, package: &[&str], name: &str, args: &[&str]) -> Result<()> {
    let mut command = crate::workspace::cargo();
    command.current_dir(root).args(["run", "--quiet", "--profile", "quick"]).args(package).args(["--example", name]);
    let status = command.arg("--").args(args).status().with_context(|| name.to_owned())?;
    ensure!(status.success(), "the example {name} failed: {status}");
    Ok(())
}
