//! `cargo xtask bench dedupe`: the embedded dedupe store beside the disk's own limit.
#![expect(clippy::print_stdout, reason = "it prints its tables")]

use super::{machine, queue};
use anyhow::{Context, Result};
use wh_testkit::workspace;

/// What is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the store is: the disk that is measured. A folder of its own is made in it and removed
    #[arg(long)]
    folder: Option<std::path::PathBuf>,
    /// Millions of keys that are known before it is measured
    #[arg(long, default_value_t = 5)]
    millions: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = workspace::root()?;
    let parent = args.folder.clone().unwrap_or_else(|| root.join("target"));
    let folder = tempfile::tempdir_in(&parent).with_context(|| parent.display().to_string())?;
    println!("machine: {}", machine::line());
    println!("disk: {}\n", parent.display());
    let dir = folder.path().to_string_lossy();
    let package = ["-p", "wh-dedupe", "--features", "log"];
    queue::example(&root, &package, "dedupe_rates", &[&dir, &args.millions.to_string()])
}
