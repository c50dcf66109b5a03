//! `cargo xtask ui`: the live page's scripts under node, and the page itself in headless Chromium against a running system.
//! Not part of `cargo xtask test`, which has the page's contract only: neither program is among the servers of `setup`.
#![expect(clippy::print_stdout, reason = "it says what it did")]

use crate::{
    quickstart::system::{self, System},
    tell::Teller,
};
use anyhow::{Context, Result, ensure};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use wh_testkit::{free_port, workspace};

const SCRIPTS: &str = "crates/wh-api/tests/ui";
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
const TABLE: &str = "CREATE TABLE ticks (n UInt64, note String) ENGINE = MergeTree ORDER BY n";

/// What is needed, and where the picture goes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The browser; else `chromium`, `chromium-browser` or `google-chrome`, as they are found
    #[arg(long)]
    browser: Option<PathBuf>,
    /// Where the screenshot is written
    #[arg(long, default_value = "target/ui.png")]
    screenshot: PathBuf,
    /// Only the scripts, without a browser
    #[arg(long)]
    scripts: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = workspace::root()?;
    let scripts = root.join(SCRIPTS);
    node(&["--test".as_ref(), scripts.join("sse.test.mjs").as_ref()])?;
    if args.scripts {
        return Ok(());
    }
    let browser = match &args.browser {
        Some(browser) => browser.clone(),
        None => found(BROWSERS).context("no Chromium is found: name one with --browser, or ask for --scripts alone")?,
    };
    let mut teller = Teller::new();
    system::build(&mut teller, false)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let system = System::start(&mut teller, false, free_port()?).await?;
        let looked = look(&system, &browser, &scripts, &args.screenshot).await;
        system.stop(Duration::from_secs(30)).await?;
        looked
    })?;
    println!("screenshot: {}", args.screenshot.display());
    Ok(())
}

async fn look(system: &System, browser: &Path, scripts: &Path, screenshot: &Path) -> Result<()> {
    system.sql(TABLE).await?;
    let script = scripts.join("browser.mjs");
    node(&[script.as_ref(), browser.as_ref(), system.url.as_ref(), system.key.as_ref(), screenshot.as_ref()])
}

fn node(args: &[&std::ffi::OsStr]) -> Result<()> {
    let status = Command::new("node").args(args).stdin(Stdio::null()).status().context("node is not found")?;
    ensure!(status.success(), "node failed: {status}");
    Ok(())
}

/// The first of these programs that there is.
fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let there = |name: &&str| places.iter().map(|place| place.join(name)).find(|program| program.is_file());
    names.iter().find_map(there)
}
