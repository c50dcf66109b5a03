//! The DynamoDB emulator dynalite, with the whole of its dependencies pinned by a lock file. Node runs it.

use super::{fetch, place::Place};
use crate::tell::Teller;
use anyhow::{Context, Result};
use std::{fs, path::Path, process::Command};

const PACKAGE: &str = include_str!("dynalite/package.json");
/// Versions and integrity values, without the addresses they came from.
const LOCK: &str = include_str!("dynalite/package-lock.json");

pub(super) fn place() -> Place {
    Place {
        name: "dynamodb".into(),
        dir: "dynalite".into(),
        file: "node_modules/dynalite/cli.js",
        pin: "dynalite 4.0.0".into(),
        given: None,
        fill: Box::new(fill),
    }
}

fn fill(dir: &Path, teller: &mut Teller) -> Result<String> {
    let node = fetch::on_path("node").context("node is missing, and it runs this. Install Node.js 18 or newer")?;
    teller.step("dynamodb: downloading");
    fs::write(dir.join("package.json"), PACKAGE)?;
    fs::write(dir.join("package-lock.json"), LOCK)?;
    // its native part comes built; no install script runs
    fetch::run(fetch::npm()?.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]), dir, teller)?;
    let loads = "console.log(require('dynalite/package.json').version, require('dynalite') && process.version)";
    let said = fetch::run(Command::new(node).args(["-e", loads]), dir, teller)?;
    let (version, node) = said.trim().split_once(' ').unwrap_or((said.trim(), ""));
    Ok(format!("dynalite {version} on node {node}, an emulator"))
}
